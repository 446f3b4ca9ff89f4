"""Findings of `lint` as text, JSON, annotations of GitHub and SARIF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from feedstock_tools import __version__
from feedstock_tools.check.findings import Finding
from feedstock_tools.check.linting.subject import RULES, LintFinding
from feedstock_tools.wording import counted, shown, some_of


def findings_text(findings: Sequence[Finding], count: int) -> str:
    """One line for each mistake and remark, with the configurations that have it, then the counts."""
    where: dict[Finding, list[str]] = {}
    for finding in findings:
        where.setdefault(replace(finding, configuration=""), []).append(finding.configuration)
    lines = []
    for finding, names in where.items():
        lines.append(str(replace(finding, configuration=some_of(names))))
    remarks = sum(finding.weight == "remark" for finding in where)
    mistakes = counted(len(where) - remarks, "mistake") if len(where) > remarks else "No mistake"
    also = f", {counted(remarks, 'remark')}" if remarks else ""
    return "\n".join([*lines, f"{mistakes}{also} in {counted(count, 'configuration')}."])


def findings_lines(findings: Sequence[LintFinding]) -> str:
    """One line for each finding, then their number."""
    lines = [f"{found.path}:{found.line}: {_remark(found)}{shown(found.message)} [{found.rule}]" for found in findings]
    fixable = sum(found.fixable for found in findings)
    total = f"{counted(len(findings), 'finding')}{f', {fixable} of them mended by --fix' if fixable else ''}."
    return "".join(f"{line}\n" for line in [*lines, total if findings else "No finding."])


def _remark(found: LintFinding) -> str:
    return "remark: " if found.weight == "remark" else ""


def findings_values(findings: Sequence[Finding | LintFinding]) -> list[dict[str, Any]]:
    """The findings as JSON values."""
    return [asdict(found) for found in findings]


def findings_github(findings: Sequence[LintFinding]) -> str:
    """Workflow commands that GitHub shows beside the lines of a pull request."""
    lines = []
    for found in findings:
        place = f"file={_property(found.path)},line={found.line},title={_property(found.rule)}"
        lines.append(f"::{'notice' if found.weight == 'remark' else 'warning'} {place}::{_data(found.message)}\n")
    return "".join(lines)


def findings_sarif(findings: Sequence[LintFinding]) -> dict[str, Any]:
    """A log in the Static Analysis Results Interchange Format 2.1.0, for code scanning."""
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "feedstock-tools",
                        "version": __version__,
                        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in RULES.items()],
                    }
                },
                "results": [_result(found) for found in findings],
            }
        ],
    }


def _result(found: LintFinding) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": found.path}, "region": {"startLine": found.line}}
    message = {"text": found.message}
    level = "note" if found.weight == "remark" else "warning"
    return {"ruleId": found.rule, "level": level, "message": message, "locations": [{"physicalLocation": place}]}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
