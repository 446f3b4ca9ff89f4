"""The rooms of the wing exchange values without callables; those for another machine can be sent."""

from __future__ import annotations

import collections.abc
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from feedstock_tools import builds
from feedstock_tools.builds.engines.contract import Engine, Failed
from feedstock_tools.builds.engines.embedded.emulation import Emulator
from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.builds.plan.hosts import Host, Share
from feedstock_tools.builds.plan.rendering import PlannedInputs
from feedstock_tools.builds.plan.row import Ended, Running
from feedstock_tools.builds.runs.site import Site
from feedstock_tools.channel.properties import Channels
from feedstock_tools.feedstock.layout import Artifacts
from tests.support.rows import made_up_row

#: Names of types that a module imports for type checkers alone.
_FOR_TYPES = {kind.__name__: kind for kind in (BuildRecord, Emulator, Engine, Failed, Host)}


def _dataclasses() -> Iterator[type[Any]]:
    for module in pkgutil.walk_packages(builds.__path__, f"{builds.__name__}."):
        found = importlib.import_module(module.name)
        for _, kind in inspect.getmembers(found, inspect.isclass):
            if kind.__module__ == module.name and dataclasses.is_dataclass(kind):
                yield kind


def _holds_a_callable(hint: Any) -> bool:
    return get_origin(hint) is collections.abc.Callable or any(map(_holds_a_callable, get_args(hint)))


def _types(kind: type[Any]) -> Iterator[Any]:
    """The types of the fields; those that are imported for type checkers alone are looked up there."""
    known = vars(importlib.import_module(kind.__module__)) | _FOR_TYPES
    yield from get_type_hints(kind, globalns=known).values()


def test_no_dataclass_of_the_wing_holds_a_callable() -> None:
    kinds = list(_dataclasses())
    assert len(kinds) > 40
    holders = [kind.__name__ for kind in kinds if any(map(_holds_a_callable, _types(kind)))]
    assert holders == []


def test_a_site_and_its_rows_can_be_sent_to_another_machine() -> None:
    site = Site(
        configuration="linux_64_",
        target="linux-64",
        pythons=("3.12",),
        feedstock=Path("/feedstock"),
        artifacts=Artifacts(Path("/feedstock/build_artifacts")),
        inputs=PlannedInputs(Path("/feedstock/recipe/recipe.yaml"), (Path("/feedstock/recipe/build.sh"),), "stamp"),
        channels=Channels(("conda-forge",)),
        commit="0123",
        command="feedstock-tools build",
    )
    record = BuildRecord("identity", "linux_64_", "row", "lib", "done", "2026-01-01", "logs/a", "engine 1", ("a",))
    row = made_up_row("row", "lib", "tool", seconds=3.0)
    row = dataclasses.replace(
        row,
        wanted=dataclasses.replace(row.wanted, done={"lib": record}),
        running=Running("here", Share((0,), 1 << 30, 1)),
        ended=Ended((record,), (), Failed("tool", "its build script failed")),
    )
    assert pickle.loads(pickle.dumps((site, row))) == (site, row)  # noqa: S301 - it has just been pickled
