"""The versions of Bazel and NumPy that a recipe pins for the machine of a host: `fleet_numpy: recipe`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.builds.fleet.provision.settings import PREFIX, RECIPE, Plan
from feedstock_tools.check.renderings import Renderings
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.configurations import configurations_of
from feedstock_tools.feedstock.folder import find_feedstock
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.requirements import ensure_valid_spec, spec_name, with_version
from feedstock_tools.rerender.configuration import python_version

#: The machine of a host → the subdir whose configurations count for it.
_SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}
#: Package → its setting, which is also the field of `Plan` with this prefix.
_SETTINGS = {name: f"{PREFIX}{name}" for name in ("bazel", "numpy")}
#: Where a recipe requires what a build runs and compiles against.
_SECTIONS = ("build", "host")
#: A version, or all versions that begin with one; bounds such as `<7` pin nothing.
_PIN = re.compile(r"(={0,2})([0-9]+(?:\.[0-9A-Za-z]+)*)(\.\*)?")


def with_pins(plan: Plan, inventory: Path) -> Plan:
    """The host with the versions that its feedstock's recipe pins, where the inventory says `recipe`.

    The feedstock is the folder that `fleet_feedstock` names, relative to the inventory; without it, that of the
    inventory. The configurations for the machine of the host count; of their outputs those for its Python, if any.

    Raises:
        InputError: the recipe cannot be rendered, pins no version, or pins several.
    """
    named = [name for name in _SETTINGS if getattr(plan, name) == RECIPE]
    if not named:
        return plan
    feedstock = _feedstock(plan, inventory)
    subdir = _SUBDIRS[plan.machine]
    pinned = run_bounded(partial(_pinned, feedstock, subdir, plan.python))
    versions = {}
    for name in named:
        pins = sorted(pinned[name])
        if len(pins) != 1:
            what = f"several versions of {name}: {', '.join(pins)}" if pins else f"no version of {name}"
            message = f"host {plan.name}: for {subdir} and Python {plan.python} the recipe pins {what}"
            raise InputError(message, path=feedstock, hint=f"Set the version in the inventory: {_SETTINGS[name]}.")
        versions[name] = pins[0]
    return replace(plan, bazel=versions.get("bazel", plan.bazel), numpy=versions.get("numpy", plan.numpy))


def _feedstock(plan: Plan, inventory: Path) -> Path:
    folder = inventory.absolute().parent / plan.feedstock
    try:
        return find_feedstock(folder, folder).folder
    except InputError as error:
        hint = "Set fleet_feedstock in the inventory: the folder of the feedstock, relative to the inventory."
        raise InputError(f"host {plan.name}: {error.mistakes[0].message}", path=folder, hint=hint) from error


def _pinned(feedstock: Path, subdir: str, python: str) -> Mapping[str, frozenset[str]]:
    """The versions to which the outputs of a platform pin each package."""
    renderings = Renderings(feedstock, configurations=configurations_of(feedstock))
    outputs = [
        package.output
        for configuration in renderings.configurations
        if configuration.platform.subdir == subdir
        for package in renderings.packages(configuration)
    ]
    counted = [output for output in outputs if python_version(output.variant) == python] or outputs
    is_v1 = renderings.forge.is_v1
    return {name: frozenset(pin for output in counted for pin in _pins(output, name, is_v1)) for name in _SETTINGS}


def _pins(output: RenderedOutput, name: str, is_v1: bool) -> Iterator[str]:
    """The versions to which the requirements of an output, with the values of its variant, pin a package."""
    for section in _SECTIONS:
        for spec in output.requirements.get(section, ()):
            if spec_name(spec) != name:
                continue
            complete = with_version(spec, section, output.variant)
            complete = complete if is_v1 else ensure_valid_spec(complete)  # 7.4.1 of a meta.yaml is 7.4.1.*
            words = complete.rpartition("::")[2][len(name) :].split()
            if words and (pin := _PIN.fullmatch(words[0])) is not None:
                yield f"{pin[2]}.*" if pin[3] or pin[1] == "=" else pin[2]
