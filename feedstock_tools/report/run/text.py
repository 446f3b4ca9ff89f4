"""How a run ended: the table of packages, and the same as values for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.builds.runs.run import Outcome
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.units import size_text
from feedstock_tools.wording import counted, table

__all__ = ["summary_json", "summary_text"]

#: So many packages that were built before are listed with the new ones.
_MOST_UNCHANGED = 40


def summary_text(artifacts: Artifacts, outcomes: Sequence[Outcome], left_out: Mapping[str, str]) -> str:
    """The table of packages with size, sha256 and time, then what did not succeed, then where things are.

    Args:
        left_out: configurations that were not to be built, with the reasons.
    """
    unique = _unique(outcomes)
    built = [(outcome, outcome.record) for outcome in unique if outcome.record and outcome.record.result == "done"]
    lines = ["", *_packages(built), *_failures(artifacts, unique)]
    lines += _left_out(built)
    if built and not any(outcome.new for outcome in unique) and len(built) == len(unique):
        lines.append("Nothing to do: everything is built and unchanged.")
    for channel in dict.fromkeys(record.packages[0].channel for _, record in built):
        where = (artifacts.root / channel).as_uri()
        lines.append(f"Channel: {where}{'' if channel == '.' else '  (built on the stand-in channel)'}")
    if any(outcome.new for outcome in unique):
        lines.append(f"Logs:    {artifacts.logs}")
    if left_out:
        lines.append(f"Left out, since they cannot be built here: {counted(len(left_out), 'configuration')}.")
    return "\n".join(lines)


def summary_json(artifacts: Artifacts, outcomes: Sequence[Outcome], left_out: Mapping[str, str]) -> Mapping[str, Any]:
    """The outcomes of a run as values that JSON has."""
    return {
        "artifacts": str(artifacts.root),
        "outputs": [
            {
                "configuration": outcome.configuration,
                "row": outcome.row.name,
                "name": outcome.output.name,
                "version": outcome.output.version,
                "build": outcome.output.build,
                "result": outcome.record.result if outcome.record else "not reached",
                "new": outcome.new,
                "reason": outcome.record.reason if outcome.record else "",
                "seconds": outcome.record.seconds if outcome.record else None,
                "log": str(artifacts.root / outcome.record.log) if outcome.record else None,
                "marks": dict(outcome.record.marks) if outcome.record else {},
                "packages": [
                    {
                        "path": str(artifacts.root / package.channel / package.file),
                        "size": package.size,
                        "sha256": package.sha256,
                    }
                    for package in (outcome.record.packages if outcome.record else ())
                ],
            }
            for outcome in _unique(outcomes)
        ],
        "left_out": dict(left_out),
    }


def _unique(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Each output once, though several rows share it; the new one where one of them built it."""
    found: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        key = (outcome.output.subdir, outcome.output.stem)
        if key not in found or outcome.new:
            found[key] = outcome
    return list(found.values())


def _packages(built: Sequence[tuple[Outcome, BuildRecord]]) -> list[str]:
    """The table; of many packages that were built before only how many they are."""
    new = [each for each in built if each[0].new]
    unchanged = len(built) - len(new)
    shown = new if unchanged > _MOST_UNCHANGED else built
    head = ("package", "size", "sha256", "time")
    lines = [table(head, [_package_row(*each) for each in shown], right=frozenset({1, 3}))] if shown else []
    return lines if shown is built else [*lines, f"{counted(unchanged, 'package')} built before and unchanged."]


def _package_row(outcome: Outcome, record: BuildRecord) -> tuple[str, ...]:
    package = record.packages[0]
    time = f"{record.seconds:.2f} s" if outcome.new and record.seconds is not None else "unchanged"
    return package.file, size_text(package.size), package.sha256, time


def _failures(artifacts: Artifacts, outcomes: Sequence[Outcome]) -> list[str]:
    lines = []
    for outcome in outcomes:
        record = outcome.record
        if record is not None and record.result != "done":
            lines.append(f"\nFAILED: {outcome.output.stem}: {record.reason}")
            lines.append(f"Log:    {artifacts.root / record.log}")
            folder = artifacts.private(outcome.row.name)
            if folder.is_dir():
                lines.append(f"Its work folder is kept until the next build: {folder}")
    missing = sum(outcome.record is None for outcome in outcomes)
    return [*lines, f"{counted(missing, 'more output')} not reached."] if missing else lines


def _left_out(built: Sequence[tuple[Outcome, BuildRecord]]) -> list[str]:
    """How many packages' tests were not run, by the reason, and with which Pythons."""
    reasons: dict[str, list[str]] = {}
    for outcome, record in built:
        if record.marks.get("tests") == "left out":
            reasons.setdefault(record.marks.get("tests-reason", ""), []).append(outcome.row.python or "")
    return [
        f"Tests left out for {counted(len(pythons), 'package')}{_with(pythons)}: {reason}."
        for reason, pythons in reasons.items()
    ]


def _with(pythons: Sequence[str]) -> str:
    known = [python for python in dict.fromkeys(pythons) if python]
    return f" of Python {', '.join(known)}" if known else ""
