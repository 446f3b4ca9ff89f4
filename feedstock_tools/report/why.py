"""The answers of `why` and `outputs` as text for people and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from feedstock_tools.rerender.outputs import PackageFile
from feedstock_tools.rerender.why.model import Absence, Explanation, FileLine, Loss, Use, ValueOrigin, VariantStep
from feedstock_tools.wording import named, values_of

_LONGEST = 90
#: Selectors and conditions are the answer, and are shown whole where they are not absurd.
_LONGEST_CONDITION = 300


def as_lines(explanations: Sequence[Explanation], root: Path) -> Iterator[str]:
    """Lines of text, key by key; configurations with the same answer share them, and all of a key what they share.

    Args:
        root: the feedstock; paths are relative to it.
    """
    keys: dict[str, dict[Explanation, list[str]]] = {}
    for explanation in explanations:
        alike = keys.setdefault(explanation.key, {})
        alike.setdefault(replace(explanation, configuration=""), []).append(explanation.configuration)
    for number, (key, answers) in enumerate(keys.items()):
        uses = [{replace(use, outputs=()) for use in each.uses} for each in answers]
        common = set.intersection(*uses) if len(uses) > 1 else set()
        shared: dict[Use, tuple[str, ...]] = dict.fromkeys(common, ())
        for at, (explanation, names) in enumerate(answers.items()):
            if number or at:
                yield ""
            yield from _lines_of(explanation, names, root)
            own = []
            for use in explanation.uses:
                alone = replace(use, outputs=())
                if alone in shared:
                    shared[alone] = tuple(dict.fromkeys((*shared[alone], *use.outputs)))
                else:
                    own.append(use)
            yield from _uses(own, root)
        if shared:
            yield f"\n{key}, in each of these"
            first = dict.fromkeys(replace(use, outputs=()) for use in next(iter(answers)).uses)
            yield from _uses((replace(use, outputs=shared[use]) for use in first if use in shared), root)


def _lines_of(explanation: Explanation, names: Sequence[str], root: Path) -> Iterator[str]:
    notes = [*(["splits jobs"] if explanation.splits_jobs else [])]
    if explanation.zipped_with:
        notes.append(f"zipped with {', '.join(explanation.zipped_with)}")
    yield explanation.key + (f" ({'; '.join(notes)})" if notes else "")
    yield f"  in {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    for value in explanation.values:
        yield f"  value {value.value!r}"
        if value.rule:
            yield f"    {value.rule}"
        yield from (f"    {_line_of_place(place, root)}" for place in value.places)
    yield from (f"  {_setting(setting, root)}" for setting in explanation.settings)


def _uses(uses: Iterable[Use], root: Path) -> Iterator[str]:
    """What uses a key, one after another; those of one kind share its line."""
    before = ""
    for use in uses:
        of = f" [{', '.join(use.outputs)}]" if use.outputs else ""
        line = f"  used: {use.kind}, {use.why}{of}"
        if line != before:
            yield line
        before = line
        if use.place is not None:
            yield f"    {_line_of_place(use.place, root)}"


def _line_of_place(place: FileLine, root: Path, longest: int = _LONGEST) -> str:
    text = place.text if len(place.text) <= longest else f"{place.text[:longest]}…"
    return f"{_named(place.path, root)}:{place.line}  {text}"


def _named(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _setting(setting: VariantStep, root: Path) -> str:
    file = f" ({_named(setting.places[0].path, root)}:{setting.places[0].line})" if setting.places else ""
    values = f" {', '.join(dict.fromkeys(setting.values))}" if setting.values else ""
    before = ", ".join(dict.fromkeys(setting.replaced))
    over = f", before {before}" if before and setting.effect in ("replaces", "changes") else ""
    return f"step: {setting.source}{file} {setting.effect}{values}{over}"


def as_plain(explanations: Sequence[Explanation]) -> list[dict[str, Any]]:
    """Lists, mappings, strings and numbers, as in JSON."""
    return [
        {
            "configuration": explanation.configuration,
            "key": explanation.key,
            "splits_jobs": explanation.splits_jobs,
            "zipped_with": list(explanation.zipped_with),
            "values": [_value(value) for value in explanation.values],
            "steps": [_step(setting) for setting in explanation.settings],
            "uses": [_use(use) for use in explanation.uses],
        }
        for explanation in explanations
    ]


def _value(value: ValueOrigin) -> dict[str, Any]:
    return {"value": str(value.value), "rule": value.rule, "places": [_place(place) for place in value.places]}


def _step(setting: VariantStep) -> dict[str, Any]:
    return {
        "source": setting.source,
        "effect": setting.effect,
        "values": [str(value) for value in setting.values],
        "before": [str(value) for value in setting.replaced],
        "places": [_place(place) for place in setting.places],
    }


def _use(use: Use) -> dict[str, Any]:
    place = _place(use.place) if use.place is not None else None
    return {"kind": use.kind, "why": use.why, "place": place, "outputs": list(use.outputs)}


def _place(place: FileLine) -> dict[str, Any]:
    return {"file": str(place.path), "line": place.line, "text": place.text}


def absences_as_lines(absences: Sequence[Absence], root: Path) -> Iterator[str]:
    """Lines of text; platforms with the same answer share them.

    Args:
        root: the feedstock; paths are relative to it.
    """
    alike: dict[tuple[tuple[str, ...], tuple[Loss, ...]], list[str]] = {}
    for absence in absences:
        alike.setdefault((absence.jobs, absence.losses), []).append(absence.platform)
    for (jobs, losses), platforms in alike.items():
        if jobs:
            more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
            yield f"{', '.join(platforms)}: there is a job, {jobs[0]}{more}"
            continue
        yield f"{', '.join(platforms)}: no job"
        for loss in losses:
            yield f"  {loss.kind}: {loss.why}"
            yield from (f"    {_line_of_place(place, root, _LONGEST_CONDITION)}" for place in loss.places)


def absences_as_plain(absences: Sequence[Absence]) -> list[dict[str, Any]]:
    """Lists, mappings, strings and numbers, as in JSON."""
    return [
        {
            "platform": absence.platform,
            "jobs": list(absence.jobs),
            "losses": [
                {"kind": loss.kind, "why": loss.why, "places": [_place(place) for place in loss.places]}
                for loss in absence.losses
            ],
        }
        for absence in absences
    ]


def outputs_text(files: Sequence[PackageFile]) -> str:
    """The files by configuration, one a line; '' if there are none."""
    lines: list[str] = []
    for place, file in enumerate(files):
        if place == 0 or files[place - 1].configuration != file.configuration:
            lines.append(named(file.configuration))
        lines.append(f"  {named(str(file.path))}")
    return "".join(f"{line}\n" for line in lines)


def outputs_json(files: Sequence[PackageFile]) -> list[dict[str, Any]]:
    """The files for JSON."""
    return [
        {
            **values_of(file, "configuration", "subdir"),
            "file": file.file_name,
            **values_of(file, "name", "version"),
            "build": file.build_string,
            "build_number": file.build_number,
        }
        for file in files
    ]
