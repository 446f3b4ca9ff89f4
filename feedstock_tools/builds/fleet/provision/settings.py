"""The settings of a host in an inventory: variables whose names begin with `fleet_`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.wording import size_of

PREFIX = "fleet_"
#: In place of a version: the one that the feedstock's recipe pins.
RECIPE = "recipe"
#: Words in statements of bash and in units: no spaces, no quotes.
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9@%+=:,./_-]*")
_PATH = re.compile(r"(?!.*\.\.)/[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)+")
_USER = re.compile(r"(?!root$)[a-z_][a-z0-9_-]{0,30}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_HUB = re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}")
_VERSION = re.compile(rf"[0-9]+(\.[0-9]+)*([a-z0-9.]*)|{RECIPE}")
LIBRARIES = ("compilers", "openblas", "fftw", "hdf5")


@dataclass(frozen=True, slots=True)
class Plan:
    """A host as an inventory describes it.

    Attributes:
        cores, memory: what builds may use (bytes); None for the whole machine.
        supervisor: `systemd`, or `shell` for a loop that no reboot starts again.
        toolchain: some of `LIBRARIES`, from the distribution; `modules` are those of LMod.
        bazel, numpy: versions, `recipe` for those that the recipe pins, or empty.
        feedstock: the folder of that recipe's feedstock, relative to the inventory.
        debs: a folder of the distribution's packages for hosts that reach none; empty for the distribution's servers.
        is_hub: this host also runs the hub.
        after_build: each build is followed by the package's hello-world and benchmark.
    """

    name: str
    hub: str
    root: str = "/var/lib/feedstock-tools"
    user: str = "builder"
    supervisor: str = "systemd"
    python: str = "3.11"
    machine: str = "x86_64"
    jobs: int = 1
    cores: int | None = None
    memory: int | None = None
    gpus: int = 0
    labels: tuple[str, ...] = ()
    price: float = 0.0
    preempted: float = 0.0
    container: str = "none"
    toolchain: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    bazel: str = ""
    bazel_file: str = ""
    numpy: str = ""
    feedstock: str = ""
    debs: str = ""
    is_hub: bool = False
    after_build: bool = False


def _matching(pattern: re.Pattern[str], example: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not pattern.fullmatch(str(value)):
            raise ValueError(f"such as {example}")
        return str(value)

    return read


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if str(value) not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return str(value)

    return read


def _words(*known: str) -> Callable[[Any], tuple[str, ...]]:
    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(_WORD.fullmatch(str(word)) for word in value):
            raise ValueError("a list of words")
        if known and not set(map(str, value)) <= set(known):
            raise ValueError(f"a list of some of {', '.join(known)}")
        return tuple(map(str, value))

    return read


def _whole(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if not str(value).isdecimal() or int(value) < least:
            raise ValueError(f"a whole number from {least} on")
        return int(value)

    return read


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ValueError("a number from 0 on")
    return number


def _size(value: Any) -> int:
    try:
        return size_of(str(value))
    except (ValueError, InputError):
        raise ValueError("an amount such as 16G") from None


def _switch(value: Any) -> bool:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if str(value).lower() not in words:
        raise ValueError("true or false")
    return words[str(value).lower()]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or "\n" in value:
        raise ValueError("the path of a file or folder")
    return value


#: Setting → the field of `Plan`, and how its value is read: the message of its ValueError is what was expected.
SETTINGS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "fleet_hub": ("hub", _matching(_HUB, "203.0.113.7:8786")),
    "fleet_root": ("root", _matching(_PATH, "/var/lib/feedstock-tools")),
    "fleet_user": ("user", _matching(_USER, "builder")),
    "fleet_supervisor": ("supervisor", _one_of("systemd", "shell")),
    "fleet_python": ("python", _matching(re.compile(r"3\.(1[1-9]|[2-9][0-9])"), "'3.11' (in quotes)")),
    "fleet_machine": ("machine", _one_of("x86_64", "aarch64")),
    "fleet_jobs": ("jobs", _whole(1)),
    "fleet_cores": ("cores", _whole(1)),
    "fleet_memory": ("memory", _size),
    "fleet_gpus": ("gpus", _whole(0)),
    "fleet_labels": ("labels", _words()),
    "fleet_price": ("price", _number),
    "fleet_preempted": ("preempted", _number),
    "fleet_container": ("container", _one_of("none", "podman", "docker")),
    "fleet_toolchain": ("toolchain", _words(*LIBRARIES)),
    "fleet_modules": ("modules", _words()),
    "fleet_bazel": ("bazel", _matching(_VERSION, "6.1.0, or recipe")),
    "fleet_bazel_file": ("bazel_file", _text),
    "fleet_numpy": ("numpy", _matching(_VERSION, "1.26.4, or recipe")),
    "fleet_feedstock": ("feedstock", _text),
    "fleet_debs": ("debs", _text),
    "fleet_runs_hub": ("is_hub", _switch),
    "fleet_after_build": ("after_build", _switch),
}
#: Read elsewhere: by `folder.fleet_name`, and by `cluster.settings`.
_NAME_OF_FLEET, _CLUSTER = "fleet_name", "fleet_cluster"
_NAMES = (*SETTINGS, _NAME_OF_FLEET, _CLUSTER)


def why_not(key: str, value: Any) -> tuple[str, str] | None:
    """What is wrong with a setting, and what to do about it; None if nothing is."""
    if key == _CLUSTER:
        return None
    if key == _NAME_OF_FLEET:
        return None if _NAME.fullmatch(str(value)) else (f"{key} is {value!r}", "Expected: a word such as gpus.")
    if key not in SETTINGS:
        near = difflib.get_close_matches(key, _NAMES, 1)
        return f"there is no setting {key}", f"Do you mean {near[0]}?" if near else f"There are: {', '.join(_NAMES)}."
    try:
        SETTINGS[key][1](value)
    except ValueError as error:
        return f"{key} is {value!r}", f"Expected: {error}."
    return None


def plan_of(name: str, variables: Mapping[str, Any]) -> Plan:
    """The host with a name and the variables of an inventory.

    Raises:
        InputError: the hub is missing, or a value is invalid.
    """
    fields = {}
    for key, value in variables.items():
        if key.startswith(PREFIX) and key not in (_NAME_OF_FLEET, _CLUSTER) and value is not None:
            if (mistake := why_not(key, value)) is not None:
                raise InputError(f"host {name}: {mistake[0]}", hint=mistake[1])
            field, read = SETTINGS[key]
            fields[field] = read(value)
    if "hub" not in fields:
        hint = "Set fleet_hub: HOST:PORT for all hosts: where the hub listens, as hosts and this machine reach it."
        raise InputError(f"host {name}: fleet_hub is missing", hint=hint)
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be the name of a host", hint="Use letters, digits, dots, hyphens, underscores."
        )
    if fields.get("bazel") and not fields.get("bazel_file"):
        hint = "Set fleet_bazel_file to the program of that version, which `up` sends."
        raise InputError(f"host {name}: fleet_bazel is set without fleet_bazel_file", hint=hint)
    return Plan(name=name, **fields)
