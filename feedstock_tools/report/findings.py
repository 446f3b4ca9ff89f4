"""The mistakes that a feedstock's configurations have by the facts, mistake by mistake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from feedstock_tools.check.against_facts import Finding
from feedstock_tools.wording import counted

__all__ = ["findings_json", "findings_text"]


def findings_text(findings: Sequence[Finding], count: int) -> str:
    """One line for each mistake, with the configurations that have it, then the count."""
    where: dict[tuple[str, str, str | None], list[str]] = {}
    for finding in findings:
        where.setdefault((finding.key, finding.message, finding.source), []).append(finding.configuration)
    lines = []
    for complaint, names in where.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines.append(str(Finding(f"{names[0]}{more}", *complaint)))
    of = counted(count, "configuration")
    last = f"{counted(len(lines), 'mistake')} in {of}." if findings else f"No mistake in {of}."
    return "\n".join([*lines, last])


def findings_json(findings: Sequence[Finding]) -> str:
    """A list of objects."""
    return json.dumps([asdict(finding) for finding in findings], indent=2)
