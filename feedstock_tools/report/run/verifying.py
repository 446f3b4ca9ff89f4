"""Second builds compared with the first, after a run: which packages are the same, and which files differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from feedstock_tools.builds.ledger import ComparisonRecord
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.wording import counted

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
    return [{column: getattr(record, column) for column in record.COLUMNS} for record in comparisons]


def _files(record: ComparisonRecord) -> Iterator[str]:
    listed = list(record.differences.items())
    for path, what in listed[:_MOST_SHOWN]:
        yield f"  {path}: {HOW_FILES_DIFFER.get(what, what)}"
    if len(listed) > _MOST_SHOWN:
        yield f"  and {len(listed) - _MOST_SHOWN} more"
