"""The steps of a host as roles and playbooks of Ansible. `down` and `test` run the host's script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from feedstock_tools.builds.fleet.provision.roles import ROLES, SENT_THROUGH
from feedstock_tools.builds.fleet.provision.snippets import LOCK
from feedstock_tools.builds.fleet.provision.steps import (
    Account,
    Folder,
    Role,
    Sent,
    Service,
    Step,
    Text,
    Values,
)
from feedstock_tools.files.changes import write_whole

Task = dict[str, Any]
#: The folder in that of a project for the hosts' scripts and what they have printed.
SCRIPTS = "scripts"
_RESTART = "Restart {service}"
_FLUSH = {"ansible.builtin.meta": "flush_handlers"}
#: In memory, for `down`, which must work on a host whose disk is full.
_IN_MEMORY = "/dev/shm"  # noqa: S108
_REMOTE_TMP_OF_DOWN = f"{_IN_MEMORY}/.feedstock-tools-ansible"


def write_project(folder: Path, hosts: Mapping[str, Values], scripts: Mapping[str, str]) -> None:
    """Write the roles, the playbooks and the values of the hosts.

    Args:
        folder: private, since values name files of the client.
        scripts: host → its script, which `down` and `test` run.

    Raises:
        WorkError: a file cannot be written.
    """
    for role in ROLES:
        tasks = [task for step in role.steps for task in _tasks(step, role)]
        _write(folder / "roles" / role.name / "tasks" / "main.yml", tasks)
        if handlers := list(_handlers(role)):
            _write(folder / "roles" / role.name / "handlers" / "main.yml", handlers)
    _write(folder / "up.yml", _up())
    _write(folder / "down.yml", _scripted("down", "Give the hosts back"))
    _write(folder / "test.yml", _scripted("test", "Test the hosts"))
    inventory = {"all": {"hosts": {host: dict(values) for host, values in hosts.items()}}}
    write_whole(folder / "hosts.json", json.dumps(inventory, indent=1))
    for host, script in scripts.items():
        write_whole(folder / SCRIPTS / f"{host}.sh", script)


def _up() -> list[Task]:
    roles = [{"role": role.name, **({"when": f"{role.when} | bool"} if role.when else {})} for role in ROLES]
    play = {"name": "Make hosts of a fleet", "hosts": "all", "become": True, "gather_facts": False, "roles": roles}
    return [{**play, "post_tasks": [_cleared(SENT_THROUGH)]}]


def _cleared(path: str) -> Task:
    return {
        "name": "Remove what Ansible itself has left",
        "ansible.builtin.file": {"path": path, "state": "absent"},
        "changed_when": False,
    }


def _scripted(command: str, name: str) -> list[Task]:
    """A playbook that runs a command of each host's script, and brings back what `test` has printed."""
    script: Task = {
        "name": f"Run the script of the host with {command}",
        "ansible.builtin.script": {
            "cmd": f"{SCRIPTS}/{{{{ inventory_hostname }}}}.sh {command}",
            "executable": "/bin/bash",
        },
        "register": "fleet_said",
        "changed_when": "'  changed' in fleet_said.stdout",
        "failed_when": "fleet_said.rc != 0" if command == "down" else "fleet_said.rc not in [0, 1]",
    }
    play = {"name": name, "hosts": "all", "become": True, "gather_facts": False}
    if command == "down":  # which removes what `up` has left of Ansible's
        in_memory = {"vars": {"ansible_remote_tmp": _REMOTE_TMP_OF_DOWN}, "environment": {"TMPDIR": _IN_MEMORY}}
        return [{**play, **in_memory, "tasks": [script, _cleared(_REMOTE_TMP_OF_DOWN)]}]
    brought: Task = {
        "name": "Bring back what it has printed",
        "ansible.builtin.copy": {
            "content": "{{ fleet_said.stdout }}",
            "dest": f"{{{{ playbook_dir }}}}/{SCRIPTS}/{{{{ inventory_hostname }}}}.{command}",
            "mode": "0600",
        },
        "delegate_to": "localhost",
        "become": False,
        "changed_when": False,
    }
    return [{**play, "tasks": [script, brought, _cleared(SENT_THROUGH)]}]


def _tasks(step: Step, role: Role) -> Iterable[Task]:
    if isinstance(step, Service):  # what runs from an older unit starts again before it is found running
        yield {"name": f"Restart the service of the {role.name} if its unit has changed", **_FLUSH}
    task: Task = {"name": step.name, **_module(step, role)}
    if step.when:
        task["when"] = f"{step.when} | bool"
    yield task


def _module(step: Step, role: Role) -> Task:
    if isinstance(step, Folder):
        return {"ansible.builtin.file": {"path": step.path, "state": "directory", **_owned(step)}}
    if isinstance(step, Text):
        module: Task = {"ansible.builtin.copy": {"dest": step.path, "content": step.content, **_owned(step)}}
        return {**module, **({"notify": _RESTART.format(service=step.restarts)} if step.restarts else {})}
    if isinstance(step, Sent):
        return {"ansible.builtin.copy": {"dest": step.path, "src": step.source, **_owned(step)}}
    if isinstance(step, Account):
        account = {"name": step.user, "home": step.home, "create_home": False, "shell": "/bin/bash"}
        return {"ansible.builtin.user": account}
    if isinstance(step, Service):
        run = {"name": step.unit, "state": "started", "enabled": True}
        return {"ansible.builtin.systemd_service": run}
    result = f"{role.name}_said"
    return {
        "ansible.builtin.shell": {"cmd": LOCK + step.statements, "executable": "/bin/bash"},
        "register": result,
        "changed_when": f"'changed' in {result}.stdout",
    }


def _owned(step: Folder | Text | Sent) -> Task:
    return {"owner": step.owner, "group": step.owner, "mode": step.mode}


def _handlers(role: Role) -> Iterable[Task]:
    for step in role.steps:
        if isinstance(step, Text) and step.restarts:
            restart = {"name": step.restarts, "state": "restarted", "daemon_reload": True}
            yield {"name": _RESTART.format(service=step.restarts), "ansible.builtin.systemd_service": restart}


def _write(path: Path, content: list[Task]) -> None:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Indents lists, and writes texts of several lines as blocks."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

    Dumper.add_representer(
        str,
        lambda dumper, text: dumper.represent_scalar(
            "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
        ),
    )
    text = yaml.dump(content, Dumper=Dumper, sort_keys=False, width=110, allow_unicode=True)
    write_whole(path, f"---\n{text}")
