"""The requirements of a package that is not built yet: run exports, those that a recipe ignores, and pins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.channel.calls import wait_for
from feedstock_tools.channel.many_solves import ManySolves
from feedstock_tools.check.rehearsal import RehearsedRow, RowEnvironments
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput, UsedVariables
from feedstock_tools.recipe.packages import Package
from feedstock_tools.recipe.requirements import Pin, requirement_of_text
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.variants.model import VariantSpace

LINUX = Platform.parse("linux-64")


def package(name: str, version: str = "1.0", **more: Any) -> dict[str, Any]:
    entry = {"name": name, "version": version, "build": "h0_0", "build_number": 0, "depends": [], "run_exports": {}}
    return {**entry, "subdir": "linux-64", **more}


@pytest.fixture
def channel(tmp_path: Path) -> str:
    packages = (
        package("compiler", run_exports={"strong": ["runtime >=1"], "strong_constrains": ["old <2"]}),
        package("maker", depends=["hidden"], run_exports={"weak": ["never"]}),
        package("hidden", run_exports={"strong": ["never"]}),
        package("runtime", "1.5"),
        package("zlib", "1.3.1", run_exports={"weak": ["libzlib >=1.3.1,<2.0a0"], "noarch": ["zlib-data"]}),
        package("libzlib", "1.3.1"),
        package("zlib-data"),
        package("numpy", "1.21.6"),
        package("python", "3.12.1", run_exports={"noarch": ["python"]}),
    )
    for subdir in ("linux-64", "noarch"):
        (tmp_path / subdir).mkdir()
        entries = {f"{one['name']}-{one['version']}-h0_0.conda": one for one in packages if one["subdir"] == subdir}
        (tmp_path / subdir / "repodata.json").write_text(json.dumps({"packages": {}, "packages.conda": entries}))
    return tmp_path.as_uri()


def required(channel: str, *outputs: Package) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Dependencies and constraints of each output."""

    async def work() -> RowEnvironments:
        solver = ManySolves({"linux-64": [channel]}, at_once=2)
        row = RehearsedRow("row", Configuration("linux_64_", LINUX, {}), LINUX, outputs)
        made = RowEnvironments(row, solver, frozenset(one.name for one in outputs), partial=False)
        await made.build_and_host()
        solver.close()
        return made

    promised = wait_for(work()).promised
    return {name: (one.record.depends, one.record.constrains) for name, one in promised.items()}


def output(name: str, noarch: str | None = None, **more: Any) -> Package:
    used = UsedVariables(*[frozenset[str]()] * 3)
    rendered = RenderedOutput(name, "1.2.3", 0, "h1_0", noarch, {}, {}, VariantSpace(()), used)
    return Package(LINUX, rendered, **more)


def test_strong_exports_of_build_and_all_of_host_reach_run(channel: str) -> None:
    demo = output("demo", build=("compiler", "maker"), host=("zlib",), run=("tool",))

    assert required(channel, demo)["demo"] == (("tool", "runtime >=1", "libzlib >=1.3.1,<2.0a0"), ("old <2",))


def test_noarch_packages_take_noarch_exports_of_host_only(channel: str) -> None:
    demo = output("demo", noarch="generic", build=("compiler",), host=("zlib",))

    assert required(channel, demo)["demo"] == (("zlib-data",), ())


@pytest.mark.parametrize(
    "ignored",
    [{"ignored": frozenset({"libzlib"})}, {"ignored_from": frozenset({"zlib"})}],
    ids=lambda one: next(iter(one)),
)
def test_what_a_recipe_ignores_does_not_reach_it(channel: str, ignored: dict[str, Any]) -> None:
    assert required(channel, output("demo", host=("zlib",), **ignored))["demo"] == ((), ())


def test_an_output_exports_to_the_next(channel: str) -> None:
    library = output("library", run_exports={"weak": (Pin("library", compatible=False, upper="x.x"),)})
    user = output("user", host=("library",), run=(Pin("library", compatible=False, exact=True),))

    assert required(channel, library, user)["user"][0] == ("library ==1.2.3 h1_0", "library >=1.2.3,<1.3.0a0")


def test_pins_on_the_host_environment_follow_its_solution(channel: str) -> None:
    demo = output(
        "demo",
        host=("python", "numpy"),
        run=("python", requirement_of_text("numpy @compatible;max_pin=x.x")),
        run_pins={"python": {"min_pin": "x.x", "max_pin": "x.x"}},
    )

    assert required(channel, demo)["demo"][0] == ("python >=3.12,<3.13.0a0", "numpy >=1.21.6,<1.22.0a0")


@pytest.mark.parametrize(
    ("version", "lower", "upper", "spec"),
    [
        ("1.2.3", "x.x.x.x.x.x", "x", "lib >=1.2.3,<2.0a0"),
        ("1.2.3", "x.x", "x.x.x", "lib >=1.2,<1.2.4.0a0"),
        ("1.2.3", "x.x", None, "lib >=1.2"),
        ("1.2.3", None, "x.x", "lib <1.3.0a0"),
        ("1.2.3", "1.0", "3", "lib >=1.0,<3"),
        ("2024a", "x", "x", "lib >=2024a,<2025.0a0"),
        ("1.2.3", None, None, "lib"),
    ],
)
def test_bounds_of_pins(version: str, lower: str | None, upper: str | None, spec: str) -> None:
    assert Pin("lib", compatible=False, lower=lower, upper=upper).applied(version, "h0_0") == spec
