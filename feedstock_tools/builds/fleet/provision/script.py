"""The steps of a host as one bash script: `up`, `down` and `test`. Ansible runs it for the last two."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from feedstock_tools.builds.fleet.provision.checks import CHECKS
from feedstock_tools.builds.fleet.provision.roles import NOTES, ROLES, SENT_THROUGH
from feedstock_tools.builds.fleet.provision.snippets import LOCK
from feedstock_tools.builds.fleet.provision.steps import (
    Account,
    Folder,
    Role,
    Sent,
    Service,
    Shell,
    Step,
    Text,
    Values,
    filled,
)
from feedstock_tools.data import data_folder

_HEAD = """\
#!/usr/bin/env bash
# Makes this machine {host}, a host of the fleet {fleet}, or gives it back.
# Written by feedstock-tools {version} from the steps that `fleet up` performs through Ansible.
set -euo pipefail
shopt -s inherit_errexit
here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)
changed=0 failed=0 stale=" "
"""
#: What `down` asks first: it removes nothing that no fleet, or another one, has made.
_OWNED = """\
  if [[ ! -s $notes/fleet ]]; then
    [[ ! -d $notes ]] || { rm -f -- "$notes/fleet.part" && rmdir -- "$notes"; }
    echo "no fleet has made anything here"
    return
  fi
  found=$(cat "$notes/fleet")
  [[ $found == "$fleet" ]] || { echo "this host belongs to the fleet $found" >&2; exit 1; }
"""
_MAIN = """
[[ $# == 1 ]] || usage
[[ $1 == up || $1 == down || $1 == test ]] || usage
[[ $EUID == 0 ]] || { echo "run it as root" >&2; exit 1; }
"$1"
if [[ $1 == test ]]; then
  [[ $failed == 0 ]]
else
  echo "changed=$changed"
fi
"""


def provision_script(values: Values, version: str) -> str:
    """The script of one host.

    Args:
        values: of the host, with the sources of files as paths beside the script.
        version: of this program.
    """
    head = _HEAD.format(host=values["fleet_host"], fleet=values["fleet_name"], version=version)
    functions, calls = _up(values)
    tools = (data_folder("templates") / "fleet-provision.sh").read_text(encoding="utf-8")
    up = "\nup() {\n" + "\n".join(calls) + "\n}\n"
    return head + tools + "\n" + "\n".join(functions) + up + _down(values) + _test(values) + _MAIN


def _up(values: Values) -> tuple[list[str], list[str]]:
    """Functions for statements, and the calls of `up`."""
    functions: list[str] = []
    calls = [_locked()]
    for role, step in _performed(values):
        calls.append(f"  step {shlex.quote(f'{role.name}: {step.name}')}")
        if isinstance(step, Shell):
            name = f"do_{role.name}_{len(functions) + 1}"
            functions.append(_function(name, filled(step.statements, values)))
            calls.append(f'  said=$({name})\n  count "$said"')
        else:
            calls.append(_done(step, values))
    return functions, calls


def _performed(values: Values) -> Iterator[tuple[Role, Step]]:
    for role in ROLES:
        for step in role.steps:
            if all(values[switch] for switch in (role.when, step.when) if switch):
                yield role, step


def _done(step: Folder | Text | Sent | Account | Service, values: Values) -> str:
    """The call for a step that a function of the script performs."""
    if isinstance(step, Folder):
        return _call(values, "folder", step.path, step.mode, step.owner)
    if isinstance(step, Account):
        return _call(values, "account", step.user, step.home)
    if isinstance(step, Service):
        return _call(values, "service", step.unit)
    if isinstance(step, Sent):
        return _call(values, "sent", step.source, step.path, step.mode, step.owner)
    call = _call(values, "text", step.path, step.mode, step.owner, *([step.restarts] if step.restarts else []))
    return f"{call} <<'END_OF_TEXT'\n{filled(step.content, values)}END_OF_TEXT"


def _down(values: Values) -> str:
    """The removal of all that any step may have made, the last first, whatever is switched on today."""
    functions: list[str] = []
    calls: list[str] = []
    for role in reversed(ROLES):
        for step in reversed(role.steps):
            if isinstance(step, Shell):
                if step.undo:
                    name = f"undo_{role.name}_{len(functions) + 1}"
                    functions.append(_function(name, filled(step.undo, values)))
                    calls.append(f'  said=$({name})\n  count "$said"')
            elif isinstance(step, Account):
                calls.append(_call(values, "account_gone", step.user))
            elif isinstance(step, Service):
                calls.append(_call(values, "service_gone", step.unit))
            elif step.path != f"{NOTES}/fleet":  # it goes with its folder, which is the last
                calls.append(_call(values, "gone", step.path))
    owned = f"  local found notes={NOTES} fleet={shlex.quote(str(values['fleet_name']))}\n{_OWNED}"
    reload = "  [[ ! -d /run/systemd/system ]] || systemctl daemon-reload\n"
    cleared = f"  rm -rf -- {SENT_THROUGH}\n"
    body = (
        _locked()
        + "\n"
        + cleared
        + owned
        + "\n".join(calls)
        + "\n"
        + reload
        + "  rm -f -- /run/lock/feedstock-tools-fleet\n"
    )
    return "\n".join(functions) + "\ndown() {\n" + body + "}\n"


def _test(values: Values) -> str:
    functions: list[str] = []
    calls: list[str] = []
    for check in CHECKS:
        if not check.when or values[check.when]:
            name = f"test_{len(functions) + 1}"
            functions.append(_function(name, filled(check.statements, values)))
            calls.append(f'  said=$({name} 2>&1)\n  report "$?" {check.name} "$said"')
    # Bash would ignore `set -e` in a check that is called before `||`, and so all but the status of its last command.
    return "\n" + "\n".join(functions) + "\ntest() {\n  set +e\n" + "\n".join(calls) + "\n  set -e\n}\n"


def _function(name: str, statements: str) -> str:
    body = "".join(f"  {line}\n" if line else "\n" for line in ("set -euo pipefail\n" + statements).splitlines())
    return f"{name}() (\n{_without_indented_documents(body)})\n"


def _without_indented_documents(body: str) -> str:
    """Here-documents keep their lines at the margin."""
    lines, inside = [], False
    for line in body.splitlines():
        if inside:
            line = line.removeprefix("  ")
            inside = line != "END"
        else:
            inside = line.endswith("<<END")
        lines.append(line)
    return "\n".join(lines) + "\n"


def _locked() -> str:
    return "".join(f"  {line}\n" for line in LOCK.splitlines()[1:]).rstrip("\n")


def _call(values: Values, function: str, *words: str) -> str:
    return "  " + " ".join([function, *(shlex.quote(filled(word, values)) for word in words)])
