"""What a maintainer writes: the models of `feedstock.yaml`. Each field's description is its text in the JSON Schema.

All values come from YAML as text, mappings and lists (see `reading`), so `3.10` stays 3.10 and `0012` stays 0012.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from feedstock_tools.generate.spec.requirement_items import (
    ConditionField,
    Items,
    MaybeCondition,
    Model,
    PackageName,
    RequirementList,
    Shorthand,
)
from feedstock_tools.generate.spec.words import (
    ArchitectureChoice,
    ArchitecturesByVersion,
    CudaVersions,
    PythonVersions,
    RecipeFile,
    Sha256,
    Size,
    Subdir,
)

__all__ = [
    "About",
    "ArchitectureScript",
    "Build",
    "Command",
    "Cuda",
    "Migration",
    "Needs",
    "Output",
    "Patch",
    "PlatformSettings",
    "Prefer",
    "Requirements",
    "RunExports",
    "Script",
    "Skip",
    "Source",
    "Spec",
    "Test",
    "VariantValue",
]


class Patch(Model):
    """A patch of a source."""

    file: RecipeFile = Field(description="The patch, relative to the recipe folder.")
    when: MaybeCondition = Field(default=None, description="Where it is applied; everywhere when absent.")
    why: str | None = Field(default=None, description="A comment to write above it.")


class Source(Model):
    """Where the source comes from: one of `url`, `git` and `path`."""

    url: Items[str] = Field(
        default=(), description="Address of an archive, or several of the same; `{version}` is filled in."
    )
    sha256: Sha256 | None = Field(default=None, description="Hash of the archive.")
    git: str | None = Field(default=None, description="Address of a git repository.")
    rev: str | None = Field(default=None, description="Commit or tag of the git repository.")
    path: str | None = Field(default=None, description="A folder of the feedstock, relative to the recipe folder.")
    folder: RecipeFile | None = Field(default=None, description="Where to unpack it in the work folder.")
    patches: tuple[Annotated[Patch, Shorthand(string="file")], ...] = Field(
        default=(), description="Patches, in order."
    )
    when: MaybeCondition = Field(default=None, description="For which builds the source is needed.")

    @model_validator(mode="after")
    def _one_origin(self) -> Source:
        if sum(map(bool, (self.url, self.git, self.path))) != 1:
            raise ValueError("a source has one of 'url', 'git' and 'path'")
        if self.url and self.sha256 is None:
            raise ValueError("a source with a url needs its 'sha256'")
        if self.git and self.rev is None:
            raise ValueError("a source with git needs a 'rev'")
        return self


class PlatformSettings(Model):
    """How packages for a platform are made."""

    build_on: Subdir | None = Field(
        default=None, description="The platform of the machine that builds (cross-compiling)."
    )


class Script(Model):
    """A script by kind of machine."""

    unix: RecipeFile | None = Field(default=None, description="The script on Linux and macOS.")
    win: RecipeFile | None = Field(default=None, description="The script on Windows.")
    commands: tuple[str, ...] = Field(default=(), description="Commands instead of a file.")
    template: Literal["cmake", "pip"] | None = Field(
        default=None, description="Generate a script that builds in the usual way of `cmake` or `pip`."
    )

    @model_validator(mode="after")
    def _something(self) -> Script:
        if sum(map(bool, (self.commands, self.unix or self.win, self.template))) != 1:
            raise ValueError("a script is a file (by 'unix' and 'win'), a list of commands, or a template")
        return self


ScriptField = Annotated[Script, Shorthand(string="unix", array="commands")]


class Requirements(Model):
    """What must be installed, by moment: where the build runs, what is linked to, and what the package needs."""

    build: RequirementList = Field(default=(), description="Tools that run on the machine that builds.")
    host: RequirementList = Field(default=(), description="What is linked or built against.")
    run: RequirementList = Field(default=(), description="What the package needs when it is used.")
    run_constrained: RequirementList = Field(default=(), description="Limits on packages that may be there or not.")


class Build(Model):
    """What is true of every output, and what is built once before the outputs take their parts."""

    number: int = Field(default=0, ge=0, lt=1000, description="Grows with each build of the same version.")
    script: ScriptField | None = Field(
        default=None, description="Built once; outputs take their files from the work folder."
    )
    requirements: Requirements = Field(default=Requirements(), description="What that script needs.")


class RunExports(Model):
    """What packages built against an output depend on."""

    weak: RequirementList = Field(default=(), description="For those that have it in `host`.")
    strong: RequirementList = Field(default=(), description="For those that have it in `build` or `host`.")


class Command(Model):
    """A command of a test."""

    command: str = Field(description="The command.")
    when: MaybeCondition = Field(default=None, description="Where it is run; everywhere when absent.")


class Test(Model):
    """What must hold of an output after it was built."""

    imports: tuple[str, ...] = Field(default=(), description="Modules that Python can import.")
    pip_check: bool = Field(default=False, description="Run `pip check`.")
    commands: tuple[Annotated[Command, Shorthand(string="command")], ...] = Field(
        default=(), description="Commands that must exit 0."
    )
    files: tuple[RecipeFile, ...] = Field(default=(), description="Files of the recipe folder that the commands need.")
    requires: RequirementList = Field(default=(), description="Packages that the test needs.")


class Benchmark(Model):
    """What measures a package: programs that print a line of JSON, with `name`, `value` and `unit`, for each figure."""

    commands: tuple[str, ...] = Field(min_length=1, description="Commands, run one after the other.")
    requires: tuple[str, ...] = Field(default=(), description="Packages that they need besides the package itself.")


class Skip(Model):
    """Builds that are not made."""

    when: ConditionField = Field(description="Which builds.")
    why: str | None = Field(default=None, description="A comment to write above it.")


class Output(Model):
    """A package."""

    name: str = Field(
        pattern=r"^[a-z0-9_]([a-z0-9_.-]|\{accelerator\})*$",
        max_length=128,
        description="Its name. With `{accelerator}` it stands for two packages, `…-cpu` and `…-gpu`.",
    )
    kind: Literal["library", "python", "metapackage"] = Field(
        description="`library`: files in no Python; `python`: built for each; `metapackage`: pins of other outputs."
    )
    why: str | None = Field(default=None, description="A comment to write above the output.")
    script: ScriptField | None = Field(default=None, description="What makes or collects its files.")
    files: tuple[str, ...] = Field(
        default=(), description="Files in the prefix that belong to it; otherwise all new ones."
    )
    requirements: Requirements = Field(default=Requirements(), description="What it needs.")
    pins: tuple[PackageName, ...] = Field(
        default=(), description="Outputs that it needs in exactly the build made with it."
    )
    run_exports: Annotated[RunExports, Shorthand(string="weak", array="weak")] = Field(
        default=RunExports(), description="What packages built against it depend on; a list is `weak`."
    )
    entry_points: tuple[str, ...] = Field(default=(), description="Commands: `name = module:function`.")
    skip: tuple[Annotated[Skip, Shorthand(string="when")], ...] = Field(
        default=(), description="Builds that do not have this output."
    )
    test: Test = Field(default=Test(), description="What must hold after it was built.")
    benchmark: Annotated[Benchmark, Shorthand(array="commands")] | None = Field(
        default=None, description="What `test --benchmark` runs."
    )
    kernels: bool | None = Field(
        default=None,
        description="Whether GPU builds hold code for `cuda: architectures`; when absent, checked where there is any.",
    )


class ArchitectureScript(Model):
    """A generated script that sets an environment variable to the architectures of the build's CUDA version."""

    file: RecipeFile = Field(
        default="cuda_architectures.sh", pattern=r"\.sh$", description="Its name; build scripts source it."
    )
    variable: str = Field(
        default="CUDA_ARCHITECTURES", pattern=r"^[A-Za-z_]\w*$", description="The variable that it sets."
    )
    style: Literal["list", "cmake", "torch", "gencode"] = Field(
        default="list", description="`sm_75,compute_75`; `75-real;75-virtual`; `7.5+PTX`; `-gencode arch=…`."
    )


class Cuda(Model):
    """The GPU builds."""

    versions: CudaVersions = Field(
        default="pinning",
        description="`pinning`: what pinning and migrations say; `all` that the facts know; or a list.",
    )
    platforms: tuple[Subdir, ...] = Field(
        default=(), description="Platforms with GPU builds; those of the pinning when absent."
    )
    libraries: tuple[PackageName, ...] = Field(
        default=(), description="cudnn, nccl, …: the requirements `use: cuda-libraries`."
    )
    architectures: ArchitectureChoice | None = Field(
        default=None, description="What nvcc compiles for: a preset by name, a list, or a list for each CUDA version."
    )
    presets: Mapping[str, ArchitecturesByVersion] = Field(default={}, description="Presets of this spec, by name.")
    script: ArchitectureScript | None = Field(
        default=None, description="A script that tells the build its architectures."
    )
    guard: Literal["minor", "major", "any", "none"] = Field(
        default="minor",
        description="What GPU builds ask of the driver: `__cuda >=11.2`, `__cuda >=11`, `__cuda`, nothing.",
    )


class Prefer(Model):
    """Which build a solver takes where both would do."""

    accelerator: Literal["gpu", "cpu"] = Field(default="gpu", description="The build to prefer.")
    by: Literal["track_features", "build_number", "both"] = Field(default="build_number", description="By what means.")
    outputs: tuple[PackageName, ...] = Field(default=(), description="Outputs that carry `track_features`.")


class Needs(Model):
    """What one build (one row of a configuration) takes, for planning and for its limits."""

    cores: int | None = Field(default=None, ge=1, description="Processor cores that it can use.")
    memory: Size | None = Field(default=None, description="The most that it takes: 64 GiB.")
    memory_per_job: Size | None = Field(
        default=None, description="What one job of its compiler takes, such as 2 GiB: bounds the number of jobs."
    )
    disk: Size | None = Field(default=None, description="What its folder grows to: 50 GB.")
    time: str | None = Field(
        default=None, pattern=r"^\d+(\.\d+)? ?(s|min|h)$", description="How long it takes, as far as is known: 3 h."
    )
    gpu: bool = Field(default=False, description="Its tests need a GPU.")


class About(Model):
    """What people read of the packages."""

    homepage: str = Field(description="The project's page.")
    license: str = Field(description="SPDX expression: Apache-2.0")
    license_file: Items[str] = Field(default=(), description="Files with the text of the license.")
    summary: str = Field(description="One line.")
    description: str | None = Field(default=None, description="Some paragraphs.")
    documentation: str | None = Field(default=None, description="Address of the documentation.")
    repository: str | None = Field(default=None, description="Address of the repository.")


class VariantValue(Model):
    """A value of a variant key."""

    value: str = Field(description="The value.")
    when: MaybeCondition = Field(default=None, description="For which platforms.")


class Migration(Model):
    """A migration of conda-forge that the feedstock takes part in; its content is the pinning's copy."""

    timestamp: str = Field(pattern=r"^\d+(\.\d+)?$", description="Its `migrator_ts`.")
    number: int = Field(default=1, ge=0, description="Its `migration_number`.")


class Spec(Model):
    """A feedstock."""

    name: PackageName = Field(description="Name of the feedstock, and of its packages' family.")
    version: str = Field(pattern=r"^[0-9a-z][0-9a-z._+!]*$", description="Version of all outputs.")
    format: Literal["v0", "v1"] = Field(default="v1", description="`v0`: meta.yaml (conda-build); `v1`: recipe.yaml.")
    pinning: Literal["conda-forge", "self-contained"] = Field(
        default="conda-forge",
        description="Where versions of dependencies come from: conda-forge's pinning or the named files.",
    )
    build: Build = Field(default=Build(), description="What is true of every output.")
    sources: tuple[Source, ...] = Field(default=(), description="Where the source comes from.")
    platforms: Annotated[Mapping[Subdir, PlatformSettings | None], Field(min_length=1)] = Field(
        description="The platforms that packages are made for, and which machine builds for which."
    )
    python: PythonVersions = Field(default="pinning", description="The Pythons to build for.")
    cuda: Cuda | None = Field(default=None, description="The GPU builds; none when absent.")
    migrations: Mapping[PackageName, Migration] = Field(
        default={}, description="Migrations of conda-forge that are applied."
    )
    variants: Mapping[str, Items[Annotated[VariantValue, Shorthand(string="value")]]] = Field(
        default={}, description="Keys of the variant configuration to set, with their values."
    )
    groups: Mapping[PackageName, RequirementList] = Field(default={}, description="Named lists of requirements.")
    outputs: Annotated[tuple[Output, ...], Field(min_length=1)] = Field(description="The packages.")
    prefer: Prefer = Field(default=Prefer(), description="Which build a solver takes where both would do.")
    skip: tuple[Annotated[Skip, Shorthand(string="when")], ...] = Field(
        default=(), description="Builds that are not made."
    )
    needs: Needs = Field(default=Needs(), description="What one build takes.")
    about: About = Field(description="What people read of the packages.")
    maintainers: Annotated[tuple[str, ...], Field(min_length=1)] = Field(description="Names on GitHub.")
    conda_forge: Mapping[str, Any] = Field(default={}, description="More settings for conda-forge.yml, as they are.")
