"""The matrix as a table, as Markdown and as JSON: the same content, and no control sequences from a build."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from feedstock_tools.builds.matrix.matrix import Matrix
from feedstock_tools.report.matrix import matrix_json, matrix_markdown, matrix_text
from feedstock_tools.wording import duration

MakeMatrix = Callable[[int], Matrix]


def test_a_table_with_a_line_for_each_configuration(matrix_of: MakeMatrix) -> None:
    text = matrix_text(matrix_of(11))
    assert "linux_64_cuda10.0  done           3 of 3  2026-03-03 09:01  2 min 04 s  build-server" in text
    assert text.splitlines()[-1].startswith("11 configurations: 1 running, 1 failed, 1 interrupted, 1 stale, 1 missing")


def test_what_is_not_done_is_explained_with_its_log(matrix_of: MakeMatrix) -> None:
    text = matrix_text(matrix_of(11))
    assert "failed: linux_64_cuda10.3: the script failed" in text
    assert "logs/linux_64_cuda_compiler_version10.3_py3.12.log" in text
    assert "built from other inputs: the engine, rattler-build 0.72.0 → rattler-build 0.73.0" in text
    assert "refused: win_64_cuda11.0: packages for win-64 need Windows" in text


def test_a_configuration_that_is_refused_before_its_packages_are_known_has_its_reason(matrix_of: MakeMatrix) -> None:
    matrix = matrix_of(1)
    (state,) = matrix.configurations
    unknown = replace(matrix, configurations=(replace(state, outputs=(), shared=(), reason="there is no source"),))
    reason = f"refused: {state.configuration.short_name}: there is no source"
    assert reason in matrix_text(unknown)
    assert reason.partition(": there")[0] in re.sub("</?code>", "", matrix_markdown(unknown))


def test_no_codes_of_a_build_reach_the_terminal(matrix_of: MakeMatrix) -> None:
    assert "\x1b" not in matrix_text(matrix_of(11)) + matrix_markdown(matrix_of(12))


def test_markdown_has_a_row_for_each_and_hides_no_html(matrix_of: MakeMatrix) -> None:
    text = matrix_markdown(matrix_of(11))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 13
    assert len({line.count("|") for line in rows}) == 1
    inside = text.partition("<summary>failed")[2].partition("</details>")[0]
    assert inside.count("```") == 2
    assert "<script>" in inside.split("```")[1]
    assert text.count("<script>") == 1


def test_json_has_every_package_and_its_build(matrix_of: MakeMatrix) -> None:
    content = json.loads(json.dumps(matrix_json(matrix_of(11))))
    assert sum(content["counts"].values()) == 11
    done = content["configurations"][0]
    assert done["state"] == "done"
    assert [output["name"] for output in done["outputs"]] == ["libhello", "hello", "hello"]
    assert done["outputs"][0]["build_record"]["packages"][0]["sha256"] == "ab" * 32
    stale = content["configurations"][5]["outputs"][0]
    assert stale["changed"] == ["the engine, rattler-build 0.72.0 → rattler-build 0.73.0"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0.421, "0.42 s"), (41.5, "42 s"), (250, "4 min 10 s"), (7500, "2 h 05 min"), (59.9, "1 min 00 s")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
