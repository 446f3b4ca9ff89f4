"""The form that files of facts share: strict values, only known keys, and a JSON Schema for editors."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

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
