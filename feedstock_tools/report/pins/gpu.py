"""How GPUs run builds: verdicts, and lists of architectures in the form of a build system."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from feedstock_tools.pins.architectures import ArchitectureList
from feedstock_tools.pins.driver import Machine
from feedstock_tools.pins.judge import HOW, BuildVerdict, Card, Report, Verdict

_WORDS = {"native": "native", "ptx": "PTX at first start", "no": "not at all"}


def architectures_text(chosen: ArchitectureList, form: str) -> str:
    """The list, then a table of coverage."""
    lines = [chosen.written(form), "", f"CUDA {chosen.toolkit.version}, preset '{chosen.preset}':"]
    for capability, support, gpus in chosen.coverage():
        unique = list(dict.fromkeys(gpu.name for gpu in gpus))
        names = ", ".join(unique[:3]) + (", …" if len(unique) > 3 else "")
        by = f"({support.by})" if support.by else ""
        lines.append(f"  {capability:>4}  {_WORDS[support.how]:<18} {by:<13} {gpus[0].generation}: {names}")
    numbers = chosen.numbers()
    left = [name for name in chosen.toolkit.architectures if name.isdigit() and int(name) not in numbers]
    if left:
        lines.append(f"Known to this nvcc but not in the preset: {', '.join(f'sm_{name}' for name in left)}.")
    return "\n".join(lines)


def architectures_json(chosen: ArchitectureList, form: str) -> str:
    """The same for programs."""
    document: dict[str, Any] = {
        "cuda": chosen.toolkit.version,
        "preset": chosen.preset,
        "architectures": [str(architecture) for architecture in chosen.architectures],
        "written": chosen.written(form),
        "coverage": [
            {
                "capability": capability,
                "runs": support.how,
                "by": str(support.by) if support.by else None,
                "gpus": list(dict.fromkeys(gpu.name for gpu in gpus)),
            }
            for capability, support, gpus in chosen.coverage()
        ],
    }
    return json.dumps(document, indent=2)


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


def _in_full(judged: Sequence[BuildVerdict]) -> list[str]:
    lines = []
    for item in judged:
        by = f" ({item.verdict.by})" if item.verdict.by else ""
        lines.append(f"  {item.what}: {item.verdict.words}{by}")
        lines += [f"    {reason}" for reason in item.verdict.reasons]
    return lines


def _in_a_table(judged: Sequence[BuildVerdict]) -> list[str]:
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
    return verdict.reasons[-1 if verdict.how == "no" else 0]
