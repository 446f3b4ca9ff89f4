"""The results of publishing, for a terminal and for JSON, and the jobs of CI services as each service reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from feedstock_tools.builds.ci import MACHINES, CiJob
from feedstock_tools.builds.publish.publish import untested_in_words
from feedstock_tools.wording import shown, size_text, table, values_of

if TYPE_CHECKING:
    from feedstock_tools.builds.publish.publish import Published
    from feedstock_tools.channel.targets import Target


class PublishLines:
    """A `PublishObserver` of plain lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def incomplete(self, state: str, configurations: Sequence[str]) -> None:
        self._say(f"Left out, {state}: {', '.join(configurations)}.")

    def untested(self, reason: str, files: Sequence[str]) -> None:
        self._say(f"Left out with all of their rows: {untested_in_words(reason, files)}.")

    def begin(self, number: int, total: int, package: Published) -> None:
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
        "packages": [values_of(package, "file", "size", "sha256", "result") for package in packages],
    }


def github_lines(jobs: Sequence[CiJob]) -> str:
    """The lines for `$GITHUB_OUTPUT`: `any`, and `include` for a matrix."""
    include = [
        {"index": f"{number:03}", "runner": MACHINES[job.platform][0], "configurations": " ".join(job.configurations)}
        for number, job in enumerate(jobs, 1)
    ]
    return f"any={'true' if jobs else 'false'}\ninclude={json.dumps(include)}"


def azure_lines(jobs: Sequence[CiJob]) -> str:
    """The logging commands that set a matrix for each job of the Azure pipeline; an empty one has no configurations."""
    lines = []
    for name in dict.fromkeys(name for _, name in MACHINES.values() if name):
        own = [job for job in jobs if MACHINES[job.platform][1] == name]
        legs = {
            f"job_{number:03}": {"CONFIGURATIONS": " ".join(job.configurations)} for number, job in enumerate(own, 1)
        }
        lines.append(f"##vso[task.setvariable variable={name};isOutput=true]{json.dumps(legs) if legs else ''}")
    return "\n".join(lines)
