"""The results of publishing, for a terminal and as values for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from feedstock_tools.builds.publish.publish import untested_in_words
from feedstock_tools.wording import shown, size_text, table

if TYPE_CHECKING:
    from feedstock_tools.builds.publish.publish import Published
    from feedstock_tools.channel.targets import Target


class PublishLines:
    """A `PublishObserver` of plain lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def incomplete(self, state: str, configurations: Sequence[str]) -> None:
        """See `PublishObserver`."""
        self._say(f"Left out, {state}: {', '.join(configurations)}.")

    def untested(self, reason: str, files: Sequence[str]) -> None:
        """See `PublishObserver`."""
        self._say(f"Left out with all of their rows: {untested_in_words(reason, files)}.")

    def begin(self, number: int, total: int, package: Published) -> None:
        """See `PublishObserver`."""
        self._say(f"[{number}/{total}] {package.file} ({size_text(package.size)})")

    def _say(self, text: str) -> None:
        self._stream.write(f"{shown(text)}\n")
        self._stream.flush()


def published_text(target: Target, packages: Sequence[Published]) -> str:
    """The table of packages, and the totals."""
    rows = [(package.file, size_text(package.size), package.sha256, package.result) for package in packages]
    pending, published = (
        sum(package.result == result for package in packages) for result in ("to be published", "published")
    )
    existing = len(packages) - pending - published
    total = f"{pending} to be published" if pending else f"{published} published"
    summary = f"{target.name}: {total}, {existing} already there."
    return f"{table(('package', 'size', 'sha256', 'result'), rows, right=frozenset({1}))}\n{summary}"


def published_json(target: Target, packages: Sequence[Published]) -> Mapping[str, Any]:
    """The same as JSON values."""
    return {
        "target": target.name,
        "packages": [
            {"file": package.file, "size": package.size, "sha256": package.sha256, "result": package.result}
            for package in packages
        ],
    }
