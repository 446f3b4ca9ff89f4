"""The form of the files of facts, as pydantic models.

They check a file before it is trusted: in tests, in `maintenance/facts.py`, and for a user's own file.
The shipped files are read without them, since pydantic takes longer to import than the facts take to read. The JSON
Schemas in `variants/`, which editors read, are generated from them (`python maintenance/facts.py schemas`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from feedstock_tools.facts.form import (
    ABSENT,
    Accepted,
    Address,
    Architecture,
    Commit,
    Day,
    FactsFile,
    Listed,
    Minor,
    Numbers,
    SourceEntry,
    Subdir,
    Text,
    compiles,
)


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
        ABSENT,
        description="For CUDA versions without a list: the toolkit's own among these, the last as PTX too.",
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
    check: Listed[Text]
    commands: Listed[Text]
    sources: Listed[Text]


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
