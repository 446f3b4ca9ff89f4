"""Two packages compared, for a terminal, as Markdown, and as values for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from feedstock_tools.channel.comparing import FileDifference, PackageComparison
from feedstock_tools.units import size_text
from feedstock_tools.wording import counted, shown


def comparison_text(found: PackageComparison) -> str:
    """The verdict, and each file that differs with the lines of a text."""
    return "\n".join([*_lines(found), comparison_verdict(found), ""])


def comparison_markdown(found: PackageComparison) -> str:
    """The verdict first, then the files."""
    listed = [f"- `{each.path}`: {how_files_differ(each)}" for each in found.differences]
    return "\n".join([f"**{comparison_verdict(found)}**", *(["", *listed] if listed else []), ""])


def comparison_json(found: PackageComparison) -> Mapping[str, Any]:
    """The same; sizes in bytes."""
    return {
        "same_bytes": found.same_bytes,
        "same_contents": found.same_contents,
        "sha256": list(found.digests),
        "files": found.files,
        "differences": [
            {
                "path": each.path,
                "what": each.what,
                "sizes": list(each.sizes),
                "lines": list(each.lines),
                "first_byte": each.first_byte,
            }
            for each in found.differences
        ],
    }


def _lines(found: PackageComparison) -> Iterator[str]:
    for each in found.differences:
        yield f"{shown(each.path)}: {how_files_differ(each)}"
        if each.what == "text":
            yield from (f"  {shown(line)}" for line in each.lines)


def how_files_differ(difference: FileDifference) -> str:
    """How the file of two packages differs, in a few words."""
    first, second = (size_text(size) for size in difference.sizes)
    return {
        "only in the first": f"only in the first package ({first})",
        "only in the second": f"only in the second package ({second})",
        "kind": "a file in one package, a link in the other",
        "mode": "executable in one package only",
        "link": f"leads to {' and to '.join(map(shown, difference.lines))}",
        "text": "another text",
        "bytes": f"other bytes from offset {difference.first_byte} on ({first}, {second})",
    }[difference.what]


def comparison_verdict(found: PackageComparison) -> str:
    """Whether two packages are the same, as a sentence."""
    if found.same_bytes:
        return f"The same package, byte for byte ({found.digests[0]})."
    if found.same_contents:
        return f"The same contents in {counted(found.files, 'file')}, packed differently."
    return f"{len(found.differences)} of {counted(found.files, 'file')} differ."
