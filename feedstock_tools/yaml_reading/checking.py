"""A YAML document checked against a pydantic model: every mistake with its place, and the nearest valid word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ValidationError
from pydantic_core import ErrorDetails

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.wording import nearest
from feedstock_tools.yaml_reading.nodes import Document, Location

Model = TypeVar("Model", bound=BaseModel)

#: pydantic's kind of mistake → our message. `{input}` is the value in the file, the rest comes from pydantic.
_MESSAGES = {
    "missing": "'{key}' is missing",
    "extra_forbidden": "unknown key '{key}' in {of}",
    "literal_error": "'{input}' is not one of {expected}",
    "int_parsing": "'{input}' is not a whole number",
    "int_type": "expected a whole number, not {shape}",
    "float_parsing": "'{input}' is not a number",
    "float_type": "expected a number, not {shape}",
    "bool_parsing": "'{input}' is neither true nor false",
    "string_type": "expected a string, not {shape}",
    "list_type": "expected a list, not {shape}",
    "tuple_type": "expected a list, not {shape}",
    "mapping_type": "expected a mapping, not {shape}",
    "dict_type": "expected a mapping, not {shape}",
    "model_type": "expected a mapping, not {shape}",
    "model_attributes_type": "expected a mapping, not {shape}",
    "string_pattern_mismatch": "'{input}' has the wrong form",
    "string_too_long": "'{input}' is too long",
    "too_short": "expected at least one entry",
    "greater_than_equal": "{input} is too small",
    "less_than": "{input} is too large",
}


def readable_by(read: Callable[[str], object]) -> AfterValidator:
    """A text of a model that a function reads without a mistake."""

    def check(text: str) -> str:
        try:
            read(text)
        except InputError as error:
            raise ValueError(error.mistakes[0].message) from error
        return text

    return AfterValidator(check)


def model_of(document: Document, content: Any, model: type[Model], document_name: str) -> Model:
    """The content of a document as a model has it.

    Raises:
        InputError: it breaks the model; all mistakes in one error.
    """
    mistakes, read = list(document.mistakes), None
    try:
        read = model.model_validate(content)
    except ValidationError as error:
        mistakes += mistakes_of(document, error, model, document_name)
    if mistakes or read is None:
        unique = dict.fromkeys(mistakes)
        raise InputError.of(sorted(unique, key=lambda mistake: (mistake.line or 0, mistake.column or 0)))
    return read


def mistakes_of(document: Document, error: ValidationError, root: type[BaseModel], document_name: str) -> list[Mistake]:
    """Each mistake with its line and column in the file.

    Args:
        error: the model's errors for the document's content.
        root: the model of the whole document.
        document_name: the name of such a document: `a spec`.
    """
    found = error.errors(include_url=False)
    return [_mistake(document, details, root, document_name) for details in found if not _follows(details, found)]


def _follows(details: ErrorDetails, found: Sequence[ErrorDetails]) -> bool:
    """Whether a list counts as too short only because entries of it are invalid."""
    place = details["loc"]
    return details["type"] == "too_short" and any(
        len(other["loc"]) > len(place) and other["loc"][: len(place)] == place for other in found
    )


def _mistake(document: Document, details: ErrorDetails, root: type[BaseModel], document_name: str) -> Mistake:
    location = _in_file(document, details["loc"])
    message, hint = _message_and_hint(details, location, root, document_name)
    of_key = details["type"] == "extra_forbidden" or "[key]" in details["loc"]
    return document.mistake(location, message, hint, of_key=of_key)


def _in_file(document: Document, location: Location) -> Location:
    """pydantic's location without the names of union members, which are not in the file."""
    inner: Location = ()
    for at, part in enumerate(location):
        longer = (*inner, part)
        last = at == len(location) - 1
        if (
            longer in document.values
            or longer in document.keys
            or (last and isinstance(part, str) and part.isidentifier())
        ):
            inner = longer
    return inner


def _message_and_hint(
    details: ErrorDetails, location: Location, root: type[BaseModel], document_name: str
) -> tuple[str, str | None]:
    error = details.get("ctx", {}).get("error")
    if details["type"] == "value_error":
        return str(error), getattr(error, "hint", None) or _hint_of_field(location, root)
    names = {
        "key": location[-1] if location else "",
        "of": f"'{_owner(location[:-1], document_name)}'" if len(location) > 1 else document_name,
        "input": details["input"],
        "expected": str(details.get("ctx", {}).get("expected", "")).replace(" or ", ", "),
        "shape": _shape(details["input"]),
    }
    template = _MESSAGES.get(details["type"])
    message = template.format(**names) if template else f"{details['msg']}"
    return message, _hint(details, location, root)


def _owner(location: Location, document_name: str) -> str:
    """The last name of a location, the owner of the key: `outputs`, not `3`."""
    return str(next((part for part in reversed(location) if isinstance(part, str)), document_name))


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    return f"'{value}'" if value else "an empty string"


def _hint(details: ErrorDetails, location: Location, root: type[BaseModel]) -> str | None:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "string_type" and isinstance(details["input"], bool | int | float):
        return "Write it in quotes."
    if kind == "literal_error":
        words = [word.strip(" '") for word in str(context.get("expected", "")).replace(" or ", ",").split(",")]
        # A model may take a list in place of such a word.
        listed = f"Or a list: [{details['input']}]" if details["loc"][-1] == "<word>" else ""
        return nearest(str(details["input"]), words, " ".join([_known(words), listed]).strip())
    if kind == "extra_forbidden":
        model = _model_at(location[:-1], root)
        return _nearest(str(location[-1]), list(model.model_fields)) if model else None
    if kind in ("greater_than_equal", "less_than"):
        return f"It must be {'at least' if 'ge' in context else 'below'} {context.get('ge', context.get('lt'))}."
    return _hint_of_field(location, root)


def _hint_of_field(location: Location, root: type[BaseModel]) -> str | None:
    named = [part for part in location if isinstance(part, str)]
    model = _model_at(location[: location.index(named[-1])] if named else (), root)
    described = model.model_fields.get(named[-1]) if model and named else None
    return f"{named[-1]}: {described.description}" if described and described.description else None


def _nearest(word: str, words: list[str]) -> str:
    return nearest(word, words, _known(words))


def _known(words: list[str]) -> str:
    return f"Known names: {', '.join(sorted(words))}."


def _model_at(location: Location, root: type[BaseModel]) -> type[BaseModel] | None:
    """The model whose keys stand at a location, None if the keys are free."""
    model: type[BaseModel] | None = root
    for part in location:
        if model is None:
            return None
        if isinstance(part, int):
            continue
        described = model.model_fields.get(part)
        if described is None:
            continue  # a free key, such as the name of a platform or a group
        model = _model_in(described.annotation)
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    arguments = [argument for argument in get_args(annotation) if argument is not ...]
    if not isinstance(annotation, type) or issubclass(annotation, Mapping | tuple):
        return next((model for argument in arguments if (model := _model_in(argument)) is not None), None)
    return None
