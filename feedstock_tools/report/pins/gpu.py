"""Which builds a GPU runs, and how: verdicts for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from feedstock_tools.pins.gpu.driver import Machine
from feedstock_tools.pins.gpu.judging import Judged, Report
from feedstock_tools.pins.gpu.verdict import HOW, Card, Verdict


def gpu_text(report: Report, *, single: bool) -> str:
    """The cards with a table each; with `single`, one verdict with all its reasons."""
    lines = _about(report.machine) if report.machine else []
    for card, judged in report.cards:
        lines.append(_heading(card))
        lines += _in_full(judged) if single else _in_a_table(judged)
    return "\n".join(lines)


def gpu_json(report: Report) -> str:
    """The same for programs."""
    machine = report.machine
    document: dict[str, Any] = {} if machine is None else {"driver": machine.driver, "driver_cuda": machine.cuda}
    if machine is not None and machine.problem:
        document["problem"] = machine.problem
    document["gpus"] = [
        {
            "name": card.name,
            "capability": card.capability,
            "driver": card.driver,
            "driver_cuda": card.driver_cuda,
            "builds": [
                {
                    "what": item.what,
                    "cuda": item.cuda,
                    "runs": item.verdict.how,
                    "by": item.verdict.by,
                    "reasons": list(item.verdict.reasons),
                }
                for item in judged
            ],
        }
        for card, judged in report.cards
    ]
    return json.dumps(document, indent=2)


def _about(machine: Machine) -> list[str]:
    lines = []
    if machine.driver or machine.cuda:
        lines.append(f"Driver {machine.driver or 'of unknown version'}, which runs CUDA up to {machine.cuda or '?'}.")
    if machine.problem:
        problem = f"{machine.problem[0].upper()}{machine.problem[1:]}"
        lines.append(f"{problem}. Name a GPU with --model or --capability to ask about another machine.")
    return lines


def _heading(card: Card) -> str:
    driver = f", driver {card.driver} (CUDA up to {card.driver_cuda})" if card.driver_cuda else ""
    return f"{card.name}, compute capability {card.capability}{driver}"


def _in_full(judged: Sequence[Judged]) -> list[str]:
    lines = []
    for item in judged:
        by = f" ({item.verdict.by})" if item.verdict.by else ""
        lines.append(f"  {item.what}: {item.verdict.words}{by}")
        lines += [f"    {reason}" for reason in item.verdict.reasons]
    return lines


def _in_a_table(judged: Sequence[Judged]) -> list[str]:
    if not judged:
        return []
    wide = max(len(item.what) for item in judged)
    words_width = max(map(len, HOW.values()))
    rows = ((item.what, item.verdict.words, item.verdict.by or "", _shortly(item.verdict)) for item in judged)
    return [
        f"  {subject:<{wide}}  {words:<{words_width}}  {by:<12}  {reason}".rstrip()
        for subject, words, by, reason in rows
    ]


def _shortly(verdict: Verdict) -> str:
    """The decisive reason."""
    return verdict.reasons[-1 if verdict.how == "no" else 0]
