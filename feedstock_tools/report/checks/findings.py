"""The mistakes that a feedstock's configurations have by the facts, mistake by mistake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from feedstock_tools.check.findings import Complaint, Finding
from feedstock_tools.wording import counted


def findings_text(findings: Sequence[Finding], count: int) -> str:
    """One line for each mistake and remark, with the configurations that have it, then the counts."""
    where: dict[Complaint, list[str]] = {}
    for finding in findings:
        complaint = Complaint(finding.key, finding.message, finding.source, finding.weight)
        where.setdefault(complaint, []).append(finding.configuration)
    lines = []
    for complaint, names in where.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines.append(str(Finding.of(f"{names[0]}{more}", complaint)))
    remarks = sum(complaint.weight == "remark" for complaint in where)
    mistakes = counted(len(where) - remarks, "mistake") if len(where) > remarks else "No mistake"
    also = f", {counted(remarks, 'remark')}" if remarks else ""
    return "\n".join([*lines, f"{mistakes}{also} in {counted(count, 'configuration')}."])


def findings_json(findings: Sequence[Finding]) -> str:
    """A list of objects."""
    return json.dumps([asdict(finding) for finding in findings], indent=2)
