"""The steps of a host as one bash script: `up`, `down`, `test`; and `step NAME` for Ansible, which sends it there."""

from __future__ import annotations

import shlex

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.provision.setup import CONFIGURED, INSTALLED, NOTES, Setup
from feedstock_tools.builds.fleet.provision.steps import checks_of, steps_of
from feedstock_tools.data import data_folder

_HEAD = """\
#!/usr/bin/env bash
# Makes this machine {host}, a host of the fleet {fleet}, or gives it back: up, down or test.
# Written by feedstock-tools {version} from the steps that `fleet up` carries out through Ansible.
# shellcheck disable=SC2034
set -euo pipefail
shopt -s inherit_errexit
here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)
changed=0 failed=0
"""
_MAIN = """
[[ ($# == 1 && ($1 == up || $1 == down || $1 == test)) || ($# == 2 && $1 == step) ]] || usage
[[ $EUID == 0 ]] || fail "run it as root"
if [[ $1 == test ]]; then
  set +e
  checks
  exit "$failed"
fi
alone
if [[ $1 == down ]]; then
  ! is_ours || down
  rm -f -- /run/lock/feedstock-tools-fleet
else
  up "${2:-}"
fi
echo "changed=$changed"
"""


def provision_script(setup: Setup) -> str:
    """The script of one host; the files that it sends lie beside it."""
    plan = setup.plan
    settings = {
        **{"fleet": setup.fleet, "root": plan.root, "user": plan.user, "supervisor": plan.supervisor},
        **{"python": plan.python, "machine": plan.machine, "cores": plan.cores or 0, "memory": plan.memory or 0},
        **{"gpus": plan.gpus, "container": plan.container, "bazel": plan.bazel},
        **{"wheels": setup.wheels, "debs": setup.debs},
        **{"programs": INSTALLED, "settings": CONFIGURED, "notes": NOTES},
    }
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in settings.items()]
    head = _HEAD.format(host=plan.name, fleet=setup.fleet, version=__version__)
    tools = (data_folder("templates") / "fleet-provision.sh").read_text(encoding="utf-8")
    steps = tuple(steps_of(setup))
    up = [
        f"[[ -n $1 && $1 != {shlex.quote(step.name)} ]] || run {shlex.quote(step.name)} {step.call}"
        for step in steps
        if step.on
    ]
    down = [f"run {shlex.quote(f'Undo {step.name}')} {step.undo}" for step in reversed(steps) if step.undo]
    down.append("[[ ! -d /run/systemd/system ]] || systemctl daemon-reload")
    checks = [f"check {name} {function}" for name, function in checks_of(plan)]
    functions = "".join(
        f"\n{name}() {{\n" + "\n".join(calls) + "\n}\n"
        for name, calls in (("up", up), ("down", down), ("checks", checks))
    )
    return head + "\n".join([*lines, f"modules=({shlex.join(plan.modules)})"]) + "\n" + tools + functions + _MAIN
