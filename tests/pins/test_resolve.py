"""Which releases go together: the facts' answers, and random questions answered a second time by brute force."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from itertools import combinations, islice, product

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.facts.frameworks import WheelRelease
from feedstock_tools.pins.graph import answers, from_facts, resolve
from feedstock_tools.pins.graph.answers import pin_graph
from feedstock_tools.pins.graph.explain import explain
from feedstock_tools.pins.graph.kinds import Demand, kind_named, newest_first, parse_demand, parse_demands, preferred
from feedstock_tools.pins.graph.model import Bound, PinGraph, Release, Way
from feedstock_tools.pins.graph.resolve import all_sets, asked_kinds, is_satisfiable
from tests.support.pins import holds


def answer(graph: PinGraph, *demands: str) -> dict[str, str] | None:
    read = parse_demands(demands)
    return next(all_sets(graph, read, asked_kinds(graph, read)), None)


@pytest.mark.parametrize(
    ("demands", "expected"),
    [
        (["cuda=11.2"], {"platform": "linux-64", "cuda": "11.2", "gcc": "10", "driver": "450.80.02", "__cuda": "11.0"}),
        (["cuda=11.2", "cudnn=8.1"], {"cudnn": "8.1.0.77", "gcc": "10"}),
        (["cuda=10.2", "cudnn"], {"cudnn": "8.2.1.32", "gcc": "8", "driver": "440.33"}),
        (["cuda=11.0", "gcc<=9"], {"gcc": "9"}),
        (["cuda=11.2", "platform=win-64"], {"platform": "win-64", "visual-studio": "2019", "driver": "452.39"}),
        (["__cuda=12.4", "cuda"], {"cuda": "12.9", "driver": "550.54.14"}),
        (["gpu=RTX 3080", "cuda<12"], {"sm": "86", "cuda": "11.8", "driver": "455.23"}),
        (["gpu=RTX 5090"], {"sm": "120", "driver": "580"}),
        (["gpu=GTX 1080", "cuda=12.9", "cudnn"], {"cudnn": "9.10.2.21"}),
        (["cuda=11.2.2", "os=windows"], {"cuda": "11.2", "platform": "win-64"}),
    ],
)
def test_one_set_newest_first(facts: CudaFacts, demands: list[str], expected: dict[str, str]) -> None:
    read = parse_demands(demands)
    graph = pin_graph(facts, demands=read)
    found = next(all_sets(graph, read, asked_kinds(graph, read)), None)
    assert found is not None
    assert found.items() >= expected.items()
    assert holds(graph, found)


def test_a_kind_without_releases_is_left_out(facts_graph: PinGraph) -> None:
    found = answer(facts_graph, "cuda=12.9", "platform=win-64")
    assert found is not None
    assert not {"nccl", "gcc", "glibc"} & found.keys()


@pytest.mark.parametrize(
    ("demands", "conflict", "said", "nearest"),
    [
        (["cuda=12.4", "gcc=5"], ["cuda=12.4", "gcc=5"], "nvcc accepts host gcc 6 to 13", ["cuda=12.4", "gcc=6"]),
        (["cuda=11.2", "gcc=13"], ["cuda=11.2", "gcc=13"], "nvcc accepts host gcc 5 to 10", ["cuda=11.2", "gcc=10"]),
        (
            ["python=3.9", "sm=70", "cuda=13.0"],
            ["sm=70", "cuda=13.0"],
            "knows sm_75",
            ["python=3.9", "sm=70", "cuda=12.9"],
        ),
        (["cuda=12.7"], ["cuda=12.7"], "no such CUDA", ["cuda=12.8"]),
        (["cuda=12.10"], ["cuda=12.10"], "no such CUDA", ["cuda=12.9"]),
        (["cuda=12.9", "nccl", "platform=win-64"], ["nccl", "platform=win-64"], "linux-aarch64", None),
        (["cudnn=8.1", "cuda=12"], ["cudnn=8.1", "cuda=12"], "CUDA 10.2.* and 11.*", ["cudnn=8.8.0.121", "cuda=12"]),
        (
            ["driver=470.42.01", "cuda>=12"],
            ["driver=470.42.01", "cuda>=12"],
            "525.60.13",
            ["driver=470.42.01", "cuda=11.8"],
        ),
    ],
)
def test_a_conflict_names_the_fewest_demands_and_the_nearest_that_hold(
    facts_graph: PinGraph, demands: list[str], conflict: list[str], said: str, nearest: list[str] | None
) -> None:
    found = explain(facts_graph, parse_demands(demands))
    assert found is not None
    assert [str(demand) for demand in found.demands] == conflict
    assert len(found.sentences) == len(conflict)
    assert said in " ".join(found.sentences)
    if nearest is not None:
        assert [str(demand) for demand in found.nearest[0]] == nearest
    for demands_that_hold in found.nearest:
        assert is_satisfiable(facts_graph, demands_that_hold)


def test_demands_that_hold_have_no_conflict(facts_graph: PinGraph) -> None:
    assert explain(facts_graph, parse_demands(["cuda=11.2", "gcc=10"])) is None


@pytest.mark.parametrize(
    "text",
    ["", "=11", "cuda=", "cuda=11.2=8", "cuda>=x y", "platform=solaris", "gpu", "gpu>3", "sm=ninety", "platform>3"],
)
def test_invalid_demands(text: str) -> None:
    with pytest.raises(InputError):
        parse_demand(text)


def test_all_mistakes_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_demands(["cuda=?", "platform=mars", "gcc=10"])
    assert len(caught.value.mistakes) == 2


# --- brute force -----------------------------------------------------------------------------------------------------


def every_set(graph: PinGraph, demands: list[Demand], kinds: list[str]) -> Iterator[dict[str, str]]:
    """Every choice of at most one release of each kind that meets the demands and is valid in the graph, in order."""
    choices: list[list[str | None]] = []
    for kind in kinds:
        of_kind = [demand for demand in demands if demand.kind == kind]
        fitting = [v for v in preferred(kind, graph.versions[kind]) if all(demand.admits(v) for demand in of_kind)]
        choices.append([*fitting, *(() if of_kind else (None,))])
    for versions in product(*choices):
        chosen = dict(zip(kinds, versions, strict=True))
        if holds(graph, chosen):
            yield {kind: version for kind, version in chosen.items() if version is not None}


def possible(graph: PinGraph, demands: list[Demand]) -> bool:
    """By brute force over the requested kinds and CUDA, the only kind that a release in the facts may need."""
    kinds = [kind for kind in graph.versions if kind == "cuda" or kind in {demand.kind for demand in demands}]
    return next(every_set(graph, demands, kinds), None) is not None


def random_demand(source: random.Random, graph: PinGraph) -> Demand:
    kind = source.choice([kind for kind in graph.versions if kind != "python"])
    version = source.choice(graph.versions[kind])
    if not kind_named(kind).versioned:
        return parse_demand(f"{kind}={version}")
    operator = source.choice(["=", "=", "=", "==", "==", "==", ">=", "<"])
    shortened = ".".join(version.split(".")[: source.randint(1, 3)]) if operator == "=" else version
    return parse_demand(f"{kind}{operator}{shortened}")


#: How many random sets of demands are tried; for a longer run, as in `DEMANDS=3000 pytest tests/pins/test_resolve.py`.
DEMANDS = int(os.environ.get("DEMANDS", "60"))


@pytest.mark.parametrize("seed", range(DEMANDS))
def test_random_demands_against_brute_force(facts_graph: PinGraph, seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - reproducible, not secret
    demands = list(dict.fromkeys(random_demand(source, facts_graph) for _ in range(source.choice([1, 2, 2, 3, 3, 4]))))
    kinds = asked_kinds(facts_graph, demands)
    found = next(all_sets(facts_graph, demands, kinds), None)
    assert (found is not None) == possible(facts_graph, demands)
    if found is not None:
        assert holds(facts_graph, found)
        assert all(demand.kind in found and demand.admits(found[demand.kind]) for demand in demands)
        return
    conflict = explain(facts_graph, demands)
    assert conflict is not None
    assert not possible(facts_graph, list(conflict.demands))
    certain = facts_graph.without_unknown()
    decides = facts_graph if possible(certain, demands) else certain  # what is certain comes before what is not known
    for size in range(1, len(conflict.demands)):
        for fewer in combinations(demands, size):
            assert possible(decides, list(fewer)), "there is a smaller conflict"
    for nearest in conflict.nearest:
        assert possible(facts_graph, list(nearest))


def random_graph(source: random.Random) -> PinGraph:
    """Four kinds of up to three releases, with bounds of one or two ways that constrain or need others."""
    kinds = ["cuda", "cudnn", "gcc", "driver"]
    releases = [Release(kind, str(number)) for kind in kinds for number in range(1, source.randint(2, 4))]
    versions = {kind: [release.version for release in releases if release.kind == kind] for kind in kinds}

    def way(own: str) -> Way:
        others = source.sample([kind for kind in kinds if kind != own], source.randint(1, 2))
        allowed = {kind: frozenset(v for v in versions[kind] if source.random() < 0.6) for kind in others}
        return Way(allowed, frozenset(kind for kind in others if source.random() < 0.5))

    bounds = [
        Bound(release, tuple(way(release.kind) for _ in range(source.randint(1, 2))), f"bound of {release}")
        for release in releases
        if source.random() < 0.7
    ]
    return PinGraph(frozenset(releases), tuple(bounds))


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_graphs_against_brute_force(first: int) -> None:
    for seed in range(first, first + 50):
        a_random_graph_against_brute_force(seed)


def a_random_graph_against_brute_force(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311
    graph = random_graph(source)
    kinds = list(graph.versions)
    demanded = source.sample(kinds, source.randint(0, 2))
    demands = [parse_demand(f"{kind}{source.choice(['', '=1', '>=2', '=2'])}") for kind in demanded]
    held = list(every_set(graph, demands, kinds))
    # Those to which nothing can be added, and of those that differ in the driver alone, the first.
    full = [one for one in held if not any(one.items() < other.items() for other in held)]
    found = list(all_sets(graph, demands, asked_kinds(graph, demands, kinds)))
    without_driver = [{k: v for k, v in one.items() if k != "driver"} for one in full]
    assert {tuple(one.items()) for one in found} <= {tuple(one.items()) for one in full}
    first_of_each = [one for number, one in enumerate(full) if without_driver[number] not in without_driver[:number]]
    assert found == first_of_each
    assert is_satisfiable(graph, demands) == bool(held)


@pytest.mark.parametrize("texts", [["cuda=11.2"], ["platform=linux-64"]])
def test_sets_that_are_not_full_are_left_out_early(
    facts_graph: PinGraph, monkeypatch: pytest.MonkeyPatch, texts: list[str]
) -> None:
    """Without trying each driver with each of them."""
    demands = parse_demands(texts)
    asked = 0
    is_full = resolve._Search.is_full

    def counted(search: resolve._Search, chosen: Mapping[str, str | None]) -> bool:
        nonlocal asked
        asked += 1
        return is_full(search, chosen)

    monkeypatch.setattr(resolve._Search, "is_full", counted)
    found = list(islice(all_sets(facts_graph, demands, asked_kinds(facts_graph, demands)), 300))
    assert len(found) == 300
    assert asked <= 2 * len(found)


def test_every_set_of_the_kinds_named(facts_graph: PinGraph) -> None:
    demands = parse_demands(["cuda=11.2", "platform=linux-64"])
    found = list(all_sets(facts_graph, demands, asked_kinds(facts_graph, demands, ["cudnn", "gcc"])))
    assert found[0]["cudnn"] == newest_first("cudnn", {one["cudnn"] for one in found})[0]
    assert {one["gcc"] for one in found} == {"5", "6", "7", "8", "9", "10"}
    assert len(found) == len({tuple(one.items()) for one in found})
    assert all(holds(facts_graph, one) for one in found)


@pytest.mark.parametrize(
    ("demands", "runs"),
    [
        (["torch=2.10", "gpu=GTX 1080 Ti"], False),  # no code for it in the wheel, though CUDA 12.8 compiles for it
        (["torch=2.0", "gpu=RTX 4090"], True),  # by code for sm_86, though CUDA 11.7 does not know sm_89
        (["torch=2.10", "gpu=GH200"], False),  # the wheel for ARM has no CUDA
        (["torch=2.11", "gpu=GH200"], True),
        (["torch=2.8", "platform=win-64"], False),
        (["tensorflow=2.20", "gpu=H100", "driver=535"], False),  # PTX of CUDA 12.5
        (["tensorflow=2.20", "gpu=H100", "driver=555.42.02"], True),
        (["tensorflow=2.20", "gpu=L4", "driver=535"], True),  # machine code
        (["jax=0.12", "gpu=P100"], True),
        (["jax=0.12", "gpu=P100", "cuda=13"], False),
    ],
)
def test_a_framework_runs_what_its_wheel_holds(demands: list[str], runs: bool) -> None:
    assert bool(answers.resolve(demands).sets) is runs


def test_a_wheel_that_was_not_read_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = {"linux-64": "it has 9 GB"}
    found = WheelRelease("torch", "2.99.0", ("3.12",), ("linux-64",), cuda="==12.8.90", unread=unread)
    monkeypatch.setattr(from_facts, "load_wheels", lambda: {"torch": (found,)})
    from_facts._graph_for.cache_clear()
    try:
        conflict = answers.resolve(["torch=2.99", "gpu=H100"]).conflict
    finally:
        from_facts._graph_for.cache_clear()
    assert conflict is not None
    assert conflict.unknown
    assert "of those for linux-64 it is not known: it has 9 GB" in str(conflict)


def test_platforms_without_a_wheel_are_told_from_wheels_that_are_not_known() -> None:
    conflict = answers.resolve(["triton=3.3", "platform=win-64"]).conflict
    assert "only its wheels for linux-64 may hold GPU code" in str(conflict)


def test_a_wheel_that_was_not_read_is_not_called_one_without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    read = WheelRelease("bitsandbytes-cuda126", "0.99.0", ("3.12",), ("linux-64",), code={"linux-64": "sm_90"})
    unread = WheelRelease(
        "bitsandbytes-cuda128", "0.99.0", ("3.12",), ("linux-64",), unread={"linux-64": "it has 9 GB"}
    )
    monkeypatch.setattr(from_facts, "load_wheels", lambda: {each.framework: (each,) for each in (read, unread)})
    scales = {"sm": frozenset({"90"}), "__cuda": frozenset({"12.8"})}
    bounds = from_facts.bounds_of_wheels("bitsandbytes", load_cuda(), ("12.6", "12.8"), (), scales, ())
    (said,) = (bound.said for bound in bounds if "cuda" in bound.kinds and "for CUDA" in bound.said)
    assert said == (
        "it is bitsandbytes-cuda126 for CUDA 12.6 or bitsandbytes-cuda128 for CUDA 12.8, whose GPU code is not known"
    )


def test_wsl_has_packages_of_linux_and_drivers_of_windows() -> None:
    assert answers.resolve(["os=wsl", "driver=471.41", "cuda=12.0"]).conflict is not None
    (found,) = answers.resolve(["os=wsl", "driver=528.33", "cuda=12.0"]).sets
    assert (found["platform"], found["gcc"]) == ("linux-64", "12")
    (least,) = answers.resolve(["os=wsl", "cuda=12.8", "gpu=RTX 5090"]).sets
    assert least["driver"] == "572.16"


def test_a_kind_that_is_spelt_almost_as_one_is_bad_input() -> None:
    with pytest.raises(InputError, match=r"there is no 'cdua' in the facts\n  Did you mean 'cuda'\?"):
        answers.resolve(["cdua=12"])
    assert answers.resolve(["foo=12"]).conflict is not None
