"""Findings of `lint` as text, JSON, annotations of GitHub and SARIF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from feedstock_tools import __version__
from feedstock_tools.check.findings import Finding, Report, checks_line, checks_values
from feedstock_tools.check.linting.lint import RULES
from feedstock_tools.check.linting.subject import LintFinding
from feedstock_tools.wording import counted, named, shown, some_of


def findings_text(found: Report[Finding], count: int) -> str:
    """What was checked, one line for each mistake and remark with the configurations that have it, then the counts."""
    return "\n".join(
        [
            checks_line(found.checks),
            grouped_findings(found.findings, count, whole=all(check.verdict != "unknown" for check in found.checks)),
        ]
    )


def grouped_findings(findings: Sequence[Finding], count: int, *, whole: bool = True) -> str:
    """One line for each mistake and remark with the configurations that have it, then the counts.

    Args:
        whole: all checks were completed.
    """
    where: dict[Finding, list[str]] = {}
    for finding in findings:
        where.setdefault(replace(finding, configuration=""), []).append(finding.configuration)
    lines = []
    for finding, names in where.items():
        lines.append(named(str(replace(finding, configuration=some_of(names)))))
    remarks = sum(finding.weight == "remark" for finding in where)
    mistakes = counted(len(where) - remarks, "mistake") if len(where) > remarks else "No mistake"
    also = f", {counted(remarks, 'remark')}" if remarks else ""
    where_looked = (
        counted(count, "configuration") if whole else f"what was checked of {counted(count, 'configuration')}"
    )
    return "\n".join([*lines, f"{mistakes}{also} in {where_looked}."])


def findings_lines(found: Report[LintFinding]) -> str:
    """What was checked, one line for each finding, then their number."""
    return f"{checks_line(found.checks)}\n{listed_findings(found.findings)}"


def listed_findings(findings: Sequence[LintFinding]) -> str:
    """One line for each finding, then their number."""
    lines = [
        f"{named(found.path)}:{found.line}:{found.column}: {_remark(found)}{named(found.message)} [{found.rule}]"
        for found in findings
    ]
    fixable = sum(found.fixable for found in findings)
    total = f"{counted(len(findings), 'finding')}{f', {fixable} of them mended by --fix' if fixable else ''}."
    return "".join(f"{line}\n" for line in [*lines, total if findings else "No finding."])


def _remark(found: LintFinding) -> str:
    return "remark: " if found.weight == "remark" else ""


def report_values(report: Report[Finding] | Report[LintFinding]) -> dict[str, Any]:
    """The verdict, the checks and the findings as JSON values."""
    return {**checks_values(report.checks), "findings": [asdict(found) for found in report.findings]}


def findings_github(report: Report[LintFinding]) -> str:
    """Workflow commands that GitHub shows beside the lines of a pull request; what was checked as a notice."""
    lines = [f"::notice title=feedstock-tools lint::{_data(checks_line(report.checks))}\n"]
    for found in report.findings:
        place = f"file={_property(found.path)},line={found.line},col={found.column},title={_property(found.rule)}"
        lines.append(f"::{'notice' if found.weight == 'remark' else 'warning'} {place}::{_data(found.message)}\n")
    return "".join(lines)


def findings_sarif(report: Report[LintFinding]) -> dict[str, Any]:
    """A log in the Static Analysis Results Interchange Format 2.1.0, for code scanning."""
    checked = {"level": "note", "message": {"text": checks_line(report.checks)}}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "feedstock-tools",
                        "version": __version__,
                        "rules": [
                            {"id": name, "shortDescription": {"text": rule.meaning}} for name, rule in RULES.items()
                        ],
                    }
                },
                "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": [checked]}],
                "results": [_result(found) for found in report.findings],
            }
        ],
    }


def _result(found: LintFinding) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": found.path}, "region": {"startLine": found.line, "startColumn": found.column}}
    message = {"text": found.message}
    level = "note" if found.weight == "remark" else "warning"
    return {"ruleId": found.rule, "level": level, "message": message, "locations": [{"physicalLocation": place}]}


def _data(text: str) -> str:
    return shown(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
