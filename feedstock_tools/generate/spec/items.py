"""The parts that the models of a spec are made of: words, conditions, requirements, texts, tests, descriptions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function, no_info_plain_validator_function

from feedstock_tools.conditions.spec import ConditionError, parse
from feedstock_tools.conditions.tree import Condition
from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.content import ARCHITECTURE
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform, usual_name
from feedstock_tools.wording import nearest


class WordError(ValueError):
    """An unexpected word; `hint` names what was expected."""

    def __init__(self, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.hint = hint


def _check_subdir(text: str) -> str:
    try:
        return Platform.parse(text).subdir
    except InputError as error:
        hint = nearest(usual_name(text), KNOWN_SUBDIRS, error.mistakes[0].hint)
        raise WordError(error.mistakes[0].message, hint) from None


def _matching(pattern: str, message: str) -> AfterValidator:
    """Refuse texts of another form; `{}` in the message is the text."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(message.format(text))
        return text

    return AfterValidator(check)


def _within(place: str, *, itself: bool = False, star: bool = False) -> AfterValidator:
    """Refuse paths that lead out of a place; `itself`: the place may be named, too; `star`: so may a pattern."""

    def check(text: str) -> str:
        path = PurePosixPath(text)
        is_plain = re.fullmatch(r"[A-Za-z0-9_.+@/-]+", text.replace("*", "") if star else text) and (
            itself or path.parts
        )
        if not is_plain or path.is_absolute() or ".." in path.parts:
            raise ValueError(f"'{text}' is not the name of {place}")
        return text

    return AfterValidator(check)


Subdir = Annotated[str, AfterValidator(_check_subdir)]
RecipeFile = Annotated[str, _within("a file in the recipe folder")]
RecipeFiles = Annotated[str, _within("files in the recipe folder", star=True)]
SourceFolder = Annotated[str, _within("a folder below the sources", itself=True)]
CudaVersion = Annotated[str, _matching(r"\d{1,2}\.\d{1,2}", "'{}' is not a CUDA version such as 11.2")]
PythonVersion = Annotated[str, _matching(r"\d\.\d{1,2}", "'{}' is not a Python version such as 3.12")]
Architecture = Annotated[
    str,
    _matching(ARCHITECTURE.pattern, "'{}' is not an architecture such as sm_86 (machine code) or compute_86 (PTX)"),
]
#: An amount of memory or disk, such as `64 GiB`.
Size = Annotated[str, Field(pattern=r"^\d+(\.\d+)? ?[KMGT]i?B$")]
EntryPoint = Annotated[
    str, _matching(r"\s*[^\s=]+\s*=\s*[\w.]+:[\w.]+\s*", "'{}' is not a command such as name = module:function")
]
Maintainer = Annotated[
    str, _matching(r"[\w-]+(/[\w.-]+)?", "'{}' is neither a name on GitHub nor a team such as conda-forge/cuda")
]
Sha256 = Annotated[str, _matching(r"[0-9a-f]{64}", "a sha256 must have 64 digits of 0-9 and a-f")]
ArchitecturesByVersion = Mapping[CudaVersion, Annotated[tuple[Architecture, ...], Field(min_length=1)]]


def _shape(value: Any) -> str:
    """The member of a union that a value belongs to, so that mistakes are reported for that member only."""
    if isinstance(value, dict):
        return "<mapping>"
    return "<list>" if isinstance(value, list | tuple) else "<word>"


def _word_or_list(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<word>"


CudaVersions = Annotated[
    Annotated[Literal["pinning", "all"], Tag("<word>")]
    | Annotated[tuple[CudaVersion, ...], Field(min_length=1), Tag("<list>")],
    Discriminator(_word_or_list),
]
PythonVersions = Annotated[
    Annotated[Literal["pinning"], Tag("<word>")]
    | Annotated[tuple[PythonVersion, ...], Field(min_length=1), Tag("<list>")],
    Discriminator(_word_or_list),
]
ArchitectureChoice = Annotated[
    Annotated[str, Tag("<word>")]
    | Annotated[tuple[Architecture, ...], Field(min_length=1), Tag("<list>")]
    | Annotated[ArchitecturesByVersion, Tag("<mapping>")],
    Discriminator(_shape),
]


_Item = TypeVar("_Item")

#: The kinds of entries in a list of requirements; each entry has exactly one of these keys.
REQUIREMENT_KINDS = ("package", "compiler", "stdlib", "cdt", "pin", "compatible", "use")


class Model(BaseModel):
    """The base of all parts of a spec: no unknown keys, and immutable values."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


def _condition(value: Any) -> Condition:
    if not isinstance(value, str):
        raise ConditionError("a condition must be a string", "Such as: linux and cuda")
    return parse(value)


def _list_of(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


class _OrOne:
    """Tells the schema that a single entry may be written without a list."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        return {"anyOf": [schema["items"], schema]}


class Shorthand:
    """A short form of a model, for the reader and for the schema: a string or a list instead of `{key: …}`."""

    def __init__(self, **keys: str) -> None:
        self.keys = keys

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(self._expanded, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [*({"type": kind} for kind in self.keys), handler(core)]}

    def _expanded(self, value: Any) -> Any:
        kind = "string" if isinstance(value, str) else "array" if isinstance(value, list) else ""
        return {self.keys[kind]: value} if kind in self.keys else value


class OrNames(Shorthand):
    """A mapping that may be written as the list of its keys, for the reader and for the schema."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "array", "items": {"type": "string"}}, handler(core)]}

    def _expanded(self, value: Any) -> Any:
        return {name: {} for name in value if isinstance(name, str)} if isinstance(value, list) else value


class _ParsedCondition:
    """Reads a condition, without a schema of its tree, which pydantic would build for each field."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_plain_validator_function(_condition)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "examples": ["linux and cuda", "not osx", "cuda >= 12", "python < 3.12"]}


ConditionField = Annotated[Condition, _ParsedCondition()]
MaybeCondition = Annotated[Condition | None, _ParsedCondition()]
PackageName = Annotated[
    str,
    _matching(r"[a-z0-9_][a-z0-9_.-]{0,127}", "'{}' is not a package name (small letters, digits, '-', '_' and '.')"),
]
#: A name, optionally with a version and a build string; placeholders are filled in later.
PackageSpec = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9_{][A-Za-z0-9_.{}-]*([ <>=!~*][^\n\[\]#]*(\[\w+=[^\n\[\]#]*\])?)?",
        "'{}' is not a requirement such as 'numpy >=1.19,<2'",
    ),
]
#: A list whose single entry may be written without the list.
Items = Annotated[tuple[_Item, ...], BeforeValidator(_list_of), _OrOne()]
_Language = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
_PinExpression = Annotated[str, Field(pattern=r"^(x(\.x)*|none|\d[\w.]*|\{\w+\})$")]


class Requirement(Model):
    """One entry of a list of requirements; a string means a `package`."""

    package: PackageSpec | None = Field(
        default=None, description="A package: `numpy >=1.19,<2`, `grpcio {grpc_cpp}.*`."
    )
    compiler: _Language | None = Field(
        default=None, description="The compiler of a language: `c`, `cxx`, `fortran`, `cuda`."
    )
    stdlib: _Language | None = Field(default=None, description="The standard library of a language: `c`.")
    cdt: PackageSpec | None = Field(default=None, description="A package of the system that the sysroot has.")
    pin: PackageName | None = Field(default=None, description="Another output, pinned to the very build made with it.")
    compatible: PackageName | None = Field(default=None, description="A package compatible with the one in `host`.")
    use: str | None = Field(default=None, description="A group of requirements, or `cuda-libraries`.")
    max: _PinExpression | None = Field(
        default=None, description="Upper limit of a pin: `x.x` keeps the minor version; a version; `none`."
    )
    min: _PinExpression | None = Field(
        default=None, description="Lower limit of a pin, or `none`; default: the version built with."
    )
    exact: bool | None = Field(
        default=None, description="Whether a pin is on the very build; default: if it has no limits."
    )
    when: MaybeCondition = Field(default=None, description="The builds with this entry; default: all.")
    why: str | None = Field(default=None, description="A comment to write above it.")

    @model_validator(mode="after")
    def _one_kind(self) -> Requirement:
        kinds = [kind for kind in REQUIREMENT_KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise ValueError(f"a requirement must have exactly one of {', '.join(REQUIREMENT_KINDS)}")
        if (self.max or self.min or self.exact is not None) and kinds[0] not in ("pin", "compatible"):
            raise ValueError("'max', 'min' and 'exact' require 'pin' or 'compatible'")
        return self

    @property
    def kind(self) -> str:
        """The one of `REQUIREMENT_KINDS` that is set."""
        return next(kind for kind in REQUIREMENT_KINDS if getattr(self, kind) is not None)


RequirementItem = Annotated[Requirement, Shorthand(string="package")]
RequirementList = Items[RequirementItem]


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
    license_url: str | None = Field(default=None, description="Address of the text of the license.")
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


class Command(Model):
    """A command of a script or a test."""

    command: str = Field(description="The command.")
    when: MaybeCondition = Field(default=None, description="The builds that run it; default: all.")
    why: str | None = Field(default=None, description="A comment to write above it.")


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
    files: tuple[RecipeFiles, ...] = Field(
        default=(), description="Files of the recipe folder needed by the commands; `cases/*` is all of these."
    )
    source_files: tuple[str, ...] = Field(default=(), description="Files of the sources needed by the commands.")
    requires: RequirementList = Field(default=(), description="Packages that the test needs.")


class Benchmark(Model):
    """A benchmark of a package: programs that print a line of JSON, with `name`, `value` and `unit`, for each
    figure."""

    commands: tuple[str, ...] = Field(min_length=1, description="Commands to run in order.")
    requires: tuple[str, ...] = Field(default=(), description="Further packages that they need.")


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


#: Lines of a migration; selectors may follow any of them and make the rest no YAML.
TIME_STAMP = re.compile(r"^migrator_ts:\s*[0-9.]+", re.MULTILINE)
USE_LOCAL = re.compile(r"^\s+use_local:\s*true\b", re.MULTILINE)


class Migration(Model):
    """A migration that the feedstock takes part in: one of conda-forge, whose contents come from the pinning's copy, or
    one of its own."""

    timestamp: Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")] | None = Field(
        default=None, description="Its `migrator_ts`; default: that of the pinning's copy."
    )
    number: int = Field(default=1, ge=0, description="Its `migration_number`.")
    verbatim: str | None = Field(
        default=None, description="The whole file, for a migration of the feedstock's own (`use_local: true`)."
    )

    @model_validator(mode="after")
    def _whole_or_stub(self) -> Migration:
        if self.verbatim is None:
            return self
        if self.model_fields_set & {"timestamp", "number"}:
            raise ValueError("'verbatim' has the time stamp and the number")
        if not TIME_STAMP.search(self.verbatim) or not USE_LOCAL.search(self.verbatim):
            raise ValueError("'verbatim' must have a 'migrator_ts', and 'use_local: true' below '__migrator'")
        return self
