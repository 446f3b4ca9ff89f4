"""The steps of a host as playbooks of Ansible, each of which runs the host's script there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from feedstock_tools.builds.fleet.provision.script import provision_script
from feedstock_tools.builds.fleet.provision.setup import Setup
from feedstock_tools.builds.fleet.provision.steps import Step, steps_of
from feedstock_tools.files.changes import write_whole

Task = dict[str, Any]
#: The folder in that of a project for the hosts' scripts and what they have printed.
SCRIPTS = "scripts"
#: In memory, for `down`, which must work on a host whose disk is full.
_IN_MEMORY = "/dev/shm"  # noqa: S108
_SENT_SCRIPT = "/run/feedstock-tools-provision.sh"
#: As in templates/fleet-ansible.cfg, and for `down`.
_SENT_THROUGH, _SENT_THROUGH_OF_DOWN = "/tmp/.feedstock-tools-ansible", f"{_IN_MEMORY}/.feedstock-tools-ansible"  # noqa: S108
_SCRIPT = f"{SCRIPTS}/{{{{ inventory_hostname }}}}.sh"
#: The time on this machine, for the check of a host's clock.
_NOW = {"fleet_now": "{{ lookup('ansible.builtin.pipe', 'date +%s') }}"}


def write_project(folder: Path, setups: Sequence[Setup], files: Mapping[str, Mapping[str, Path]]) -> None:
    """Write the playbooks, and the scripts of some hosts.

    Args:
        folder: private, since the inventory names files of the client.
        files: host → what is sent to it, by the names beside its script.
    """
    send = {"src": _SCRIPT, "dest": _SENT_SCRIPT, "owner": "root", "group": "root", "mode": "0700"}
    up: list[Task] = [{"name": "Send the script", "ansible.builtin.copy": send, "changed_when": False}]
    up += (_task(step) for step in steps_of(setups[0]))  # whose names and order are those of all
    _write(folder / "up.yml", [_play("Make hosts of a fleet", *up, *_cleared(_SENT_SCRIPT, _SENT_THROUGH))])
    memory = {"vars": {"ansible_remote_tmp": _SENT_THROUGH_OF_DOWN}, "environment": {"TMPDIR": _IN_MEMORY}}
    down = _play("Give the hosts back", _whole("down"), *_cleared(_SENT_THROUGH_OF_DOWN))
    _write(folder / "down.yml", [down | memory])
    brought: Task = {
        "name": "Bring back what it has printed",
        "ansible.builtin.copy": {
            "content": "{{ fleet_said.stdout }}",
            "dest": f"{{{{ playbook_dir }}}}/{SCRIPTS}/{{{{ inventory_hostname }}}}.test",
            "mode": "0600",
        },
        "delegate_to": "localhost",
        "become": False,
        "changed_when": False,
    }
    _write(folder / "test.yml", [_play("Test the hosts", _whole("test"), brought, *_cleared(_SENT_THROUGH))])
    hosts = {}
    for setup in setups:
        host = setup.plan.name
        own = {name: str(path) for name, path in files.get(host, {}).items()}
        hosts[host] = {"fleet_files": own, "fleet_account": setup.plan.user}
        write_whole(folder / SCRIPTS / f"{host}.sh", provision_script(setup))
    write_whole(folder / "hosts.json", json.dumps({"all": {"hosts": hosts}}, indent=1))


def _play(name: str, *tasks: Task) -> Task:
    return {"name": name, "hosts": "all", "become": True, "gather_facts": False, "tasks": list(tasks)}


def _task(step: Step) -> Task:
    if (sent := step.sent) is not None:
        owner = sent.owner if sent.owner == "root" else "{{ fleet_account }}"
        return {
            "name": step.name,
            "ansible.builtin.copy": {
                "src": f"{{{{ fleet_files['{sent.source}'] }}}}",
                "dest": sent.path,
                **{"owner": owner, "group": owner, "mode": sent.mode},
            },
            "when": f"'{sent.source}' in fleet_files",
        }
    return {
        "name": step.name,
        "ansible.builtin.command": {"argv": ["bash", _SENT_SCRIPT, "step", step.name]},
        "environment": _NOW,
        "register": "fleet_said",
        "changed_when": "'  changed' in fleet_said.stdout",
    }


def _whole(command: str) -> Task:
    """The script of the host with a command; `test` ends with 1 where a check fails."""
    return {
        "name": f"Run the script of the host with {command}",
        "ansible.builtin.script": {"cmd": f"{_SCRIPT} {command}", "executable": "/bin/bash"},
        "environment": _NOW,
        "register": "fleet_said",
        "changed_when": "'  changed' in fleet_said.stdout",
        "failed_when": "fleet_said.rc != 0" if command == "down" else "fleet_said.rc not in [0, 1]",
    }


def _cleared(*paths: str) -> Iterable[Task]:
    for path in paths:
        file = {"path": path, "state": "absent"}
        yield {"name": f"Remove {path}", "ansible.builtin.file": file, "changed_when": False}


def _write(path: Path, plays: list[Task]) -> None:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Indents lists, and writes no anchors."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: object) -> bool:
            return True

    write_whole(path, "---\n" + yaml.dump(plays, Dumper=Dumper, sort_keys=False, width=110, allow_unicode=True))
