"""From a file to a `Spec`, or to all its mistakes: where, what was expected, and the nearest valid word."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.file_names import SPEC_NAME
from feedstock_tools.generate.spec.cross_checks import check_files, cross_check
from feedstock_tools.generate.spec.finding import Finding
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.spec.named_migrations import STUBS, with_time_stamps
from feedstock_tools.reading import is_file, read_text
from feedstock_tools.yaml_reading.checking import mistakes_of
from feedstock_tools.yaml_reading.positions import Document, parse_document

#: The file at the top of a feedstock that holds its spec.
_LARGEST_SPEC = 1024 * 1024


def read_spec(path: Path) -> Spec:
    """Read a spec: the file itself, or the folder of a feedstock that has one.

    Migrations without a time stamp have that of the feedstock's stubs, if all of those are there.

    Raises:
        InputError: it cannot be read or has mistakes; all of them, each with line and column.
    """
    spec = read_spec_as_written(path)
    folder = path if path.is_dir() else path.parent
    has_stubs = all(is_file(folder / STUBS / f"{name}.yaml") for name in spec.migrations)
    return with_time_stamps(spec, folder, None, folder / SPEC_NAME) if has_stubs else spec


def read_spec_as_written(path: Path) -> Spec:
    """Like `read_spec`, without looking at the feedstock's stubs of migrations."""
    file = path / SPEC_NAME if path.is_dir() else path
    if not file.exists():
        hint = "This is the spec from which the recipe is generated. Write it, or name the folder that contains it."
        raise InputError("there is no such file", path=file, hint=hint)
    return spec_from_text(read_text(file, _LARGEST_SPEC, within=file.parent), file, file.parent / "recipe")


def spec_from_text(text: str, path: Path | None = None, recipe: Path | None = None) -> Spec:
    """Like `read_spec`, for a string.

    Args:
        path: named in the mistakes.
        recipe: the folder that must contain the scripts, patches and tests; not checked if None.
    """
    document = parse_document(text, path)
    mistakes = list(document.mistakes)
    if not isinstance(document.content, dict):
        raise InputError("a spec must be a mapping with keys such as name, version and outputs", path=path, line=1)
    spec: Spec | None = None
    try:
        spec = Spec.model_validate(document.content)
    except ValidationError as error:
        mistakes += mistakes_of(document, error, Spec, "a spec")
    findings = [*cross_check(document.content), *(check_files(document.content, recipe) if recipe else ())]
    mistakes += [_from_finding(document, finding) for finding in findings]
    if mistakes or spec is None:
        unique = dict.fromkeys(mistakes)
        raise InputError.of(sorted(unique, key=lambda mistake: (mistake.line or 0, mistake.column or 0)))
    return spec


def _from_finding(document: Document, finding: Finding) -> Mistake:
    place = document.place(finding.location)
    return Mistake(finding.message, document.path, place.line, place.column, finding.hint)
