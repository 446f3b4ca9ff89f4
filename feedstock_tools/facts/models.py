"""The form of the files of facts, as pydantic models.

They check a file before it is trusted: in tests, in `maintenance/facts`, and for a user's own file.
The shipped files are read without them, since pydantic takes longer to import than the facts take to read. The JSON
Schemas in `variants/`, which editors read, are generated from them (`python -m maintenance.facts schemas`).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

T = TypeVar("T")
#: The default of an optional key: defaults are not checked, so the key cannot be null.
ABSENT: Any = None


def _each_once(items: list[T]) -> list[T]:
    twice = next((item for at, item in enumerate(items) if item in items[:at]), None)
    if twice is not None:
        raise ValueError(f"'{twice}' is listed twice")
    return items


def compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from error
    return pattern


class FactsFile(BaseModel):
    """A part of a file of facts: only known keys, and values of exactly their type."""

    model_config = ConfigDict(extra="forbid", strict=True)


Text = Annotated[str, Field(pattern=r"\S")]
Address = Annotated[str, Field(pattern=r"^https://")]
Minor = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$")]
Numbers = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]
Subdir = Annotated[str, Field(pattern=r"^[a-z]+-[a-z0-9]+$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
#: The names that nvcc accepts after `sm_` and `compute_`.
Accepted = Annotated[str, Field(pattern=r"^[0-9]{2,3}[af]?$")]
Architecture = Annotated[str, Field(pattern=r"^(sm|compute)_[0-9]{2,3}[af]?$")]
Listed = Annotated[list[T], Field(min_length=1, json_schema_extra={"uniqueItems": True}), AfterValidator(_each_once)]


class SourceEntry(FactsFile):
    """A page or file that is the source of facts."""

    title: Text
    url: Address = Field(ABSENT)


def json_schema(model: type[FactsFile]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a file of facts, for editors."""
    schema = _without_null_defaults(model.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _without_null_defaults(schema: Any) -> Any:
    """An optional key has no value if it is left out; it cannot be null."""
    if isinstance(schema, list):
        return [_without_null_defaults(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_null_defaults(part) for key, part in schema.items() if not (key == "default" and part is None)
    }


class DriversEntry(FactsFile):
    """Driver versions by system; null where NVIDIA names none."""

    linux: Numbers | None
    windows: Numbers | None


class ToolkitEntry(FactsFile):
    """A CUDA toolkit as of its last release, with the driver of its first."""

    era: Literal["cudatoolkit", "cuda-version"] = Field(description="How conda-forge packages it.")
    architectures: Listed[Accepted] = Field(description="The names that nvcc accepts after sm_ and compute_.")
    ptx: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]$")] = Field(
        ABSENT, description="The version of PTX that its nvcc writes and its ptxas reads."
    )
    oldest_gcc: int = Field(ABSENT, description="The oldest major version of GCC that works, according to its source.")
    newest_gcc: int = Field(ABSENT, description="The newest major version of GCC that nvcc accepts.")
    newest_clang: int = Field(ABSENT, description="The newest major version of Clang that nvcc accepts.")
    visual_studio: Annotated[list[int], Field(min_length=2, max_length=2)] = Field(
        ABSENT, description="The oldest and the newest Visual Studio (year) that nvcc accepts."
    )
    newest_msvc: int = Field(ABSENT, description="The newest _MSC_VER that nvcc accepts, where a year has several.")
    newest_conda_forge_gcc: int = Field(
        ABSENT, description="The newest GCC that conda-forge's packages of it accept, where that is older than nvcc's."
    )
    driver: DriversEntry = Field(ABSENT, description="The driver that it ships with.")
    least_driver: DriversEntry | None = Field(description="The minimum driver that runs its machine code.")
    compat_branches: list[int] = Field(ABSENT, description="The driver branches that its cuda-compat runs with.")
    platforms: Listed[Subdir] = Field(ABSENT, description="The platforms for which conda-forge has it.")
    sources: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(
        description="For each fact above, the names of its sources."
    )


class PresetEntry(FactsFile):
    """A named list of GPU architectures."""

    description: str
    source: str
    lists: dict[Minor, Listed[Architecture]] = Field({}, description="Architectures by CUDA version.")
    candidates: Listed[Accepted] = Field(
        ABSENT, description="For CUDA versions without a list: the toolkit's own among these, the last as PTX too."
    )


class PinningRowEntry(FactsFile):
    """The values of conda-forge's pinning for a platform and a CUDA version."""

    cuda: Minor | None = Field(description="null for CPU builds.")
    platform: Subdir
    commit: Commit
    date: Day
    origin: Annotated[str, Field(pattern=r"^(pinning|ordering|migration [a-z0-9_]+)$")] = Field(
        description="The source of the version: the pinning, a migration, or only the ordering of a migration."
    )
    added: list[str] = Field([], description="Keys that the pinning of that day did not have.")
    note: str = Field(ABSENT)
    values: dict[str, str]


class PinningEntry(FactsFile):
    """The last values of conda-forge's global pinning for each platform and CUDA version."""

    repository: Address
    rows: list[PinningRowEntry]


class GoesWithEntry(FactsFile):
    """The CUDA versions that the run requirements of some builds allow."""

    built: str = Field(description="The CUDA versions it was built with, as a conda version specification.")
    versions: str = Field(ABSENT, description="The versions of the library; default: all.")
    cuda: str = Field(description="The CUDA versions that it runs with; {built} stands for the one it was built with.")
    commit: Commit
    patch: str = Field(ABSENT, description="The patch of the channel's metadata that says so, if the recipe does not.")


class ReleaseEntry(FactsFile):
    """A release of a library as its feedstock built it."""

    version: Numbers
    commit: Commit
    cuda: dict[Minor, Listed[Subdir]] = Field(
        description="The CUDA versions that it was built with, and the platforms of each."
    )


class GpuCodeEntry(FactsFile):
    """The oldest GPUs that some builds of a library have code for, read in its binaries."""

    versions: str = Field(description="The versions of the library, as a conda version specification.")
    cuda: str = Field(description="The CUDA versions of the builds, as a conda version specification.")
    capability: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]$")]
    source: Text


class LibraryEntry(FactsFile):
    """An NVIDIA library on conda-forge."""

    repository: Address
    goes_with: Annotated[list[GoesWithEntry], Field(min_length=1)] = Field(
        description="The versions that the run requirements of builds allow; the first entry that matches counts."
    )
    gpu_code: list[GpuCodeEntry] = Field([], description="The GPUs that builds have code for; default: any.")
    releases: list[ReleaseEntry] = Field(description="Newest first.")


class CudaFile(FactsFile):
    """The facts about CUDA: `variants/cuda.yaml`."""

    sources: dict[str, SourceEntry] = Field(description="The sources of facts, by a short name.")
    toolkits: dict[Minor, ToolkitEntry] = Field(description="CUDA toolkits by minor version.")
    presets: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")], PresetEntry] = Field(
        description="Named lists of GPU architectures."
    )
    pinning: PinningEntry
    libraries: dict[str, LibraryEntry] = Field(description="NVIDIA's libraries on conda-forge, by package name.")


class GenerationEntry(FactsFile):
    """A generation of GPUs; without `last_branch`, drivers still support it."""

    last_branch: Numbers = Field(ABSENT, description="The last driver branch that supports it.")
    dropped_in: Numbers = Field(ABSENT, description="The branch after that.")
    sources: Listed[Text]


class FirstDriverEntry(FactsFile):
    """The first driver for a chip: a version, or only its branch. Left out where no source names one."""

    linux: Numbers
    windows: Numbers = Field(ABSENT)


class ChipEntry(FactsFile):
    """The GPUs with a chip."""

    generation: Text
    capability: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]$")] = Field(description="The compute capability.")
    first_driver: FirstDriverEntry = Field(ABSENT)
    by_hand: bool = Field(False, description="Of a Jetson module: not in the lists of drivers, so written by hand.")
    names: Listed[Text] = Field(description="As NVIDIA sells them, without NVIDIA.")
    cuda: dict[Literal["first", "last"], Minor] = Field(
        {}, description="The first and the last CUDA toolkit in the system of a Jetson module."
    )
    listed: dict[str, Numbers] = Field(
        {}, description="The first driver for Linux that names a GPU, where that is later than the first open driver."
    )


class GpusFile(FactsFile):
    """GPUs, their chips and drivers: `variants/gpus.yaml`."""

    sources: dict[str, SourceEntry] = Field(description="The sources of facts, by a short name.")
    generations: dict[str, GenerationEntry]
    chips: dict[Annotated[str, Field(pattern=r"^G[A-Z][0-9]+[AB]?$|^AD[0-9]+$|^TU[0-9]+$")], ChipEntry]
    familiar: Listed[Text] = Field(description="Well-known GPUs, which stand for their capability in tables.")
    machines: dict[str, str] = Field(
        description="Machines, and machine types of clouds by their family, with their GPU."
    )


class MessageEntry(FactsFile):
    """An error message: a regular expression of Python, and texts in which {group} stands for a part of the message."""

    name: Text
    pattern: Annotated[str, AfterValidator(compiles)]
    means: Text
    user: Listed[Text] = Field(description="What those who run the program can do.")
    maintainer: Listed[Text] = Field(description="What those who build it can do.")
    ask: Listed[Text] | None = Field(None, description="Demands of `cuda resolve` that the judge is asked with.")
    commands: Listed[Text] | None = None
    sources: Listed[Text]
    harmless: bool = Field(False, description="Whether the program runs in spite of it.")


class MessagesFile(FactsFile):
    """Error messages and what they mean: `variants/messages.yaml`."""

    sources: dict[str, SourceEntry] = Field(description="The sources of facts, by a short name.")
    messages: list[MessageEntry]


class RecipeEntry(FactsFile):
    """The recipe of a package: a file of a feedstock at a commit, and the day of that commit."""

    feedstock: str
    commit: Commit
    date: Day
    path: str = "recipe/meta.yaml"


Templates = list[str] | dict[Annotated[str, Field(pattern=r"^(all|linux|osx|win|noarch|[a-z]+-[a-z0-9]+)$")], list[str]]


class RunExportsEntry(FactsFile):
    """The run exports of a package, by kind."""

    weak: Templates = Field([])
    strong: Templates = Field([])
    noarch: Templates = Field([])
    weak_constrains: Templates = Field([])
    strong_constrains: Templates = Field([])


class PackageEntry(FactsFile):
    """The keys of a package; every other key is a word that its values may use as `{key}`."""

    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, str]

    name: str = Field(ABSENT)
    version: str = Field(ABSENT)
    source: str = Field(ABSENT, description="A key of `sources`.")
    license: str = Field(ABSENT)
    subdirs: Listed[Subdir] = Field(ABSENT, description="One package for each.")
    noarch: Literal["generic", "python"] = Field(ABSENT, description="One package for all platforms.")
    number: Annotated[str, Field(pattern=r"^[0-9]+$")] = Field("0", description="The build number.")
    build: str = Field("h{hash}_{number}", description="The build string.")
    hash: str | dict[Subdir, str] = Field(ABSENT, description="The hash, or one for each subdir.")
    depends: Templates = Field([])
    constrains: Templates = Field([])
    track_features: Templates = Field([])
    exact: Templates = Field([], description="Packages of the same recipe, pinned to their exact build.")
    exact_constrains: Templates = Field([])
    run_exports: RunExportsEntry = Field(ABSENT)
    role: Literal["binutils", "c_compiler", "cxx_compiler", "python", "nvcc", "nvcc_activation", "make"] = Field(
        ABSENT, description="How the channel builds it."
    )


class FamilyEntry(PackageEntry):
    """The keys that some packages share, and a row of further keys for each of them."""

    __pydantic_extra__: dict[str, str]

    rows: Annotated[list[PackageEntry], Field(min_length=1)]


class PackagesFile(FactsFile):
    """The packages of the stand-in channel: `variants/packages.yaml`. Every scalar is read as a string."""

    sources: dict[str, RecipeEntry] = Field(description="Recipes, by a short name.")
    packages: list[FamilyEntry]


class OwnEntry(FactsFile):
    """What is behind a package whose metadata follows no recipe."""

    own: Text
    date: Day


class WheelEntry(FactsFile):
    """One wheel: its name in the index, its size and hash, and what it is for."""

    subdir: Subdir | Annotated[str, Field(pattern="^noarch$")]
    python: Minor = Field(ABSENT, description="The Python that it is for, if only one.")
    file: Annotated[str, Field(pattern=r"^[^/]+\.whl$")]
    size: Annotated[str, Field(pattern=r"^[0-9]+$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ToolEntry(FactsFile):
    """The wheels of a package."""

    name: Text
    version: Text
    project: Text = Field(ABSENT, description="Its name in the package index, if another.")
    needs: list[str] = Field([], description="The other tools that it runs with.")
    take: dict[str, str] = Field(
        ABSENT, description="Files and folders in the wheel, each with its place in the prefix."
    )
    files: Annotated[list[WheelEntry], Field(min_length=1)]


class ToolsFile(FactsFile):
    """The tools of the stand-in channel: `variants/tools.yaml`. Every scalar is read as a string."""

    sources: dict[str, RecipeEntry | OwnEntry] = Field(description="Recipes and other origins, by a short name.")
    packages: list[FamilyEntry]
    wheels: list[ToolEntry]


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
    channel: str = Field(ABSENT, description="The channel that has it so, where it is one of its own.")
    package: str = Field(ABSENT, description="The conda package whose build determines the accelerator.")
    builds: str = Field(ABSENT, description="The pattern of its build strings.")
    exact: str = Field(ABSENT, description="The pattern for builds made with the requested CUDA version.")
    conda: Listed[Text] = Field(ABSENT, description="Further conda packages.")
    python: str = Field(ABSENT, description="The versions of Python that its wheels support.")
    pip: Listed[Text] = Field(ABSENT, description="The packages that pip installs; the first is the framework.")
    variables: dict[str, str] = Field({}, description="Variables of the environment; {prefix} is its folder.")
    code: dict[Subdir, Text] = Field({}, description="The GPU code in wheels that are not read here, by its sources.")
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
    without_wheels: dict[str, str] = Field({}, description="Why PyPI has no wheel with GPU code, by project.")
    frameworks: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")], FrameworkEntry]


class FrameworkWheelEntry(FactsFile):
    """The last release of a minor version of a framework, as its wheels and their metadata say."""

    version: Numbers
    python: list[Minor]
    python_of_all: Listed[Minor] = Field(ABSENT, description="Those that every release of the minor version has.")
    platforms: Listed[Subdir]
    numpy: Text = Field(ABSENT)
    cuda: Text = Field(ABSENT, description="The CUDA runtime that its metadata asks for.")
    built: Numbers = Field(ABSENT, description="The CUDA it was built with, as it states itself, if it asks for none.")
    cudnn: Text = Field(ABSENT)
    nccl: Text = Field(ABSENT)
    code: dict[Subdir, Text] = Field(ABSENT, description="The GPU code of its kernels, by platform.")
    some: dict[Subdir, Text] = Field(ABSENT, description="GPU code that only some of its kernels have.")
    part: dict[Subdir, dict[Text, Text]] = Field(
        ABSENT, description="Of how many fat binaries GPUs of an architecture run how many, where not all."
    )
    mixed: dict[Subdir, dict[Text, Text]] = Field(
        ABSENT,
        description="The same for GPUs that run some by machine code and others by PTX, and none of `code` alone.",
    )
    unread: dict[Subdir, Text] = Field(ABSENT, description="Why the GPU code of a platform's wheel is not known.")


class CondaBuildEntry(FactsFile):
    """conda-forge's builds of a framework for a CUDA, of the last release of a minor version."""

    version: Numbers
    built: Minor = Field(description="The CUDA.")
    platforms: Listed[Subdir]
    commit: Annotated[str, Field(pattern="^[0-9a-f]{10}$")] = Field(description="The feedstock's.")
    code: dict[Subdir, Text] = Field(ABSENT, description="The list of architectures, by platform.")
    unread: dict[Subdir, Text] = Field(ABSENT, description="Why the list of a platform is not known.")


class TestedEntry(FactsFile):
    """What a release was tested with."""

    cuda: Numbers = Field(description="A minor version, or every one of a major version.")
    cudnn: Numbers


class TestedReleasesEntry(FactsFile):
    """Releases of a framework by minor version, whose metadata names no CUDA."""

    source: SourceEntry
    releases: dict[Minor, TestedEntry]


class ReportedEntry(FactsFile):
    """GPUs on which PTX in wheels fails although a driver should compile it, as users report."""

    capabilities: Listed[Annotated[str, Field(pattern="^[0-9]{2,3}$")]]
    message: Text
    source: SourceEntry


class WheelsFile(FactsFile):
    """The wheels of frameworks: `variants/wheels.yaml`."""

    tested: dict[str, TestedReleasesEntry] = Field(
        description="What releases without CUDA in their metadata work with."
    )

    reported: dict[str, list[ReportedEntry]] = Field({}, description="What fails where the facts let it run.")
    wheels: dict[str, list[FrameworkWheelEntry]] = Field(description="Releases by framework, oldest first.")
    conda: dict[str, list[CondaBuildEntry]] = Field({}, description="conda-forge's builds by package, oldest first.")
    libraries: dict[str, Listed[Numbers]] = Field({}, description="Releases of NVIDIA's libraries on PyPI.")


#: The files of facts, each with its model.
FILES: dict[str, type[FactsFile]] = {
    "cuda.yaml": CudaFile,
    "frameworks.yaml": FrameworksFile,
    "gpus.yaml": GpusFile,
    "messages.yaml": MessagesFile,
    "packages.yaml": PackagesFile,
    "tools.yaml": ToolsFile,
    "wheels.yaml": WheelsFile,
}
