"""The answer of the pin graph, sets of releases or a conflict: text, lines for conda_build_config.yaml, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from feedstock_tools.errors import WorkError
from feedstock_tools.pins.graph.kinds import kind_named
from feedstock_tools.pins.graph.model import PinGraph, Release
from feedstock_tools.report.pins.notes import notes
from feedstock_tools.wording import aligned

if TYPE_CHECKING:
    from feedstock_tools.facts.cuda import CudaFacts, PinningRow
    from feedstock_tools.pins.graph.asking import Answer
    from feedstock_tools.pins.graph.explain import Conflict

#: Kinds whose releases are pins of a conda_build_config.yaml, by key and number of version parts.
_PINS = (("cudnn", "cudnn", 2), ("nccl", "nccl", 2), ("cutensor", "cutensor", 2), ("python", "python", 2))


def answer_text(answer: Answer) -> str:
    """An answer for people: one set line by line, several as a table, a conflict in sentences.

    Raises:
        Nothing of its own: a conflict is a text too.

    >>> print(answer_text(resolve(["cuda=11.2", "gcc=11"])).splitlines()[0])
    cuda=11.2 and gcc=11 are incompatible:
    """
    remarks = "".join(f"\nnote: {note}" for note in notes(answer))
    if answer.conflict is not None:
        return f"{answer.conflict}{remarks}"
    if answer.most == 1:
        return f"{_set_text(answer.graph, answer.sets[0])}{remarks}"
    more = "\n(and more; raise --limit, or name kinds with --kind)" if answer.more else ""
    return f"{_sets_table(answer.sets)}{more}{remarks}"


def answer_config(answer: Answer) -> str:
    """The first set of an answer as lines of a conda_build_config.yaml.

    Raises:
        WorkError: there is a conflict, so there is no set to write.

    >>> print(answer_config(resolve(["cuda=11.2", "platform=linux-64"])).splitlines()[0])
    # platform linux-64
    """
    if answer.conflict is not None:
        raise WorkError(str(answer.conflict))
    return _set_config(answer.sets[0], answer.facts)


def answer_json(answer: Answer) -> str:
    """An answer for programs: an object for one set or a conflict, a list for several sets.

    Raises:
        Nothing of its own: a conflict is an object too.

    >>> import json
    >>> json.loads(answer_json(resolve(["cuda=11.2", "gcc=11"])))["conflict"]
    ['cuda=11.2', 'gcc=11']
    """
    if answer.conflict is not None:
        return json.dumps({**_conflict_document(answer.conflict), "notes": list(notes(answer))}, indent=2)
    sets = [_set_document(answer.graph, chosen) for chosen in answer.sets]
    return json.dumps(sets[0] if answer.most == 1 else sets, indent=2)


def _set_text(graph: PinGraph, chosen: Mapping[str, str]) -> str:
    """One line for each release of a set, with the bound or origin that explains it."""
    rows = [
        (kind_named(kind).title, _version(kind, version), _reason(graph, chosen, kind))
        for kind, version in chosen.items()
    ]
    return "\n".join(aligned(rows))


def _sets_table(sets: Sequence[Mapping[str, str]]) -> str:
    """Several sets as a table, one a line."""
    kinds = list(dict.fromkeys(kind for chosen in sets for kind in chosen))
    rows = [[kind_named(kind).title for kind in kinds]]
    rows += [[_version(kind, chosen[kind]) if kind in chosen else "-" for kind in kinds] for chosen in sets]
    return "\n".join(aligned(rows))


def _set_document(graph: PinGraph, chosen: Mapping[str, str]) -> dict[str, Any]:
    """One set as a value for JSON: each release with its requirements on the others in the set, and their sources."""
    return {
        kind: {
            "version": version,
            "bounds": [
                {"said": bound.said, "sources": list(bound.sources)}
                for bound in graph.bounds_of(Release(kind, version))
                if bound.kinds & chosen.keys()
            ],
        }
        for kind, version in chosen.items()
    }


def _conflict_document(conflict: Conflict) -> dict[str, Any]:
    """A conflict as a value for JSON."""
    return {
        "conflict": [str(demand) for demand in conflict.demands],
        "unknown": conflict.unknown,
        "sentences": list(conflict.sentences),
        "nearest": [[str(demand) for demand in demands] for demands in conflict.nearest],
    }


def _set_config(chosen: Mapping[str, str], facts: CudaFacts) -> str:
    """One set as lines of a conda_build_config.yaml that are self-contained: one value for each key.

    Compiler packages, image and glibc are those of the last row of conda-forge's pinning that had this CUDA version for
    this platform; if it never had, they are left out, and a comment says so.
    """
    lines = [
        f"# {kind_named(kind).title} {_version(kind, version)}" for kind, version in chosen.items() if kind in _MACHINE
    ]
    values = dict(_config(chosen, _row(chosen, facts)))
    row = _row(chosen, facts)
    if row is not None:
        lines.append(f"# Keys outside of the set come from conda-forge's pinning at {row.commit[:10]} ({row.date}).")
    elif "cuda" in chosen:
        platform = chosen.get("platform", "this platform")
        lines.append(f"# conda-forge's pinning never had CUDA {chosen['cuda']} for {platform}: add an image yourself.")
    for key, value in values.items():
        lines += [f"{key}:", f"  - {_quoted(value)}"]
    zipped = [key for key in _ZIPPED if key in values]
    if len(zipped) > 1:
        lines += ["zip_keys:", *(f"  {'- ' if number == 0 else '  '}- {key}" for number, key in enumerate(zipped))]
    return "\n".join(lines)


_MACHINE = ("platform", "driver", "__cuda", "sm")
_ZIPPED = ("cuda_compiler", "cuda_compiler_version", "c_compiler_version", "cxx_compiler_version", "docker_image")


def _row(chosen: Mapping[str, str], facts: CudaFacts) -> PinningRow | None:
    rows = (row for row in facts.rows if row.cuda is not None and row.cuda == chosen.get("cuda"))
    return next((row for row in rows if row.platform.subdir == chosen.get("platform")), None)


def _config(chosen: Mapping[str, str], row: PinningRow | None) -> Iterator[tuple[str, str]]:
    pinned = row.values if row else {}
    if "cuda" in chosen:
        era = "nvcc" if int(chosen["cuda"].split(".")[0]) < 12 else "cuda-nvcc"
        yield "cuda_compiler", pinned.get("cuda_compiler", era)
        yield "cuda_compiler_version", chosen["cuda"]
    for kind, key, parts in _PINS:
        if kind in chosen:
            yield key, ".".join(chosen[kind].split(".")[:parts])
    if "gcc" in chosen:
        for key, compiler in (("c", "gcc"), ("cxx", "gxx")):
            yield f"{key}_compiler", compiler
            yield f"{key}_compiler_version", chosen["gcc"]
    elif "visual-studio" in chosen:
        for key in ("c_compiler", "cxx_compiler"):
            yield key, f"vs{chosen['visual-studio'].replace('17.9', '2022')}"
    for key in ("c_stdlib", "c_stdlib_version", "docker_image", "cdt_name", "arm_variant_type"):
        if key in pinned:
            yield key, pinned[key]


def _version(kind: str, version: str) -> str:
    return f"{version} or later" if kind_named(kind).least else f"sm_{version}" if kind == "sm" else version


def _reason(graph: PinGraph, chosen: Mapping[str, str], kind: str) -> str:
    """Why this version: the bound of another release in the set that allows no better one, or else its own bounds."""
    versions = graph.versions.get(kind, ())
    place = versions.index(chosen[kind])
    better = versions[place + 1 :] if kind_named(kind).least else versions[:place][::-1]
    for other, version in chosen.items():
        for bound in graph.bounds_of(Release(other, version)):
            if kind != other and kind in bound.kinds and better:
                others = {name: value for name, value in chosen.items() if name in bound.kinds and name != kind}
                if not bound.open_to({**others, kind: better[0]}):
                    return f"{Release(other, version)}: {bound.said}"
    if kind_named(kind).least:
        return ""
    own = graph.bounds_of(Release(kind, chosen[kind]))
    telling = {"platform"} if kind == "cuda" else {"cuda", "platform"}
    return "; ".join(
        bound.said for bound in own if bound.kinds <= telling and (kind == "cuda" or "cuda" in bound.kinds)
    )


def _quoted(value: str) -> str:
    """A YAML scalar that stays a string: versions would be read as numbers."""
    return f'"{value}"' if value.replace(".", "").isdigit() else value
