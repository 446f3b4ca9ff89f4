"""What a channel has, where facts and channel disagree, and what error messages mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from feedstock_tools.check.findings import Check, Verdict, checks_line, checks_values, verdict_of
from feedstock_tools.facts.messages import Explanation
from feedstock_tools.pins.channels import FoundBuild
from feedstock_tools.pins.graph.audit import Audit, Disagreement
from feedstock_tools.pins.graph.kinds import kind_named
from feedstock_tools.wording import counted, values_of


def found_table(builds: Iterable[FoundBuild]) -> str:
    """The table of `conda search` (conda/cli/main_search.py), with a fifth column: the CUDA version of a build.

    >>> record = Record.from_repodata("cudnn-8.2.1-cuda11.3_0.conda", {"name": "cudnn", "version": "8.2.1",
    ...     "build": "cuda11.3_0", "build_number": 0}, channel="https://repo.anaconda.com/pkgs/main", subdir="linux-64")
    >>> print(found_table([FoundBuild(record, "pkgs/main", "11.3")]))
    # Name                       Version           Build  Channel               CUDA
    cudnn                          8.2.1      cuda11.3_0  pkgs/main             11.3
    """
    lines = [_line("# %-18s", "Name", "Version", "Build", "Channel", "CUDA")]
    for build in builds:
        record = build.record
        lines.append(_line("%-20s", record.name, record.version, record.build, build.channel, build.toolkit or ""))
    return "\n".join(lines)


def _line(first: str, name: str, version: str, build: str, channel: str, toolkit: str) -> str:
    return f"{first % name} {version:>15} {build:>15}  {channel:<20}  {toolkit}".rstrip()


def found_json(builds: Iterable[FoundBuild]) -> list[dict[str, Any]]:
    """A list of builds, with the repodata entry of each."""
    return [
        {
            **build.record.to_repodata(),
            "fn": build.record.file_name,
            "url": build.record.url,
            "channel": build.channel,
            "cuda": build.toolkit,
        }
        for build in builds
    ]


def audit_checks(found: Audit) -> tuple[Check, ...]:
    """Whether the facts and a channel agree, for each platform and kind of release."""
    return tuple(
        Check.of(
            f"{kind_named(kind).title} on {platform}",
            wrong=bool(disagreements),
            unknown="none in the channel" if disagreements is None else "",
        )
        for (platform, kind), disagreements in found.items()
    )


def audit_text(found: Audit, origin: str) -> str:
    """What was compared, a line for all versions with the same disagreement, then the number of disagreements."""
    checks, disagreements = audit_checks(found), _disagreements(found)
    versions: dict[tuple[str, str, str, str], list[str]] = {}
    for disagreement in disagreements:
        versions.setdefault(
            (disagreement.platform, disagreement.kind, disagreement.facts, disagreement.channel), []
        ).append(disagreement.version)
    lines = [
        f"{platform}: {kind_named(kind).title} {', '.join(named)}: {facts}; {channel}"
        for (platform, kind, facts, channel), named in versions.items()
    ]
    if disagreements:
        lines.append(f"{counted(len(disagreements), 'disagreement')}.")
    elif verdict_of(checks) is Verdict.RIGHT:
        lines.append(f"The facts and {origin} agree.")
    return "\n".join([checks_line(checks), *lines])


def audit_json(found: Audit) -> dict[str, Any]:
    """The verdict, the checks and the disagreements."""
    return {**checks_values(audit_checks(found)), "disagreements": [asdict(each) for each in _disagreements(found)]}


def _disagreements(found: Audit) -> list[Disagreement]:
    return [disagreement for disagreements in found.values() for disagreement in disagreements or ()]


def messages_text(explanations: Sequence[Explanation], judged: Sequence[str]) -> str:
    """Each explanation as a paragraph: what it means, what the judge says, who can do what, and the sources."""
    return "\n\n".join("\n".join(_lines(*each)) for each in zip(explanations, judged, strict=True))


def _lines(explanation: Explanation, judged: str) -> list[str]:
    return [
        f"{explanation.name}: {explanation.means}",
        *([f"  judge: {judged}"] if judged else []),
        *(f"  user: {text}" for text in explanation.user),
        *(f"  maintainer: {text}" for text in explanation.maintainer),
        *(f"  run: {text}" for text in explanation.commands),
        f"  [{'; '.join(explanation.sources)}]",
    ]


def messages_json(explanations: Sequence[Explanation], judged: Sequence[str]) -> list[dict[str, Any]]:
    """The same for programs."""
    names = ("name", "means", "harmless", "user", "maintainer", "commands", "sources")
    return [
        values_of(explanation, *names) | {"judged": text or None}
        for explanation, text in zip(explanations, judged, strict=True)
    ]
