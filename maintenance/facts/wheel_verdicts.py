"""Compare the answers about frameworks with the tables of their wheels, by independent rules.

For each of the last minor versions of some frameworks, GPUs of every kind, and platforms, what `cuda resolve` and
`gpu` answer must be what the list of architectures in the wheel says by NVIDIA's rules (CUDA Programming Guide, Compute
Capabilities), which are written down here a second time: nothing of `pins` or `gpu_code` is used to expect an answer.
PTX that users report to fail is expected to be not known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.frameworks import load_wheels
from feedstock_tools.pins.graph.answers import resolve
from feedstock_tools.pins.judge import card_named, judge_wheel
from feedstock_tools.versions import minor_of, parse_version
from maintenance.facts.framework_wheels import CUPY, TABLES, cuda_of_torch
from maintenance.facts.records import Entry, read_table, say

#: Frameworks by the names that users give, and the tables of their wheels.
FRAMEWORKS: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch",),
    "tensorflow": ("tensorflow", "tensorflow-gpu"),
    "jax": ("jax-cuda12", "jax-cuda13"),
    "cupy": (*CUPY, "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
    "torchvision": ("torchvision",),
    "torchaudio": ("torchaudio",),
    "vllm": ("vllm",),
    "xformers": ("xformers",),
    "onnxruntime-gpu": ("onnxruntime-gpu",),
    "bitsandbytes": tuple(f"bitsandbytes-cuda{cuda}" for cuda in (117, 118, 121, 124, 126, 128, 129, 130, 132)),
    "ctranslate2": ("ctranslate2",),
    "faiss-gpu": ("faiss-gpu", "faiss-gpu-cuda11", "faiss-gpu-cuda12"),
    "triton": ("triton",),
    "numba-cuda": ("numba-cuda",),
}
#: GPUs with their capability, and what they run on: any processor, NVIDIA's own (`grace`), or a module with the oldest
#: and the newest CUDA of its system.
GPUS: Mapping[str, tuple[int, str]] = {
    "K40": (35, "any"),
    "K80": (37, "any"),
    "GTX 750 Ti": (50, "any"),
    "GTX 980": (52, "any"),
    "M60": (52, "any"),
    "P100": (60, "any"),
    "GTX 1080 Ti": (61, "any"),
    "P4": (61, "any"),
    "V100": (70, "any"),
    "TITAN V": (70, "any"),
    "T4": (75, "any"),
    "RTX 2080 Ti": (75, "any"),
    "GTX 1660": (75, "any"),
    "A100": (80, "any"),
    "A30": (80, "any"),
    "RTX 3080": (86, "any"),
    "A10": (86, "any"),
    "RTX A6000": (86, "any"),
    "RTX 4090": (89, "any"),
    "L4": (89, "any"),
    "L40S": (89, "any"),
    "H100": (90, "any"),
    "H200": (90, "any"),
    "B200": (100, "any"),
    "B300": (103, "any"),
    "RTX 5070": (120, "any"),
    "RTX 5090": (120, "any"),
    "GH200": (90, "grace"),
    "GB200": (100, "grace"),
    "DGX Spark": (121, "grace"),
    "Jetson AGX Orin": (87, "11.4 99"),
    "Jetson AGX Thor": (110, "13.0 99"),
}
PLATFORMS = ("linux-64", "linux-aarch64", "win-64")
_ON_A_CHIP = frozenset({32, 53, 62, 72, 87, 101, 110})


def shares(entry: Entry, capability: int) -> tuple[float, float] | None:
    """The parts of a wheel's fat binaries that a GPU runs natively, and at all; None if the wheel has none.

    They are those of the library with the most of them, without those for less than half of the generations.
    """
    best: Mapping[str, int] = {}
    without_cublaslt = [file for name, file in entry.get("files", {}).items() if "nocublaslt" in name]
    for file in without_cublaslt or entry.get("files", {}).values():
        best = max(best, file["fat_binaries"], key=lambda counts: sum(counts.values()))
    generations = {names: len({number[:-1] for number in re.findall(r"_(\d+)", names)}) for names in best}
    ways: Counter[str] = Counter()
    for names, count in best.items():
        if 2 * generations[names] >= max(generations.values()):
            ways[way_of(names, capability)] += count
    every = ways.total()
    return (ways["native"] / every, (ways["native"] + ways["ptx"]) / every) if every else None


def way_of(names: str, capability: int) -> str:
    """How a GPU runs a fat binary with these pieces of code."""
    how = "no"
    for kind, number, suffix in re.findall(r"(sm|compute)_(\d+)([af]?)", names):
        built = int(number)
        alike = built == capability or (suffix != "a" and not {built, capability} & _ON_A_CHIP)
        if kind == "sm" and alike and built // 10 == capability // 10 and built <= capability:
            return "native"
        if kind == "compute" and built <= capability and (not suffix or built == capability):
            how = "ptx"
    return how


def expected(entry: Entry, capability: int) -> str:
    """`native`, `ptx` or `no` by what a GPU does with two thirds of a wheel's fat binaries, `cpu` if it has none."""
    if "unread" in entry:
        return "unknown"
    found = shares(entry, capability)
    return "cpu" if found is None else "native" if found[0] >= 2 / 3 else "ptx" if found[1] >= 2 / 3 else "no"


def cuda_of(framework: str, entry: Entry) -> float:
    """The CUDA of a wheel as a number, for what systems have: by its metadata, else that of its torch, or its name."""
    stated = entry.get("cuda") or entry.get("built") or cuda_of_torch(entry.get("torch", ""))
    named = re.search(r"\d\d?(?:\.\d+)?", stated or framework.rpartition("cuda")[2])
    return float(named[0]) if named else 0


def fits(system: str, subdir: str, cuda: float) -> bool:
    """Whether there is a machine with a GPU for a platform, with that CUDA; 0 is none that the wheel names."""
    if system == "any":
        return True
    oldest, _, newest = system.partition(" ")
    has_it = system == "grace" or not cuda or int(float(oldest)) <= cuda <= float(newest)
    return subdir == "linux-aarch64" and has_it


@dataclass(frozen=True, slots=True)
class Comparison:
    """A question in words, the answer that the wheels give, why that is "unknown", and ours where it differs."""

    framework: str
    question: str
    expected: str
    why: str = ""
    ours: str | None = None


def comparisons(frameworks: Collection[str], last: int, *, resolves: bool = True) -> Iterator[Comparison]:
    """The answers on the last minor versions of frameworks, beside those of the wheels.

    Args:
        resolves: ask `cuda resolve` too, which takes most of the time.
    """
    for framework in frameworks or FRAMEWORKS:
        keys = FRAMEWORKS[framework]
        minors: dict[str, dict[str, tuple[str, dict[str, Entry]]]] = {}
        for key in keys:
            listed = {wheels.version for wheels in load_wheels().get(key, ())}  # some have no library for its CUDA
            for version, entry in read_table(f"{TABLES}/{key}").items():
                if version in listed:
                    minors.setdefault(minor_of(version), {})[key] = version, entry["platforms"]
        for minor in sorted(minors, key=parse_version)[-last:]:
            for subdir in PLATFORMS:
                yield from _compared(framework, minor, minors[minor], subdir, resolves=resolves)


def _compared(
    framework: str,
    minor: str,
    releases: Mapping[str, tuple[str, Mapping[str, Entry]]],
    subdir: str,
    *,
    resolves: bool,
) -> Iterator[Comparison]:
    facts = load_cuda()
    wheels = {
        key: next(each for each in load_wheels()[key] if each.version == version)
        for key, (version, _) in releases.items()
    }
    entries = {key: platforms[subdir] for key, (_, platforms) in releases.items() if subdir in platforms}
    why = "; ".join(sorted({entry["unread"] for entry in entries.values() if "unread" in entry}))
    resolved: dict[tuple[int, str], str] = {}
    for gpu, (capability, system) in GPUS.items():
        found = {key: expected(entries[key], capability) if key in entries else "no" for key in releases}
        failing = {
            key: said for key in found if found[key] == "ptx" and (said := wheels[key].reported.get(str(capability)))
        }
        found |= dict.fromkeys(failing, "unknown")
        for key, how in found.items():
            judged = judge_wheel(facts, card_named(facts, gpu), wheels[key], subdir).how
            question = f"gpu {gpu}: {key} {releases[key][0]} on {subdir}"
            yield Comparison(framework, question, how, failing.get(key, why), None if judged == how else judged)
        if not resolves:
            continue
        hows = {
            how for key, how in found.items() if key in entries and fits(system, subdir, cuda_of(key, entries[key]))
        }
        how = "runs" if hows & {"native", "ptx"} else "unknown" if "unknown" in hows else "refused"
        if (capability, system) not in resolved:  # `cuda resolve` has the same answer for GPUs of one capability
            answer = resolve([f"{framework}={minor}", f"gpu={gpu}", f"platform={subdir}"])
            doubted = answer.conflict is not None and answer.conflict.unknown
            resolved[capability, system] = "runs" if answer.sets else "unknown" if doubted else "refused"
        ours = resolved[capability, system]
        question = f"resolve {framework}={minor} 'gpu={gpu}' platform={subdir}"
        yield Comparison(
            framework, question, how, why or next(iter(failing.values()), ""), None if ours == how else ours
        )


def check(frameworks: Collection[str] = (), last: int = 8, *, resolves: bool = True) -> int:
    """Print every difference, and a table of the frameworks (all if none is named); return how many answers differ."""
    counts: Counter[tuple[str, str]] = Counter()
    reasons: dict[str, Counter[str]] = {}
    for each in comparisons(frameworks, last, resolves=resolves):
        counts[each.framework, "answers"] += 1
        counts[each.framework, each.expected] += 1
        if each.ours is not None:
            counts[each.framework, "differ"] += 1
            say(f"{each.question}: {each.ours}, not {each.expected}")
        if each.expected == "unknown":
            reasons.setdefault(each.framework, Counter())[each.why] += 1
    say("| framework | answers | not known | differ |", "|---|---|---|---|")
    for framework in frameworks or FRAMEWORKS:
        every, unknown, differ = (counts[framework, what] for what in ("answers", "unknown", "differ"))
        why = "".join(f"; {reason}: {number}" for reason, number in reasons.get(framework, {}).items())
        say(f"| {framework} | {every} | {unknown} ({unknown / max(every, 1):.1%}){why} | {differ} |")
    wrong = sum(number for (_, what), number in counts.items() if what == "differ")
    say(f"{sum(number for (_, what), number in counts.items() if what == 'answers')} answers, {wrong} differ")
    return wrong
