"""In place of Ansible, in a folder that comes first on PYTHONPATH: takes as long, but hardly any processor time.

It reads inventories that are JSON, and reaches no host.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def listed(inventory: Path) -> dict[str, Any]:
    """What `inventory --list` prints, as far as this program reads it."""
    group = json.loads(inventory.read_text())["all"]
    return {"_meta": {"hostvars": {name: {**group["vars"], **own} for name, own in group["hosts"].items()}}}


def played(hosts: list[str]) -> str:
    """What `playbook` prints when it reaches none of the hosts."""
    lines = ["PLAY [Make hosts of a fleet]", "TASK [Create a folder]"]
    lines += [
        f'fatal: [{host}]: UNREACHABLE! => {{"msg": "connection refused", "unreachable": true}}' for host in hosts
    ]
    lines += ["PLAY RECAP"]
    lines += [f"{host} : ok=0    changed=0    unreachable=1    failed=0" for host in hosts]
    return "".join(f"{line}\n" for line in lines)


def main(program: str, *arguments: str) -> int:
    """`inventory --inventory FILE ...` or `playbook --limit HOSTS ...`."""
    if program == "inventory":
        time.sleep(0.6)
        json.dump(listed(Path(arguments[arguments.index("--inventory") + 1])), sys.stdout)
        return 0
    time.sleep(1.0)
    sys.stdout.write(played(arguments[arguments.index("--limit") + 1].split(",")))
    return 4


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
