"""Notes before a run, and its result: the table of packages, and values for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.wording import counted, duration, shown, size_text, table

if TYPE_CHECKING:
    from feedstock_tools.builds.ledger import BuildRecord, ComparisonRecord, PackageRecord
    from feedstock_tools.builds.plan.agenda import Agenda
    from feedstock_tools.builds.plan.workspace import Workspace
    from feedstock_tools.builds.runs.run import BuildResult, Outcome
    from feedstock_tools.feedstock.layout import Artifacts
    from feedstock_tools.feedstock.planned import PlannedConfiguration

#: The maximum number of earlier packages that are listed with the new ones.
_MOST_UNCHANGED = 40
#: The most that a note lists.
_FEW = 4


def left_out_notes(left_out: Mapping[str, str], titles: Mapping[str, str], where: str = "here") -> Iterator[str]:
    """The configurations that `--all` leaves out, with the reasons; `where` they cannot be built."""
    from feedstock_tools.builds.plan.refusals import in_words

    return (f"Left out: {line}" for line in in_words(left_out, where, titles))


def engine_notes(workspace: Workspace, chosen: Sequence[PlannedConfiguration]) -> Iterator[str]:
    """Notes on the engines of configurations, unless they are the embedded one, and why others were passed over."""
    engines, recipe = workspace.engines, workspace.recipe
    if workspace.conversion is not None and workspace.conversion.recipe is not None:
        yield from _conversion_notes(workspace, workspace.conversion.lost, chosen)
    elif recipe.is_file() and recipe.parent != workspace.feedstock.recipe:
        yield "The meta.yaml needs conda-build: building the recipe.yaml from the same spec instead."
    platforms = {configuration.platform: configuration.name for configuration in chosen}
    passed = dict.fromkeys(reason for platform in platforms for reason in engines.choose(platform).passed)
    yield from (f"Not with {reason}" for reason in passed)
    for platform, name in platforms.items():
        engine = engines.engine_for(name, platform)
        if engine.name != "rattler-build" or engines.given:
            yield f"Building for {platform} with {engine.name} ({engine.version}): {engines.choose(platform).reason}."


def _conversion_notes(
    workspace: Workspace, lost: Sequence[str], chosen: Sequence[PlannedConfiguration]
) -> Iterator[str]:
    """That a `meta.yaml` was converted, and how its packages differ from those that conda-build would make."""
    from feedstock_tools.builds.plan.refusals import name_differences

    differences = name_differences(chosen, workspace.feedstock.recipe)
    names = "with other names" if differences else "with the same names but for hashes"
    yield f"Converted the meta.yaml to a recipe.yaml for the embedded engine; conda-build makes packages {names}."
    lines = [f"{name}: {line}" for name, found in differences.items() for line in found]
    yield from _some(lines, "`feedstock-tools edit to-v1` compares the recipes")
    if lost:
        yield f"Not converted: {counted(len(lost), 'line')} of the meta.yaml:"
        yield from _some(lost, "`feedstock-tools edit to-v1` shows them all")


def _some(lines: Sequence[str], elsewhere: str) -> Iterator[str]:
    yield from (f"  {shown(line)}" for line in lines[:_FEW])
    if len(lines) > _FEW:
        yield f"  and {len(lines) - _FEW} more; {elsewhere}"


def channel_notes(agenda: Agenda) -> Iterator[str]:
    """Why channels that are made here are used, once for each reason."""
    made_here = [channels for channels in agenda.channels.values() if channels.properties.made_here]
    for reason in dict.fromkeys(channels.why for channels in made_here):
        yield f"On the STAND-IN channel: {reason}."
        yield "It has conda-forge's metadata, and contents from PyPI and this machine; packages built on it are marked."


def again_notes(agenda: Agenda) -> Iterator[str]:
    """Which rows are built again, and what has changed since they were built; and whether this user can seal builds."""
    from feedstock_tools.builds.ledger.seal import key_of_user

    if key_of_user() is None:
        yield "Builds get no seal, since no key can be kept in the user's folder: `publish` needs `collect` first."
    rows: dict[tuple[str, ...], list[str]] = {}
    titles = {row.name: row.title for row in agenda.todo}
    for name, changed in agenda.again.items():
        rows.setdefault(changed, []).append(titles.get(name, name))
    for changed, names in rows.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"Building again: {names[0]}{more}; changed since the last build: {'; '.join(changed)}"


def path_notes(artifacts: Artifacts) -> Iterator[str]:
    """Warnings about artifacts folders in which builds fail."""
    if " " in str(artifacts.root):
        yield (
            f"The path {artifacts.root} contains a space, which breaks many build scripts; "
            "choose another with --output-dir."
        )


def summary_text(
    result: BuildResult, left_out: Mapping[str, str], where: str = "here", width: int | None = None
) -> str:
    """The table of packages with size, time and sha256, then failures, then the places of channel and logs.

    Args:
        left_out: configurations that were left out, with the reasons; `where` they cannot be built.
        width: the characters of a line of the table, as for `table`.
    """
    artifacts, unique = result.artifacts, _unique(result.outcomes)
    built = [(outcome, outcome.record) for outcome in unique if outcome.record and outcome.record.result == "done"]
    lines = ["", *_packages(built, width), *_failures(artifacts, unique)]
    lines += library_lines(record for _, record in built)
    lines += _left_out(built)
    if built and not any(outcome.new for outcome in unique) and len(built) == len(unique):
        lines.append("Nothing to do: everything is built and unchanged.")
    for channel in dict.fromkeys(record.packages[0].channel for _, record in built):
        uri = (artifacts.root / channel).as_uri()
        lines.append(f"Channel: {uri}{'' if channel == '.' else '  (built on the stand-in channel)'}")
    if any(outcome.new for outcome in unique):
        lines.append(f"Logs:    {artifacts.logs}")
    if left_out:
        lines.append(f"Left out, since they cannot be built {where}: {counted(len(left_out), 'configuration')}.")
    return "\n".join(lines)


def summary_json(result: BuildResult, left_out: Mapping[str, str]) -> Mapping[str, Any]:
    """The outcomes of a run as JSON values."""
    artifacts = result.artifacts
    return {
        "artifacts": str(artifacts.root),
        "outputs": [
            {
                "configuration": outcome.row.configuration,
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
                "packages": packages_json(artifacts.root, outcome.record.packages if outcome.record else ()),
            }
            for outcome in _unique(result.outcomes)
        ],
        "left_out": dict(left_out),
    }


def packages_json(artifacts: Path, packages: Iterable[PackageRecord]) -> list[dict[str, Any]]:
    """Built packages by their paths in the artifacts folder."""
    return [
        {"path": str(artifacts / package.channel / package.file), "size": package.size, "sha256": package.sha256}
        for package in packages
    ]


def _unique(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Each output once, even if several rows share it; the new one if one of them built it."""
    unique: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        key = outcome.output.package_id
        if key not in unique or outcome.new:
            unique[key] = outcome
    return list(unique.values())


def _packages(built: Sequence[tuple[Outcome, BuildRecord]], width: int | None) -> list[str]:
    """The table; for many earlier packages only their number."""
    new = [(outcome, record) for outcome, record in built if outcome.new]
    unchanged = len(built) - len(new)
    shown = new if unchanged > _MOST_UNCHANGED else built
    head = ("package", "size", "time", "sha256")
    rows = [_package_row(outcome, record) for outcome, record in shown]
    lines = [table(head, rows, right=frozenset({1, 2}), width=width, spare=("sha256",))] if rows else []
    return lines if shown is built else [*lines, f"{counted(unchanged, 'package')} built before and unchanged."]


def _package_row(outcome: Outcome, record: BuildRecord) -> tuple[str, ...]:
    package = record.packages[0]
    time = duration(record.seconds) if outcome.new and record.seconds is not None else "unchanged"
    return package.file, size_text(package.size), time, package.sha256


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


def library_lines(records: Iterable[BuildRecord]) -> list[str]:
    """The libraries that packages need and no requirement brings, and other doubts, each once."""
    by_text: dict[str, list[str]] = {}
    for record in records:
        for text in record.libraries:
            by_text.setdefault(text, []).append(record.output)
    return [shown(f"WARNING: {' '.join(dict.fromkeys(names))}: {text}") for text, names in by_text.items()]


def _left_out(built: Sequence[tuple[Outcome, BuildRecord]]) -> list[str]:
    """The number of packages whose tests did not run, by reason, with their Pythons."""
    reasons: dict[str, list[str]] = {}
    for outcome, record in built:
        if record.marks.get("tests") == "left out":
            reasons.setdefault(record.marks.get("tests-reason", ""), []).append(outcome.row.planned.python or "")
    return [
        f"Tests left out for {counted(len(pythons), 'package')}{_with(pythons)}: {reason}."
        for reason, pythons in reasons.items()
    ]


def _with(pythons: Sequence[str]) -> str:
    distinct = [python for python in dict.fromkeys(pythons) if python]
    return f" of Python {', '.join(distinct)}" if distinct else ""


#: How a file of two packages differs, as a comparison records it → the words of it.
HOW_FILES_DIFFER = {
    "only in the first": "only in the first package",
    "only in the second": "only in the second package",
    "kind": "a file in one package, a link in the other",
    "mode": "executable in one package only",
    "link": "a link that leads elsewhere",
    "text": "another text",
    "bytes": "other bytes",
}
_MOST_SHOWN = 20


def are_same(comparisons: Sequence[ComparisonRecord]) -> bool:
    """Whether every second build made the same contents."""
    return all(record.result in ("same", "repacked") for record in comparisons)


def comparison_words(record: ComparisonRecord) -> str:
    """One comparison in a line.

    >>> comparison_words(ComparisonRecord("ab", ".", "noarch/a-1-0.conda", "", "same", "", "h2"))
    'the same bytes on h2'
    """
    where = f" on {record.machine}" if record.machine else ""
    if record.result == "failed":
        return f"not built a second time{where}: {record.reason}"
    if record.result == "different":
        return f"{len(record.differences)} of {counted(record.files, 'file')} differ{where}"
    return f"{'the same bytes' if record.result == 'same' else 'the same contents, packed differently'}{where}"


def verified_text(comparisons: Sequence[ComparisonRecord], artifacts: Artifacts) -> str:
    """How many packages are the same, then those that are not, with the files that differ."""
    if not comparisons:
        return "\nNothing was built a second time: no row is complete."
    counts = Counter(record.result for record in comparisons)
    words = {"same": "the same", "repacked": "packed differently", "different": "different", "failed": "not built"}
    results = ", ".join(f"{counts[result]} {text}" for result, text in words.items() if counts[result])
    lines = ["", f"{counted(len(comparisons), 'package')} compared with a second build: {results}."]
    for record in comparisons:
        if record.result in ("different", "failed"):
            lines += [f"{record.file.rpartition('/')[2]}: {comparison_words(record)}", *_files(record)]
        if record.result == "different":
            first, second = artifacts.root / record.channel / record.file, artifacts.compared / record.file
            lines.append(f"  feedstock-tools diff {first} {second}")
        elif record.result == "failed" and record.log:
            lines.append(f"  Log: {artifacts.root / record.log}")
    return "\n".join(lines)


def verified_json(comparisons: Sequence[ComparisonRecord]) -> list[dict[str, Any]]:
    """The same for programs: the ledger's record of each comparison."""
    from feedstock_tools.builds.ledger.records import told_of

    return [told_of(record) for record in comparisons]


def _files(record: ComparisonRecord) -> Iterator[str]:
    listed = list(record.differences.items())
    for path, what in listed[:_MOST_SHOWN]:
        yield f"  {path}: {HOW_FILES_DIFFER.get(what, what)}"
    if len(listed) > _MOST_SHOWN:
        yield f"  and {len(listed) - _MOST_SHOWN} more"
