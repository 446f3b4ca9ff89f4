"""What hosts, clients and files tell a fleet: bundles, orders, events, settings and inventories that deceive."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

from maintenance.hostile.archives import as_json, hostile_value, spoiled
from maintenance.hostile.texts import yaml_text

_PATHS = ("recipe/meta.yaml", "../../outside/x", "/etc/passwd", "a/../../b", "", ".", "a//b", "a\0b", "a" * 5000)
_FILE = {"path": "recipe/meta.yaml", "sha256": "0" * 64, "size": 10, "program": False, "link": ""}
_ORDER: Mapping[str, object] = {
    **{"attempt": "0" * 32, "owner": "o", "number": 0, "version": "1", "engine": "rattler-build"},
    **{"engine_version": "1", "bundle": "0" * 64, "feedstock": "f", "recipe": "recipe", "pythons": []},
    **{"row": {"rows": [{"name": "a"}]}, "identities": {}, "inputs": {}, "wanted": ["p"], "made": []},
    **{"channels": [{"name": "conda-forge"}], "origin": "", "share": {"cores": [0], "memory": 1, "jobs": 1}},
    **{"seconds": None, "log_limit": 1, "epoch": 1},
}
_EVENTS: Mapping[str, Mapping[str, object]] = {
    "started": {},
    "log": {},
    "output": {"content": "text\n"},
    "delivered": {"output": "p", "identity": "i", "file": "noarch/p-1-0.conda", "sha256": "0" * 64, "size": 1},
    "failed": {"reason": "r"},
    "finished": {"how": "built"},
}
_SETTINGS = {"name": "h", "hub": "localhost:1", "root": "/nowhere", "cores": 4, "memory": "4 GiB", "lease": 60}
#: The most files of a bundle that are spoiled; more take seconds to make.
_SPOILED = 40
_OF_JOBS = ("min", "max", "cores", "memory", "time", "partition", "account", "options", "gpus", "labels")
_INVENTORY = ("fleet_hub", "fleet_memory", "fleet_cores", "fleet_root", "fleet_labels", "fleet_bazel", "fleet_price")


def bundle(chance: random.Random) -> bytes:
    """The document of a bundle."""
    entries: list[dict[str, object]] = [
        {**_FILE, "path": chance.choice(_PATHS), "link": chance.choice(("", "", *_PATHS))}
        for _ in range(chance.choice((0, 1, 3, 900)))
    ]
    if chance.random() < 0.9:
        entries = [*(spoiled(entry, chance, 1) for entry in entries[:_SPOILED]), *entries[_SPOILED:]]
    else:
        entries = entries[:1]
    return as_json(entries, chance)


def order(chance: random.Random) -> bytes:
    """An order for a host."""
    return as_json(spoiled(_ORDER, chance), chance)


def events(chance: random.Random) -> bytes:
    """Lines of a host's spool."""
    lines = []
    for _ in range(chance.choice((1, 3, 90))):
        kind = chance.choice(sorted(_EVENTS))
        name = kind if chance.random() < 0.9 else str(hostile_value(chance, 0))
        lines.append(as_json([name, spoiled(_EVENTS[kind], chance)], chance))
    return chance.choice((b"\n", b"\n", b"\r\n", b"\0")).join(lines)


def settings(chance: random.Random) -> bytes:
    """The settings in the folder of a host."""
    return as_json(spoiled(_SETTINGS, chance), chance)


def inventory(chance: random.Random) -> tuple[str, dict[str, object]]:
    """The text of an inventory with jobs for Slurm, and the variables of a host in one."""
    known: dict[str, object] = {"min": 0, "max": 4, "cores": 4, "memory": "4 GiB", "time": "1:00:00"}
    for key in chance.sample(_OF_JOBS, 2):
        known[key] = hostile_value(chance)
    jobs = {str(hostile_value(chance, 0)) if chance.random() < 0.2 else "small": known}
    text = json.dumps({"all": {"vars": {"fleet_hub": "localhost:8786", "fleet_cluster": jobs}}})
    if chance.random() < 0.3:
        text = yaml_text("all hosts vars children plugin a", chance)
    variables: dict[str, object] = {"fleet_hub": "localhost:8786"}
    for key in chance.sample(_INVENTORY, 2):
        variables[key] = hostile_value(chance)
    return text, variables
