"""Parts of a spec about the whole feedstock: its description, resources, variant values and migrations."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from feedstock_tools.generate.spec.items.requirements import Items, MaybeCondition, Model
from feedstock_tools.generate.spec.words import Size


class Needs(Model):
    """The resources of one build (one row of a configuration), for planning and for its limits."""

    cores: int | None = Field(default=None, ge=1, description="Processor cores that it can use.")
    memory: Size | None = Field(default=None, description="Its memory limit: 64 GiB.")
    memory_per_job: Size | None = Field(
        default=None, description="The memory of one compiler job, such as 2 GiB: limits the number of jobs."
    )
    disk: Size | None = Field(default=None, description="The final size of its folder: 50 GB.")
    time: str | None = Field(
        default=None, pattern=r"^\d+(\.\d+)? ?(s|min|h)$", description="Its approximate duration: 3 h."
    )
    gpu: bool = Field(default=False, description="Whether its tests need a GPU.")
    labels: Items[str] | None = Field(default=None, description="What else its host must have: big-disk.")


class About(Model):
    """The description of the packages."""

    homepage: str = Field(description="The project's page.")
    license: str = Field(description="SPDX expression: Apache-2.0")
    license_file: Items[str] = Field(default=(), description="Files with the text of the license.")
    license_family: str | None = Field(default=None, description="The family of the license: BSD")
    license_url: str | None = Field(default=None, description="Address of the text of the license.")
    summary: str = Field(description="One line.")
    description: str | None = Field(default=None, description="Some paragraphs.")
    documentation: str | None = Field(default=None, description="Address of the documentation.")
    repository: str | None = Field(default=None, description="Address of the repository.")


class VariantValue(Model):
    """A value of a variant key."""

    value: str = Field(description="The value.")
    when: MaybeCondition = Field(default=None, description="The platforms with this value.")


class Migration(Model):
    """A migration of conda-forge that the feedstock takes part in; its content comes from the pinning's copy."""

    timestamp: Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")] | None = Field(
        default=None, description="Its `migrator_ts`; default: that of the pinning's copy."
    )
    number: int = Field(default=1, ge=0, description="Its `migration_number`.")
