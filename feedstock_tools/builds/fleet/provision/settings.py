"""The settings of a host in an inventory: variables whose names begin with `fleet_`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter

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
_PYTHON = re.compile(r"3\.(1[1-9]|[2-9][0-9])")
_LINE = re.compile(r".+")
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


def _size(value: Any) -> int:
    try:
        return size_of(str(value))
    except InputError:
        raise ValueError from None


def _words(known: Sequence[str] = ()) -> Any:
    word: Any = Literal[tuple(known)] if known else _text(_WORD)
    return Annotated[list[word], AfterValidator(tuple)]


def _text(pattern: re.Pattern[str]) -> Any:
    return Annotated[str, AfterValidator(lambda text: text if pattern.fullmatch(text) else _refuse())]


def _refuse() -> NoReturn:
    raise ValueError


_COUNT, _AMOUNT = Annotated[int, Field(ge=1)], Annotated[float, Field(ge=0, allow_inf_nan=False)]
_FILE = "the path of a file or folder"
#: Setting → the field of `Plan`, the type that pydantic reads its value as, and that type in words.
SETTINGS: Mapping[str, tuple[str, Any, str]] = {
    "fleet_hub": ("hub", _text(_HUB), "such as 203.0.113.7:8786"),
    "fleet_root": ("root", _text(_PATH), "such as /var/lib/feedstock-tools"),
    "fleet_user": ("user", _text(_USER), "such as builder"),
    "fleet_supervisor": ("supervisor", Literal["systemd", "shell"], "one of systemd, shell"),
    "fleet_python": ("python", _text(_PYTHON), "such as '3.11' (in quotes)"),
    "fleet_machine": ("machine", Literal["x86_64", "aarch64"], "one of x86_64, aarch64"),
    "fleet_jobs": ("jobs", _COUNT, "a whole number from 1 on"),
    "fleet_cores": ("cores", _COUNT, "a whole number from 1 on"),
    "fleet_memory": ("memory", Annotated[Any, AfterValidator(_size)], "an amount such as 16G"),
    "fleet_gpus": ("gpus", Annotated[int, Field(ge=0)], "a whole number from 0 on"),
    "fleet_labels": ("labels", _words(), "a list of words"),
    "fleet_price": ("price", _AMOUNT, "a number from 0 on"),
    "fleet_preempted": ("preempted", _AMOUNT, "a number from 0 on"),
    "fleet_container": ("container", Literal["none", "podman", "docker"], "one of none, podman, docker"),
    "fleet_toolchain": ("toolchain", _words(LIBRARIES), f"a list of some of {', '.join(LIBRARIES)}"),
    "fleet_modules": ("modules", _words(), "a list of words"),
    "fleet_bazel": ("bazel", _text(_VERSION), "such as 6.1.0, or recipe"),
    "fleet_bazel_file": ("bazel_file", _text(_LINE), _FILE),
    "fleet_numpy": ("numpy", _text(_VERSION), "such as 1.26.4, or recipe"),
    "fleet_feedstock": ("feedstock", _text(_LINE), _FILE),
    "fleet_debs": ("debs", _text(_LINE), _FILE),
    "fleet_runs_hub": ("is_hub", bool, "true or false"),
    "fleet_after_build": ("after_build", bool, "true or false"),
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
        _read(key, value)
    except ValueError:
        return f"{key} is {value!r}", f"Expected: {SETTINGS[key][2]}."
    return None


def _read(key: str, value: Any) -> Any:
    return TypeAdapter(SETTINGS[key][1], config=ConfigDict(coerce_numbers_to_str=True)).validate_python(value)


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
            fields[SETTINGS[key][0]] = _read(key, value)
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
