"""The models of `feedstock.yaml`. Each field's description is its text in the JSON Schema.

All values come from YAML as strings, mappings and lists (see `reading`), so `3.10` stays 3.10 and `0012` stays 0012.
The schema is of draft 07, the newest that editors support throughout, and keeps to what SchemaStore asks of a schema:
an `$id`, a title and descriptions, no unknown keys, and nothing that validators ignore, such as keywords beside a
`$ref`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from feedstock_tools.generate.spec.items import (
    About,
    AboutOutput,
    ArchitectureChoice,
    ArchitecturesByVersion,
    Benchmark,
    Choice,
    Command,
    ConditionField,
    CudaVersions,
    EntryPoint,
    Environment,
    Glob,
    IgnoredExports,
    Items,
    Maintainer,
    MaybeCondition,
    Migration,
    Model,
    Needs,
    Offset,
    OrNames,
    PackageName,
    PythonVersions,
    RecipeFile,
    RecipeFiles,
    RequirementList,
    Sha256,
    Shorthand,
    SourceFolder,
    Subdir,
    Test,
    UsedKey,
    VariantValue,
    Verbatim,
)


class Patch(Model):
    """A patch of a source, or several by one pattern."""

    file: RecipeFiles = Field(
        description="The patch, relative to the recipe folder; `patches/*.patch` is all of these, by name."
    )
    when: MaybeCondition = Field(default=None, description="The builds that apply it; default: all.")
    why: str | None = Field(default=None, description="A comment to write above it.")


class Source(Model):
    """The origin of the source: exactly one of `url`, `git` and `path`."""

    url: Items[str] = Field(
        default=(), description="Address of an archive, or several of the same; `{version}` is filled in."
    )
    sha256: Sha256 | None = Field(default=None, description="Hash of the archive.")
    git: str | None = Field(default=None, description="Address of a git repository.")
    rev: str | None = Field(default=None, description="Commit or tag of the git repository.")
    path: str | None = Field(
        default=None,
        description="A folder or archive on disk, relative to the recipe folder; `{version}` is filled in.",
    )
    file_name: str | None = Field(default=None, description="The name of the downloaded file.")
    folder: SourceFolder | None = Field(default=None, description="Where to unpack it in the work folder.")
    patches: tuple[Annotated[Patch, Shorthand(string="file")], ...] = Field(
        default=(), description="Patches, in order."
    )
    when: MaybeCondition = Field(default=None, description="The builds that need the source.")

    @model_validator(mode="after")
    def _one_origin(self) -> Source:
        if sum(map(bool, (self.url, self.git, self.path))) != 1:
            raise ValueError("a source must have exactly one of 'url', 'git' and 'path'")
        if self.url and self.sha256 is None:
            raise ValueError("a source with a url must have a 'sha256'")
        if self.git and self.rev is None:
            raise ValueError("a source with git must have a 'rev'")
        return self


class PlatformSettings(Model):
    """How packages for a platform are built."""

    build_on: Subdir | None = Field(
        default=None, description="The platform of the machine that builds (cross-compiling)."
    )


#: An option that `CMAKE_ARGS`, a list of words, can hold.
_OptionOfCMake = Annotated[str, Field(pattern=r"^-[A-Za-z0-9_.:=/+,-]+$")]


class Script(Model):
    """A script by kind of machine."""

    unix: RecipeFile | None = Field(default=None, description="The script on Linux and macOS.")
    win: RecipeFile | None = Field(default=None, description="The script on Windows.")
    commands: tuple[Annotated[Command, Shorthand(string="command")], ...] = Field(
        default=(), description="Commands instead of a file."
    )
    template: Literal["cmake", "meson", "bazel", "pip", "setuptools", "scikit-build-core"] | None = Field(
        default=None, description="Generate a script that builds with this build system."
    )
    options: tuple[str, ...] = Field(
        default=(), description="Options for a template's build system: `-DUSE_X=ON`; for pip `-Csetup-args=-Dx=on`."
    )
    cuda_options: tuple[_OptionOfCMake, ...] = Field(
        default=(), description="Further options for CMake, in GPU builds alone: `-DUSE_CUDA=ON`."
    )
    folder: SourceFolder = Field(default=".", description="The folder in the sources that a template builds.")
    environment: Environment = Field(
        default={},
        description="Variables that the script sees, with their values; empty in recipe.yaml where no condition holds.",
    )

    @model_validator(mode="after")
    def _something(self) -> Script:
        if sum(map(bool, (self.commands, self.unix or self.win, self.template))) != 1:
            raise ValueError("a script must be a file (or 'unix' and 'win' files), a list of commands, or a template")
        if (self.options or self.folder != ".") and self.template is None:
            raise ValueError("'options' and 'folder' require a template")
        if self.cuda_options and self.template not in ("cmake", "scikit-build-core"):
            raise ValueError("'cuda_options' require the template cmake or scikit-build-core")
        return self


#: The name of a file without its ending.
_FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
KeyList = Items[Annotated[UsedKey, Shorthand(string="key")]]
ScriptField = Annotated[Script, Shorthand(string="unix", array="commands")]


class Requirements(Model):
    """Requirements by environment: the build's tools, the libraries it links to, and the package's own dependencies."""

    build: RequirementList = Field(default=(), description="Tools that run on the build machine.")
    host: RequirementList = Field(default=(), description="Packages to link or build against.")
    run: RequirementList = Field(default=(), description="Dependencies of the package.")
    run_constrained: RequirementList = Field(
        default=(), description="Constraints on packages that may or may not be installed."
    )


class Build(Model):
    """Settings for every output, and the build that runs once before the outputs collect their files."""

    number: int = Field(
        default=0, ge=0, lt=100_000, description="Build number; increase it with each build of the same version."
    )
    script: ScriptField | None = Field(
        default=None, description="A script that runs once; outputs collect their files from the work folder."
    )
    requirements: Requirements = Field(default=Requirements(), description="Requirements of that script.")
    offsets: tuple[Offset, ...] = Field(
        default=(), description="What some builds have on top of the number; those that hold add up."
    )
    ignore_run_exports: IgnoredExports = Field(
        default=IgnoredExports(), description="Run exports that its environments do not take over."
    )
    use_keys: KeyList = Field(
        default=(), description="Variant keys that split the recipe, though it does not name them."
    )


class RunExports(Model):
    """Dependencies of packages built against an output."""

    weak: RequirementList = Field(default=(), description="For packages that have it in `host`.")
    strong: RequirementList = Field(default=(), description="For packages that have it in `build` or `host`.")
    noarch: RequirementList = Field(default=(), description="For noarch packages that have it in `host`.")
    weak_constrains: RequirementList = Field(default=(), description="As `weak`, for `run_constrained`.")
    strong_constrains: RequirementList = Field(default=(), description="As `strong`, for `run_constrained`.")


class Skip(Model):
    """Builds that are not made."""

    when: ConditionField = Field(description="The skipped builds.")
    why: str | None = Field(default=None, description="A comment to write above it.")


class Output(Model):
    """A package."""

    name: str = Field(
        pattern=r"^[a-z0-9_]([a-z0-9_.-]|\{accelerator\})*$",
        max_length=128,
        description="Its name. With `{accelerator}` it stands for two packages, `…-cpu` and `…-gpu`.",
    )
    kind: Literal["library", "python", "metapackage"] = Field(
        description="`library`: not a Python package; `python`: built for each Python; `metapackage`: only pins."
    )
    why: str | None = Field(default=None, description="A comment to write above the output.")
    script: ScriptField | None = Field(default=None, description="The script that makes or collects its files.")
    version: str | None = Field(default=None, description="Its version; default: the feedstock's.")
    number: int | None = Field(default=None, ge=0, description="Its build number; default: the feedstock's.")
    string: Items[Annotated[Choice, Shorthand(string="value")]] = Field(
        default=(), description="Its build string; default: conda-build's, with the accelerator."
    )
    noarch: Literal["python", "generic"] | None = Field(default=None, description="One package for all platforms.")
    version_independent: MaybeCondition = Field(
        default=None, description="The builds that run with every Python that is newer."
    )
    files: tuple[Annotated[Glob, Shorthand(string="path")], ...] = Field(
        default=(), description="Its files in the prefix; default: all new ones."
    )
    exclude_files: tuple[Annotated[Glob, Shorthand(string="path")], ...] = Field(
        default=(), description="Files that `files` would match and the output does not have."
    )
    requirements: Requirements = Field(default=Requirements(), description="Its requirements.")
    pins: tuple[PackageName, ...] = Field(
        default=(), description="Outputs that it needs, pinned to the very build made with it."
    )
    run_exports: Annotated[RunExports, Shorthand(string="weak", array="weak")] = Field(
        default=RunExports(), description="Dependencies of packages built against it; a list means `weak`."
    )
    ignore_run_exports: IgnoredExports = Field(
        default=IgnoredExports(), description="Run exports that it does not take over."
    )
    track_features: RequirementList = Field(
        default=(), description="Features, which make solvers avoid it: one for each step."
    )
    use_keys: KeyList = Field(default=(), description="Variant keys that split it, though it does not name them.")
    ignore_keys: KeyList = Field(default=(), description="Variant keys that do not split it.")
    entry_points: tuple[EntryPoint, ...] = Field(default=(), description="Commands: `name = module:function`.")
    skip: tuple[Annotated[Skip, Shorthand(string="when")], ...] = Field(
        default=(), description="Builds without this output."
    )
    test: Test = Field(default=Test(), description="Tests of the built package.")
    benchmark: Annotated[Benchmark, Shorthand(array="commands")] | None = Field(
        default=None, description="The benchmark that `test --benchmark` runs."
    )
    kernels: bool | None = Field(
        default=None,
        description="Whether GPU builds must contain code for `cuda: architectures`; default: if they contain any.",
    )
    about: AboutOutput = Field(default=AboutOutput(), description="Its own description.")
    verbatim: tuple[Verbatim, ...] = Field(default=(), description="Lines of the recipe that have no keys here.")


class ArchitectureScript(Model):
    """A script that sets an environment variable to the architectures of the build's CUDA version: a generated one, or
    one that people wrote."""

    file: RecipeFile = Field(
        default="cuda_architectures.sh", pattern=r"\.sh$", description="Its name; build scripts source it."
    )
    edits: RecipeFile | None = Field(
        default=None,
        pattern=r"\.sh$",
        description="In place of a generated script, one that people wrote: its assignments of the variable.",
    )
    variable: str = Field(
        default="CUDA_ARCHITECTURES", pattern=r"^[A-Za-z_]\w*$", description="The variable that it sets."
    )
    style: Literal["list", "cmake", "torch", "gencode"] = Field(
        default="list", description="`sm_75,compute_75`; `75-real;75-virtual`; `7.5+PTX`; `-gencode arch=…`."
    )
    _text: str = ""

    @model_validator(mode="after")
    def _one_script(self) -> ArchitectureScript:
        if self.edits and "file" in self.model_fields_set:
            raise ValueError("'file' is generated and 'edits' is not: write one of them")
        return self

    @property
    def text(self) -> str:
        """The text of the script that people wrote; empty if it was not read."""
        return self._text

    def with_text(self, text: str) -> ArchitectureScript:
        """It, with the text of the script that people wrote."""
        known = self.model_copy()
        known._text = text
        return known


class Cuda(Model):
    """The GPU builds."""

    versions: CudaVersions = Field(
        default="pinning",
        description="`pinning`: those of pinning and migrations; `all`: all known ones; or a list.",
    )
    platforms: tuple[Subdir, ...] = Field(
        default=(), description="Platforms with GPU builds; default: those of the pinning."
    )
    libraries: tuple[PackageName, ...] = Field(
        default=(), description="cudnn, nccl, …: the requirements `use: cuda-libraries`."
    )
    architectures: ArchitectureChoice | None = Field(
        default=None,
        description="Architectures to compile for: a preset by name, a list, or a list for each CUDA version.",
    )
    presets: Mapping[str, ArchitecturesByVersion] = Field(default={}, description="Presets of this spec, by name.")
    script: ArchitectureScript | None = Field(
        default=None, description="A script that passes the architectures to the build."
    )
    guard: Literal["minor", "major", "any", "none"] = Field(
        default="major",
        description="The requirement of GPU builds on the driver: `__cuda >=12.9`, `__cuda >=12`, `__cuda`, nothing.",
    )


class Prefer(Model):
    """The build that a solver prefers if both fit."""

    accelerator: Literal["gpu", "cpu"] = Field(default="gpu", description="The build to prefer.")
    by: Literal["track_features", "build_number", "both"] = Field(
        default="build_number", description="The means of preference."
    )
    outputs: tuple[PackageName, ...] = Field(default=(), description="Outputs that carry `track_features`.")


class Spec(Model):
    """A feedstock."""

    name: PackageName = Field(description="Name of the feedstock, and of its packages' family.")
    version: str = Field(pattern=r"^[0-9a-z][0-9a-z._+!]*$", description="Version of all outputs.")
    format: Literal["v0", "v1"] = Field(default="v1", description="`v0`: meta.yaml (conda-build); `v1`: recipe.yaml.")
    pinning: Literal["conda-forge", "self-contained"] = Field(
        default="conda-forge",
        description="The source of dependency versions: conda-forge's pinning, or the recipe's own file.",
    )
    automatic: bool = Field(
        default=True,
        description="Whether Python, guards, `cuda-version`, skips and build strings are added to what is written.",
    )
    recipe_name: PackageName | None = Field(
        default=None,
        description="The name at the top of the recipe; default: the only output's, or the feedstock's with `-split`.",
    )
    values: Mapping[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")], str] = Field(
        default={}, description="Texts by the names under which other texts have them: `{name}`."
    )
    build: Build = Field(default=Build(), description="Settings for every output.")
    sources: tuple[Source, ...] = Field(default=(), description="The sources.")
    platforms: Annotated[Mapping[Subdir, PlatformSettings | None], Field(min_length=1)] = Field(
        description="The target platforms, each with its build platform if that differs."
    )
    python: PythonVersions = Field(default="pinning", description="The Pythons to build for.")
    cuda: Cuda | None = Field(default=None, description="The GPU builds; default: none.")
    migrations: Annotated[Mapping[_FileName, Migration], OrNames()] = Field(
        default={}, description="Migrations of conda-forge to apply: names, or each name with its time stamp."
    )
    variants: Mapping[str, Items[Annotated[VariantValue, Shorthand(string="value")]]] = Field(
        default={}, description="Keys of the variant configuration to set, with their values."
    )
    zip: tuple[tuple[str, ...], ...] = Field(
        default=(), description="Keys of `variants` whose values go together: the first with the first, and so on."
    )
    groups: Mapping[PackageName, RequirementList] = Field(default={}, description="Named lists of requirements.")
    outputs: Annotated[tuple[Output, ...], Field(min_length=1)] = Field(description="The packages.")
    prefer: Prefer = Field(default=Prefer(), description="Which build a solver takes if several fit.")
    skip: tuple[Annotated[Skip, Shorthand(string="when")], ...] = Field(
        default=(), description="Builds that are not made."
    )
    needs: Needs = Field(default=Needs(), description="The resources of one build.")
    about: About = Field(description="What the packages say of themselves.")
    maintainers: Annotated[tuple[Maintainer, ...], Field(min_length=1)] = Field(description="Names on GitHub.")
    verbatim: tuple[Verbatim, ...] = Field(default=(), description="Lines of the recipe that have no keys here.")
    conda_forge: Mapping[str, Any] = Field(
        default={}, description="More settings for conda-forge.yml, copied unchanged."
    )


#: Where SchemaStore would publish it.
SCHEMA_ID = "https://json.schemastore.org/feedstock-tools.json"
_EXAMPLE: dict[str, Any] = {
    "name": "demo",
    "version": "1.2.0",
    "sources": [{"url": "https://example.org/demo-{version}.tar.gz", "sha256": "0" * 64}],
    "platforms": {"linux-64": None, "linux-aarch64": None},
    "cuda": {"architectures": "common"},
    "outputs": [
        {
            "name": "libdemo",
            "kind": "library",
            "script": {"template": "cmake"},
            "requirements": {"build": [{"compiler": "cxx"}, {"compiler": "cuda"}, {"stdlib": "c"}, "cmake", "ninja"]},
            "run_exports": [{"pin": "libdemo", "max": "x.x"}],
            "test": {"commands": ["demo --version"]},
        }
    ],
    "about": {"homepage": "https://example.org", "license": "MIT", "license_file": "LICENSE", "summary": "A demo"},
    "maintainers": ["someone"],
}


def json_schema() -> dict[str, Any]:
    """The schema of `feedstock.yaml` (JSON Schema draft 07), as values for `json`."""
    schema = _for_editors(Spec.model_json_schema())
    return {
        **{key: value for key, value in schema.items() if key != "description"},
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SCHEMA_ID,
        "title": "feedstock of feedstock-tools",
        "description": "CPU and GPU packages of a conda-forge feedstock: its recipe and variant files follow from it",
        "examples": [_EXAMPLE],
    }


def _for_editors(schema: Any) -> Any:
    """The schema without the titles that repeat its keys, with numbers where texts are read, and `$ref` alone.

    An editor reads `3.10` as a number, whereas the spec is read as strings. Draft 07 ignores what stands beside a
    `$ref`.
    """
    if isinstance(schema, list):
        return [_for_editors(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    read = {key: _for_editors(part) for key, part in schema.items() if key != "title" or not isinstance(part, str)}
    if read.get("type") == "string" and "enum" not in read and "const" not in read:
        read["type"] = ["string", "number"]
    if "$ref" in read and len(read) > 1:
        return {"allOf": [{"$ref": read.pop("$ref")}], **read}
    return read
