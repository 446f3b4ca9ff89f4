"""The mistakes that a feedstock's configurations have by the facts, mistake by mistake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from feedstock_tools.check.against_facts import Finding
from feedstock_tools.wording import counted

__all__ = ["findings_json", "findings_text"]


def findings_text(found: Sequence[Finding], count: int) -> str:
    """One line for each mistake, with the configurations that have it, then the count."""
    where: dict[tuple[str, str, str | None], list[str]] = {}
    for finding in found:
        where.setdefault((finding.key, finding.message, finding.source), []).append(finding.configuration)
    lines = []
    for complaint, names in where.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines.append(str(Finding(f"{names[0]}{more}", *complaint)))
    of = counted(count, "configuration")
    last = f"{counted(len(lines), 'mistake')} in {of}." if found else f"No mistake in {of}."
    return "\n".join([*lines, last])


def findings_json(found: Sequence[Finding]) -> str:
    """A list of objects."""
    return json.dumps([asdict(finding) for finding in found], indent=2)
