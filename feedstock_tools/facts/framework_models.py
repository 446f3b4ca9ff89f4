"""The form of the files of facts about frameworks, as pydantic models: see `models`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from feedstock_tools.facts.form import ABSENT, Address, FactsFile, Listed, Minor, Numbers, SourceEntry, Subdir, Text


class AddressEntry(FactsFile):
    """A page that is the source of facts."""

    title: Text
    url: Address


class WayEntry(FactsFile):
    """One way to install a framework; {cuda}, {major} and {digits} are 12.9, 12 and 129."""

    accelerator: Literal["gpu", "cpu"]
    platforms: Listed[Subdir]
    cuda: str = Field(ABSENT, description="The CUDA versions that it supports; default: all.")
    versions: str = Field(ABSENT, description="The versions of the framework that it installs; default: all.")
    wheels: str = Field(ABSENT, description="A key of wheels.yaml: one way for each release there; {minor} is its own.")
    package: str = Field(ABSENT, description="The conda package whose build determines the accelerator.")
    builds: str = Field(ABSENT, description="The pattern of its build strings.")
    exact: str = Field(ABSENT, description="The pattern for builds made with the requested CUDA version.")
    conda: Listed[Text] = Field(ABSENT, description="Further conda packages.")
    python: str = Field(ABSENT, description="The versions of Python that its wheels support.")
    pip: Listed[Text] = Field(ABSENT, description="The packages that pip installs; the first is the framework.")
    variables: dict[str, str] = Field({}, description="Variables of the environment; {prefix} is its folder.")
    sources: Listed[Text]


class NoWayEntry(FactsFile):
    """The reason why there is no way to install a framework."""

    accelerator: Literal["gpu", "cpu"]
    platforms: Listed[Subdir]
    reason: Text
    sources: Listed[Text]


class FrameworkEntry(FactsFile):
    """A framework and the ways to install it, the best first."""

    also: Listed[Text] = Field(ABSENT, description="Other names that people use for it.")
    check: Text = Field(description="One line of code that shows whether it sees the GPU.")
    ways: Annotated[list[WayEntry], Field(min_length=1)]
    none: Annotated[list[NoWayEntry], Field(min_length=1)] = Field(ABSENT)


class FrameworksFile(FactsFile):
    """How frameworks are installed with and without a GPU: `variants/frameworks.yaml`."""

    sources: dict[str, AddressEntry] = Field(description="The sources of facts, by a short name.")
    without_cuda: dict[Subdir, str] = Field(description="Why no framework runs on CUDA there, by platform.")
    frameworks: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")], FrameworkEntry]


class WheelEntry(FactsFile):
    """The last release of a minor version of a framework, as its wheels and their metadata say."""

    version: Numbers
    python: Listed[Minor]
    platforms: Listed[Subdir]
    numpy: Text = Field(ABSENT)
    cuda: Text = Field(ABSENT, description="The CUDA runtime that its metadata asks for.")
    cudnn: Text = Field(ABSENT)


class TestedEntry(FactsFile):
    """What a release was tested with."""

    cuda: Minor
    cudnn: Minor


class TestedReleasesEntry(FactsFile):
    """Releases of a framework by minor version, whose metadata names no CUDA."""

    source: SourceEntry
    releases: dict[Minor, TestedEntry]


class WheelsFile(FactsFile):
    """The wheels of frameworks: `variants/wheels.yaml`."""

    tested: dict[str, TestedReleasesEntry] = Field(
        description="What releases without CUDA in their metadata work with."
    )

    wheels: dict[str, list[WheelEntry]] = Field(description="Releases by framework, oldest first.")
