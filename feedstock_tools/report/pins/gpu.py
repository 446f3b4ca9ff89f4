"""How GPUs run builds, lists of architectures in the form of a build system, and the GPU code of packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from feedstock_tools.gpu_code.archives import Unread
from feedstock_tools.gpu_code.code import GpuCode, architecture_names
from feedstock_tools.pins.architectures import ArchitectureList
from feedstock_tools.pins.driver import Machine
from feedstock_tools.pins.judge import HOW, BuildVerdict, Card, Report, Verdict
from feedstock_tools.wording import counted, values_of

#: How builds run, from the best.
_BEST = ("native", "ptx", "unknown", "no", "cpu")
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


def architectures_json(chosen: ArchitectureList, form: str) -> dict[str, Any]:
    """The same for programs."""
    return {
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


def gpu_text(report: Report, *, single: bool, every: bool = False) -> str:
    """The cards with a table each; with `single`, one verdict with all its reasons, with `every`, a line for each."""
    lines = _about(report.machine) if report.machine else []
    for card, judged in report.cards:
        lines.append(_heading(card))
        lines += _in_full(judged) if single else _in_a_table([_Line.of(item) for item in judged], every=every)
        wheels = report.wheels.get(card.capability, ())
        if wheels:
            lines.append(f"Wheels on PyPI for {report.platform}, by the GPU code in them:")
            lines += _of_wheels([_Line.of(item) for item in wheels], every=every)
        if conda := report.conda.get(card.capability, ()):
            lines.append(f"conda-forge's builds for {report.platform}, by the lists in their recipes:")
            lines += _of_wheels([_Line.of(item) for item in (conda if every else _best(conda))], every=every)
    return "\n".join(lines)


def gpu_json(report: Report) -> dict[str, Any]:
    """The same for programs."""
    machine = report.machine
    document: dict[str, Any] = {} if machine is None else {"driver": machine.driver, "driver_cuda": machine.cuda}
    if machine is not None and machine.problem:
        document["problem"] = machine.problem
    document["gpus"] = [
        {
            **values_of(card, "name", "capability", "driver", "driver_cuda"),
            "builds": _judged(judged),
            **({"wheels": _judged(report.wheels[card.capability])} if card.capability in report.wheels else {}),
            **({"conda": _judged(report.conda[card.capability])} if card.capability in report.conda else {}),
        }
        for card, judged in report.cards
    ]
    return document


def _judged(judged: Sequence[BuildVerdict]) -> list[dict[str, Any]]:
    return [
        {**values_of(item, "what", "cuda"), "runs": item.verdict.how, **values_of(item.verdict, "by", "reasons")}
        for item in judged
    ]


def _best(judged: Sequence[BuildVerdict]) -> list[BuildVerdict]:
    """Of the builds of one version for several CUDA, the newest of those that run best."""
    best: dict[str, BuildVerdict] = {}
    for item in judged:
        before = best.get(item.what)
        if before is None or _BEST.index(item.verdict.how) <= _BEST.index(before.verdict.how):
            best[item.what] = item
    return list(best.values())


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


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a table: successive versions of one thing that a GPU runs alike."""

    name: str
    first: str
    last: str
    verdict: Verdict

    @classmethod
    def of(cls, item: BuildVerdict) -> _Line:
        name, _, version = item.what.rpartition(" ")
        return cls(name, version, version, item.verdict)

    def joined(self, other: _Line) -> _Line | None:
        """This line and the one after it as one; None where they differ."""
        one, two = self.verdict, other.verdict
        alike = one.how == two.how and (one.how in ("ptx", "no") or one.by == two.by) and self.name == other.name
        return replace(other, first=self.first) if alike and self.name else None

    @property
    def what(self) -> str:
        versions = self.last if self.first == self.last else f"{self.first} to {self.last}"
        return f"{self.name} {versions}".strip()

    @property
    def reason(self) -> str:
        """Why, unless the machine code says it all, or what a GPU that runs it lacks."""
        how, reasons = self.verdict.how, self.verdict.reasons
        return reasons[-1] if how == "no" else "".join(reasons[1:2]) if how == "native" else reasons[0]


def _of_wheels(lines: Sequence[_Line], *, every: bool) -> list[str]:
    """The table of wheels; those of which nothing is known are one line unless `every` has its own."""
    if every:
        return _in_a_table(lines, every=True)
    unread = _joined([line for line in lines if line.verdict.how == "unknown"])
    text = f"  Not known: {', '.join(line.what for line in unread)}; -v says why."
    return [*_in_a_table([line for line in lines if line.verdict.how != "unknown"]), *([text] if unread else [])]


def _in_a_table(lines: Sequence[_Line], *, every: bool = False) -> list[str]:
    joined = lines if every else _joined(lines)
    wide = max((len(line.what) for line in joined), default=0)
    words_width = max(map(len, HOW.values()))
    rows = ((line.what, line.verdict.words, line.verdict.by or "", line.reason) for line in joined)
    return [
        f"  {what:<{wide}}  {words:<{words_width}}  {by:<12}  {reason}".rstrip() for what, words, by, reason in rows
    ]


def _joined(lines: Sequence[_Line]) -> list[_Line]:
    joined: list[_Line] = []
    for line in lines:
        both = joined[-1].joined(line) if joined else None
        joined[-1:] = [both] if both else [*joined[-1:], line]
    return joined


def gpu_code_text(codes_of_files: Mapping[str, tuple[GpuCode, ...] | Unread]) -> str:
    """A line for each file: its architectures and the number of pieces of code, or why it cannot be read."""
    if not codes_of_files:
        return "It contains no GPU code."
    lines = []
    for name, codes in codes_of_files.items():
        if isinstance(codes, Unread):
            lines.append(f"{name}\n  not read: {codes.reason}")
            continue
        packed = sum(code.compressed for code in codes)
        note = f", {packed} of them compressed" if packed else ""
        pieces = counted(len(codes), "piece")
        lines.append(f"{name}\n  {' '.join(architecture_names(codes))}  ({pieces} of GPU code{note})")
    return "\n".join(lines)


def gpu_code_json(codes_of_files: Mapping[str, tuple[GpuCode, ...] | Unread]) -> dict[str, Any]:
    """The same for programs, with each piece of code."""
    return {
        name: {"architectures": [], "code": [], "not_read": codes.reason}
        if isinstance(codes, Unread)
        else {
            "architectures": architecture_names(codes),
            "code": [
                {"architecture": str(code.architecture), **values_of(code, "kind", "compressed", "offset")}
                for code in codes
            ],
        }
        for name, codes in codes_of_files.items()
    }
