"""Parts of a spec that a recipe has as they are: build strings, offsets of build numbers, blocks of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from feedstock_tools.generate.spec.items.requirements import (
    ConditionField,
    Items,
    MaybeCondition,
    Model,
    RequirementList,
    Shorthand,
)


class Choice(Model):
    """A text for some builds."""

    value: str = Field(description="The text; `{…}` is filled in.")
    when: MaybeCondition = Field(default=None, description="The builds with this text; default: all others.")


class Offset(Model):
    """An amount that some builds have on top of the build number."""

    by: int = Field(ge=0, description="The amount.")
    when: ConditionField = Field(description="The builds that have it.")
    why: str | None = Field(default=None, description="A comment to write above it.")


class Glob(Model):
    """Files of an output in the prefix."""

    path: str = Field(description="A path or a pattern.")
    when: MaybeCondition = Field(default=None, description="The builds with these files; default: all.")


class UsedKey(Model):
    """A key of the variant configuration that splits an output, or does not."""

    key: str = Field(pattern=r"^[A-Za-z_]\w*$", description="The key.")
    when: MaybeCondition = Field(default=None, description="The builds for which that is so; default: all.")


class IgnoredExports(Model):
    """Run exports that an output does not take over."""

    packages: RequirementList = Field(default=(), description="The packages that would be required.")
    exporters: RequirementList = Field(default=(), description="The packages whose run exports are ignored.")


class AboutOutput(Model):
    """What an output's description has in place of the recipe's."""

    homepage: str | None = Field(default=None, description="The project's page.")
    license: str | None = Field(default=None, description="SPDX expression.")
    license_file: tuple[str, ...] = Field(default=(), description="Files with the text of the license.")
    license_family: str | None = Field(default=None, description="The family of the license.")
    summary: str | None = Field(default=None, description="One line.")
    description: str | None = Field(default=None, description="Some paragraphs.")
    documentation: str | None = Field(default=None, description="Address of the documentation.")
    repository: str | None = Field(default=None, description="Address of the repository.")


#: Where a block of text goes.
VerbatimSection = Literal["top", "source", "build", "test", "about", "extra"]


class Verbatim(Model):
    """Lines of a recipe that the spec has no keys for, copied as they stand."""

    section: VerbatimSection = Field(description="The section of the recipe or of the output that has the lines.")
    v0: str | None = Field(default=None, description="The lines in a meta.yaml; empty: none are needed.")
    v1: str | None = Field(default=None, description="The lines in a recipe.yaml; empty: none are needed.")
    why: str | None = Field(default=None, description="A comment to write above them.")

    @model_validator(mode="after")
    def _some_text(self) -> Verbatim:
        if not (self.v0 or self.v1):
            raise ValueError("a verbatim block must have lines for 'v0', 'v1' or both")
        return self


Environment = Mapping[
    Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")], Items[Annotated[Choice, Shorthand(string="value")]]
]
