"""Which rows one call of the feedstock's own script builds: those that would compile the same thing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from feedstock_tools.builds.plan.rendering import PlannedInputs, render_outputs
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow

ENGINE = "container .scripts 0123456789ab"
HEAD = 'recipe: {name: split, version: "1"}\nbuild: {number: 0}\noutputs:\n'
SIZED = "  - staging: {name: sized}\n    build: {script: 'make ${{ size }}'}\n"
TASTED = "  - staging: {name: tasted}\n    build: {script: 'make ${{ flavour }}'}\n"


def _heir(of: str, *keys: str) -> str:
    used = "".join(f" ${{{{ {key} }}}}" for key in keys)
    return f"  - package: {{name: of-{of}}}\n    inherit: {of}\n    build: {{script: 'cp a $PREFIX{used}'}}\n"


BOTH = ("size", "flavour")
TOP = "package: {name: split, version: 1}\noutputs:\n"
#: File, text of the recipe and of its build.sh → the rows of each call, by size and flavour, and its name.
CASES = {
    "a staging output": ("recipe.yaml", HEAD + SIZED + _heir("sized", *BOTH), "", {"1x 1y": "sized", "2x 2y": "sized"}),
    "two that other rows share": (
        *("recipe.yaml", HEAD + SIZED + TASTED + _heir("sized", *BOTH) + _heir("tasted", *BOTH), ""),
        {"1x 1y 2x 2y": "sized"},
    ),
    "written with quotes": (
        "recipe.yaml",
        HEAD + "  - {\"staging\": {name: sized}, build: {script: 'make ${{ size }}'}}\n" + _heir("sized", *BOTH),
        "",
        {"1x 1y": "sized", "2x 2y": "sized"},
    ),
    "one that needs an output": (
        "recipe.yaml",
        HEAD
        + "  - package: {name: base}\n    build: {script: 'make ${{ size }} ${{ flavour }}'}\n"
        + SIZED
        + "    requirements: {host: [base]}\n"
        + _heir("sized", *BOTH),
        "",
        {"1x 1y": "sized", "2x 2y": "sized"},
    ),
    "an output": (
        *("recipe.yaml", HEAD + "  - package: {name: base}\n    build: {script: 'make ${{ flavour }}'}\n", ""),
        {"1x 2x": "base-rows", "1y 2y": "base-rows"},
    ),
    "values that a call brings along": (
        "recipe.yaml",
        HEAD
        + "  - package: {name: first}\n    build: {script: make, skip: [size == '2']}\n"
        + "  - package: {name: second}\n    build: {script: make, skip: [flavour == 'x']}\n"
        + "  - package: {name: own}\n    build: {script: 'make ${{ size }} ${{ flavour }}'}\n",
        "",
        {"1x 1y 2x 2y": "first-rows"},
    ),
    "nothing in common": (
        *("recipe.yaml", HEAD + "  - package: {name: own}\n    build: {script: 'm ${{ size }} ${{ flavour }}'}\n", ""),
        {},
    ),
    "a top level": (
        *("meta.yaml", TOP + "  - name: own\n    script: i.sh\n    build: {string: '{{ flavour }}'}\n", "make $size"),
        {"1x 1y": "split-top-level", "2x 2y": "split-top-level"},
    ),
    "an output of a meta.yaml": (
        "meta.yaml",
        TOP + "  - name: base\n    script: m.sh\n  - name: own\n    script: i.sh\n"
        "    build: {string: '{{ size }}{{ flavour }}'}\n",
        "",
        {"1x 1y 2x 2y": "base-rows"},
    ),
}


def _planned(folder: Path, file: str, text: str, script: str) -> tuple[PlannedRow, ...]:
    (folder / file).write_text(text)
    for name in ("i.sh", "m.sh"):
        (folder / name).write_text("true\n")
    if script:
        (folder / "build.sh").write_text(f"{script}\n")
    values = [{"size": size, "flavour": flavour, "target_platform": "linux-64"} for size in "12" for flavour in "xy"]
    rows = tuple(PlannedRow(f"{each['size']}{each['flavour']}", each, None, None) for each in values)
    configuration = PlannedConfiguration("linux_64_", "linux-64", rows)
    (complete,), _ = render_outputs([configuration], folder / "recipe.yaml", {"linux-64": ENGINE})
    assert complete.refusal is None
    assert PlannedConfiguration.from_json(complete.to_json()) == complete
    return complete.rows


@pytest.mark.parametrize("case", CASES)
def test_rows_that_would_compile_the_same_are_built_by_one_call(tmp_path: Path, case: str) -> None:
    file, text, script, expected = CASES[case]
    made = _planned(tmp_path, file, text, script)
    calls = {call.identity: call for row in made for call in row.shared}
    assert {" ".join(sorted(call.rows)): call.name for call in calls.values()} == expected
    for row in made:
        assert len(row.shared) <= 1
        assert all(row.name in call.rows for call in row.shared)
        assert all(output.staging == tuple(call.name for call in row.shared) for output in row.outputs)


def test_an_edit_or_another_row_makes_it_another_call(tmp_path: Path) -> None:
    """Its heirs would take the packages that the call before has made."""
    file, text, script, _ = CASES["a staging output"]
    (before, *_), (after, *_) = (
        _planned(tmp_path, file, edited, script) for edited in (text, text.replace("cp a", "cp b"))
    )
    assert before.shared[0].identity != after.shared[0].identity
    assert before.shared[0].inputs["variant"] == after.shared[0].inputs["variant"]
    (other, *_) = _planned(tmp_path, file, HEAD + TASTED + _heir("tasted", *BOTH), script)
    assert other.shared[0].inputs["variant"] != after.shared[0].inputs["variant"]


def test_a_call_differs_once_its_recipe_does(tmp_path: Path) -> None:
    file, text, script, _ = CASES["a staging output"]
    row = _planned(tmp_path, file, text, script)[0]
    inputs = replace(PlannedInputs.of(tmp_path / file, []), stamp="")
    alone = replace(row, name="linux_64.sized", outputs=row.shared, shared=())
    assert not inputs.differ("linux-64", alone, row.shared[0])
    (tmp_path / file).write_text(text.replace("cp a", "cp b"))
    assert inputs.differ("linux-64", alone, row.shared[0])
