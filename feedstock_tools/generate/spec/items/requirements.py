"""The smallest parts of a spec: conditions, package names, and the entries of a list of requirements."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

from feedstock_tools.conditions.grammar import ConditionError
from feedstock_tools.conditions.spec import parse
from feedstock_tools.conditions.tree import Condition

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


def _check_package_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9_][a-z0-9_.-]{0,127}", text):
        raise ValueError(f"'{text}' is not a package name (small letters, digits, '-', '_' and '.')")
    return text


def _check_package_spec(text: str) -> str:
    """A name, optionally with a version and a build string; placeholders are filled in later."""
    if not re.fullmatch(r"[A-Za-z0-9_{][A-Za-z0-9_.{}-]*([ <>=!~*][^\n\[\]#]*(\[\w+=[^\n\[\]#]*\])?)?", text):
        raise ValueError(f"'{text}' is not a requirement such as 'numpy >=1.19,<2'")
    return text


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


class OrNames:
    """A mapping that may be written as the list of its keys, for the reader and for the schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(self._expanded, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "array", "items": {"type": "string"}}, handler(core)]}

    def _expanded(self, value: Any) -> Any:
        return {name: {} for name in value if isinstance(name, str)} if isinstance(value, list) else value


ConditionField = Annotated[
    Condition,
    PlainValidator(_condition),
    WithJsonSchema({"type": "string", "examples": ["linux and cuda", "not osx", "cuda >= 12", "python < 3.12"]}),
]
MaybeCondition = Annotated[
    Condition | None,
    PlainValidator(_condition),
    WithJsonSchema({"type": "string", "examples": ["linux and cuda", "not osx", "cuda >= 12", "python < 3.12"]}),
]
PackageName = Annotated[str, AfterValidator(_check_package_name)]
SubpackageName = PackageName
PackageSpec = Annotated[str, AfterValidator(_check_package_spec)]
#: A list whose single entry may be written without the list.
Items = Annotated[tuple[_Item, ...], BeforeValidator(_list_of), _OrOne()]
_Language = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
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
    pin: SubpackageName | None = Field(
        default=None, description="Another output, pinned to the very build made with it."
    )
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
