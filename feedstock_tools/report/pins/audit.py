"""What facts and a channel disagree about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from feedstock_tools.pins.graph.audit import Disagreement
from feedstock_tools.pins.graph.kinds import kind_named
from feedstock_tools.wording import counted


def audit_text(disagreements: Sequence[Disagreement], origin: str) -> str:
    """A line for all versions with the same disagreement, then the number of disagreements."""
    versions: dict[tuple[str, str, str, str], list[str]] = {}
    for disagreement in disagreements:
        versions.setdefault(
            (disagreement.platform, disagreement.kind, disagreement.facts, disagreement.channel), []
        ).append(disagreement.version)
    lines = [
        f"{platform}: {kind_named(kind).title} {', '.join(named)}: {facts}; {channel}"
        for (platform, kind, facts, channel), named in versions.items()
    ]
    count = f"{counted(len(disagreements), 'disagreement')}." if disagreements else f"The facts and {origin} agree."
    return "\n".join([*lines, count])


def audit_json(disagreements: Sequence[Disagreement]) -> str:
    """A list of objects."""
    return json.dumps([asdict(disagreement) for disagreement in disagreements], indent=2)
