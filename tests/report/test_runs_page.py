"""The page "What runs on my GPU" answers as the judge does: questions, drawn by a seed, asked of both."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.frameworks import conda_builds, load_wheels
from feedstock_tools.facts.gpus import find_gpus, load_gpus, reaches
from feedstock_tools.pins.graph.kinds import FRAMEWORKS
from feedstock_tools.pins.judge import card_named, judge_wheel
from feedstock_tools.pins.wheel_sheet import SYSTEMS, WheelSheet, wheel_sheet
from feedstock_tools.report.pins.show import runs_page
from tests.support.browser import BROWSER, Page
from tests.support.needs import needs

COUNT = 250
DRIVERS = (
    *(
        "",
        "",
        "390.157",
        "415.18",
        "418.56",
        "440.33",
        "450.80.02",
        "452.39",
        "470",
        "470.256.02",
        "511.23",
        "520.56.06",
    ),
    *("525", "525.30", "525.60.13", "528.33", "530.20", "535.183", "550.54.14", "560.35.03", "565.57", "570.133.07"),
    *("572.16", "575.51", "580", "580.65.06", "590.44", "595.45.04"),
)


@dataclass(frozen=True)
class Question:
    """What a reader has."""

    gpu: str
    driver: str
    system: str
    framework: str


@cache
def sheet() -> WheelSheet:
    return wheel_sheet(load_cuda())


@cache
def questions() -> tuple[Question, ...]:
    source = random.Random(32)  # noqa: S311 - reproducible, not secret
    labels = [label for label in sheet().gpus if _is_one(label)]
    drawn = {Question("GeForce GTX 1650 (7.5)", "415.18", "Linux", "torch"): None}
    while len(drawn) < COUNT:
        drawn[
            Question(
                source.choice(labels),
                source.choice(DRIVERS),
                source.choice(SYSTEMS)[0],
                source.choice(list(sheet().releases)),
            )
        ] = None
    return tuple(drawn)


def _is_one(label: str) -> bool:
    try:
        return len(find_gpus(label.partition(" (")[0], load_gpus())) == 1
    except InputError:
        return False


def _place(question: Question) -> tuple[str, bool]:
    arm = sheet().of_gpus[sheet().gpus[question.gpu]]["arm"]
    return next(
        (subdir, windows) for name, subdir, windows in SYSTEMS if name == ("Linux on ARM" if arm else question.system)
    )


def by_judge(question: Question) -> list[str]:
    """How the GPU runs each release, newest first."""
    subdir, windows = _place(question)
    card = card_named(load_cuda(), question.gpu.partition(" (")[0], question.driver or None, windows=windows)
    wheels = [each for key in reversed(FRAMEWORKS[question.framework]) for each in reversed(load_wheels().get(key, ()))]
    return [judge_wheel(load_cuda(), card, each, subdir).how for each in wheels]


def by_data(question: Question, *, conda: bool = False) -> list[str]:
    """The same from the data of the page: what its script does, in other words."""
    subdir, windows = _place(question)
    gpu = sheet().of_gpus[sheet().gpus[question.gpu]]
    releases = (sheet().builds if conda else sheet().releases)[question.framework]
    rows = (sheet().rows[release["on"][subdir]] for release in releases if subdir in release["on"])
    return [_with_driver(sheet().answers[row[gpu["capability"]]], gpu, question.driver, windows) for row in rows]


def _with_driver(answer: Any, gpu: Any, driver: str, windows: bool) -> str:
    if not driver or "least" not in answer:
        return str(answer["how"])
    sure, below, first = gpu["drivers"][windows]
    least = answer["least"][windows]
    if (below and reaches(driver, below)) or least is None or not reaches(driver, least):
        return "no"
    if not sure or reaches(driver, sure):
        return str(answer["how"])
    return "no" if first and not reaches(driver, first) else "unknown"


def test_the_data_of_the_page_is_what_the_judge_says() -> None:
    for question in questions():
        assert by_data(question) == by_judge(question), question


def test_the_builds_of_conda_forge_are_judged_as_by_the_command() -> None:
    """Of one framework all builds are asked at once, as `cuda gpu` does."""
    asked = [question for question in questions() if by_data(question, conda=True)]
    assert len(asked) > COUNT / 5
    for question in asked:
        subdir, windows = _place(question)
        card = card_named(load_cuda(), question.gpu.partition(" (")[0], question.driver or None, windows=windows)
        package = sheet().builds[question.framework][0]["what"].partition(" ")[0]
        builds = [build for build in reversed(conda_builds()[package]) if subdir in build.platforms]
        told = [judge_wheel(load_cuda(), card, build, subdir).how for build in builds]
        assert by_data(question, conda=True) == told, question


def test_all_verdicts_are_among_the_answers_to_the_questions() -> None:
    told = [how for question in questions() for how in by_data(question)]
    assert {how for how in told if told.count(how) > 20} == {"native", "ptx", "no", "cpu", "unknown"}


def test_what_runs_has_a_line_to_type_on_its_platform() -> None:
    for framework, releases in sheet().releases.items():
        for release in releases:
            for subdir, row in release["on"].items():
                if {sheet().answers[number]["how"] for number in sheet().rows[row]} & {"native", "ptx"}:
                    assert release["lines"][subdir].startswith("pip install "), (framework, release["what"])
    lines = {release["what"]: release["lines"] for release in sheet().releases["torch"]}
    assert lines["torch 2.8"]["win-64"].endswith("--index-url https://download.pytorch.org/whl/cu128")
    assert lines["torch 2.8"]["linux-64"] == "pip install 'torch==2.8.*'"


#: Asks the page one question after the other: what it answers, and what its table says of each line of releases.
ASK = """
(questions => questions.map(question => {
  for (const [name, value] of Object.entries(question)) { document.getElementById(name).value = value; }
  document.getElementById("gpu").dispatchEvent(new Event("input"));
  return {
    hash: location.hash,
    line: (document.querySelector("#answer code") || {}).textContent,
    how: [...document.querySelectorAll("#wheels tr")].map(row => row.dataset.how)
  };
}))
"""


@needs("browser", BROWSER, "Chromium")
@pytest.mark.slow
def test_the_page_answers_as_its_data(tab: Page, tmp_path: Path) -> None:
    file = tmp_path / "runs.html"
    file.write_text(runs_page(), encoding="utf-8")
    tab.open(file.as_uri())
    asked = [{**vars_of(question), "manager": "pip"} for question in questions()]
    for question, answer in zip(questions(), tab.ask(f"{ASK}({json.dumps(asked)})"), strict=True):
        told = by_data(question)
        # Successive releases of one answer are one line of the table.
        assert [how for at, how in enumerate(answer["how"]) if not at or how != answer["how"][at - 1]] == [
            how for at, how in enumerate(told) if not at or how != told[at - 1]
        ], question
        best = next((how for how in ("native", "ptx", "unknown") if how in told), None)
        if best:
            release = sheet().releases[question.framework][told.index(best)]
            assert answer["line"] == release["lines"][_place(question)[0]], question
    of_conda = [question for question in questions() if by_data(question, conda=True)]
    asked = [{**vars_of(question), "manager": "conda"} for question in of_conda]
    for question, answer in zip(of_conda, tab.ask(f"{ASK}({json.dumps(asked)})"), strict=True):
        told, subdir = by_data(question, conda=True), _place(question)[0]
        builds = [build for build in sheet().builds[question.framework] if subdir in build["on"]]
        best = next((how for how in ("native", "ptx", "unknown") if how in told), None)
        assert answer.get("line") == (builds[told.index(best)]["lines"][subdir] if best else None), question


def vars_of(question: Question) -> dict[str, str]:
    return {name: getattr(question, name) for name in ("gpu", "driver", "system", "framework")}


@needs("browser", BROWSER, "Chromium")
def test_an_address_has_the_question_and_a_phone_needs_no_sideways_scrolling(tab: Page, tmp_path: Path) -> None:
    file = tmp_path / "runs.html"
    file.write_text(runs_page(), encoding="utf-8")
    tab.open(f"{file.as_uri()}#gpu=RTX%205070%20Ti%20Laptop&driver=570.124.04&framework=torch", width=390)
    assert "this GPU needs 570.133.07 or later" in tab.ask("document.body.textContent")
    tab.open(f"{file.as_uri()}#gpu=GT%20730&framework=torch", width=390)
    told = tab.ask("document.getElementById('answer').textContent")
    assert all(f"GeForce GT 730 ({capability})" in told for capability in ("2.1", "3.0", "3.5"))
    assert tab.ask("document.documentElement.scrollWidth") <= 390
    assert tab.findings() == []
