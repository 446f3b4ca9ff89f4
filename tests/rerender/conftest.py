"""Shared by the tests of CI files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configuration import Configuration


@pytest.fixture
def configuration() -> Callable[..., Configuration]:
    """Makes a configuration from a name and values, with those that every job has."""

    def make(name: str, **values: tuple[str, ...]) -> Configuration:
        system, arch = name.split("_")[:2]
        platform = Platform(system, arch)
        image = {"docker_image": ("image:new",)} if system == "linux" else {}
        return Configuration(name, platform, {"target_platform": (platform.subdir,), **image, **values})

    return make
