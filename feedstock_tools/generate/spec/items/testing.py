"""The tests and benchmarks of an output in a spec."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from feedstock_tools.generate.spec.items.requirements import MaybeCondition, Model, RequirementList, Shorthand
from feedstock_tools.generate.spec.words import RecipeFile


class Command(Model):
    """A command of a script or a test."""

    command: str = Field(description="The command.")
    when: MaybeCondition = Field(default=None, description="The builds that run it; default: all.")


class Import(Model):
    """A module that a test imports."""

    module: str = Field(description="The module.")
    when: MaybeCondition = Field(default=None, description="The builds that import it; default: all.")


class Test(Model):
    """Tests of a built output."""

    imports: tuple[Annotated[Import, Shorthand(string="module")], ...] = Field(
        default=(), description="Modules that Python must be able to import."
    )
    pip_check: bool = Field(default=False, description="Run `pip check`.")
    commands: tuple[Annotated[Command, Shorthand(string="command")], ...] = Field(
        default=(), description="Commands that must exit 0."
    )
    files: tuple[RecipeFile, ...] = Field(default=(), description="Files of the recipe folder needed by the commands.")
    source_files: tuple[str, ...] = Field(default=(), description="Files of the sources needed by the commands.")
    requires: RequirementList = Field(default=(), description="Packages that the test needs.")


class Benchmark(Model):
    """A benchmark of a package: programs that print a line of JSON, with `name`, `value` and `unit`, for each
    figure."""

    commands: tuple[str, ...] = Field(min_length=1, description="Commands to run in order.")
    requires: tuple[str, ...] = Field(default=(), description="Further packages that they need.")
