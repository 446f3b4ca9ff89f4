"""Values are plain: no dataclass holds a function, so that each can be compared, stored and sent."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import typing
from collections.abc import Iterator
from types import ModuleType

import pytest

import feedstock_tools

ROOMS = tuple(module.name for module in pkgutil.iter_modules(feedstock_tools.__path__) if module.ispkg)


def _modules(room: str) -> Iterator[ModuleType]:
    package = importlib.import_module(f"{feedstock_tools.__name__}.{room}")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("_worker"):
            yield importlib.import_module(found.name)


def _holds_functions(annotation: object, module: ModuleType) -> bool:
    """Whether a field's type, or an alias that it names, is `Callable`."""
    words = str(annotation).replace("|", " ").replace("[", " ").replace("]", " ").replace(",", " ").split()
    meant = [vars(module).get(word) for word in words]
    aliases = [str(one) for one in meant if one is not None and not inspect.isclass(one) and typing.get_origin(one)]
    return any("Callable" in text for text in (*words, *aliases))


@pytest.mark.parametrize("room", ROOMS)
def test_no_dataclass_holds_a_function(room: str) -> None:
    holding = [
        f"{module.__name__}.{name}.{field.name}"
        for module in _modules(room)
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and dataclasses.is_dataclass(value)
        for field in dataclasses.fields(value)
        if _holds_functions(field.type, module)
    ]
    assert holding == []
