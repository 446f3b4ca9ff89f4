"""conda-forge.yml, and the stubs of migrations that a feedstock takes part in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.texts.lines import quoted
from feedstock_tools.platforms import Platform

#: Platforms for which conda-smithy makes jobs by default.
_ON_BY_DEFAULT = ("linux-64", "osx-64", "win-64")
_BY_DEFAULT = {"github": {"branch_name": "main", "tooling_branch_name": "main"}}


def conda_forge_settings(spec: Spec, recipe_format: str) -> list[str]:
    """The lines of conda-forge.yml: the settings that follow from the spec, overridden by its own.

    conda-smithy and its linter refuse a feedstock without this file, and an empty one: without settings, it has those
    that conda-smithy takes anyway.
    """
    settings: dict[str, Any] = {}
    builders = {
        subdir: platform.build_on for subdir, platform in spec.platforms.items() if platform and platform.build_on
    }
    if builders:
        settings["build_platform"] = {
            Platform.parse(target).name: Platform.parse(builder).name for target, builder in builders.items()
        }
    asked_for = [Platform.parse(s).name for s in spec.platforms if s not in _ON_BY_DEFAULT and s not in builders]
    if asked_for:
        settings["provider"] = dict.fromkeys(asked_for, "default")
    if recipe_format == "v1":
        settings["conda_build_tool"] = "rattler-build"
    return block_lines(_merged(settings, spec.conda_forge) or _BY_DEFAULT)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def block_lines(value: Any, indent: int = 0) -> list[str]:
    """Block YAML of strings, lists and mappings; strings are copied unchanged, so `true` stays a boolean."""
    blank = " " * indent
    lines: list[str] = []
    for key, content in value.items():
        if isinstance(content, dict) and content:
            lines += [f"{blank}{quoted(str(key))}:", *block_lines(content, indent + 2)]
        elif isinstance(content, list) and content:
            lines += [f"{blank}{quoted(str(key))}:", *_items(content, indent + 2)]
        else:
            lines.append(f"{blank}{quoted(str(key))}: {_scalar(content)}")
    return lines


def _items(items: list[Any], indent: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        if isinstance(item, dict) and item:
            first, *rest = block_lines(item, indent + 2)
            lines += [f"{' ' * indent}- {first.strip()}", *rest]
        else:
            lines.append(f"{' ' * indent}- {_scalar(item)}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    if value is None:
        return "null"
    text = str(value)
    return text if text.lower() in ("true", "false") or text.isdigit() else quoted(text)


def migration_stubs(spec: Spec) -> Mapping[PurePosixPath, dict[str, str]]:
    """The stubs in `.ci_support/migrations`: they select migrations, whose contents come from the pinning's copies.

    Raises:
        InputError: a migration has no time stamp (`with_time_stamps` takes it from the pinning).
    """
    unknown = [name for name, migration in spec.migrations.items() if migration.timestamp is None]
    if unknown:
        hint = "Run `feedstock-tools generate` with a pinning, which has them."
        raise InputError(f"there are no time stamps of the migrations {', '.join(unknown)}", hint=hint)
    return {
        PurePosixPath(f".ci_support/migrations/{name}.yaml"): {
            "timestamp": migration.timestamp or "",
            "number": str(migration.number),
        }
        for name, migration in spec.migrations.items()
    }
