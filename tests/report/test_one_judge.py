"""The page of the pin graph answers as the command line does: 500 questions, drawn by a seed, asked of both."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from feedstock_tools.cli import program
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.gpus import find_gpu, load_gpus, reaches
from feedstock_tools.pins.answer_sheet import AnswerSheet, answer_sheet
from feedstock_tools.pins.graph.answers import pin_graph, resolve
from feedstock_tools.pins.graph.model import Release
from feedstock_tools.report.pins.show import page as pins_page
from tests.support.browser import BROWSER, Page
from tests.support.needs import needs

COUNT, BLOCK = 500, 50
LINUX = ("linux-64", "linux-aarch64", "linux-ppc64le")
YES, UNKNOWN, NO = "yes", "unknown", "no"
DRIVERS = (
    *("390.30", "418.39", "440.33", "450.36.06", "450.80", "450.80.02", "455.23", "470", "470.256.02", "496.13"),
    *("511.23", "520.56.06", "522.25", "525", "525.53", "525.60", "527.41", "528.33", "535.183", "550", "550.54.14"),
    *("560.35.03", "570", "570.26", "572.16", "575.51", "580", "580.65.06", "590.44", "595.45.04"),
)


@dataclass(frozen=True)
class Question:
    """What a reader has; empty where nothing is said."""

    gpu: str = ""
    driver: str = ""
    release: Release | None = None
    platform: str = ""
    cuda: str = ""

    @property
    def label(self) -> str:
        """The package or compiler, as the page calls it."""
        return sheet().packages[self.release].label if self.release else ""

    def demands(self) -> list[str]:
        """The demands of `cuda resolve`."""
        named = {"gpu": self.gpu.partition(" (")[0], "driver": self.driver, "platform": self.platform}
        texts = [f"{name}={value}" for name, value in named.items() if value]
        texts += [f"{self.release.kind}=={self.release.version}"] if self.release else []
        return [*texts, f"cuda=={self.cuda}" if self.cuda else "cuda"]

    def on_each_system(self) -> list[Question]:
        """The question for each platform that it is about: a driver is one for Linux where no platform is named."""
        platforms = LINUX if self.driver and not self.platform else (self.platform,)
        return [Question(self.gpu, self.driver, self.release, platform, self.cuda) for platform in platforms]


@cache
def sheet() -> AnswerSheet:
    graph = pin_graph(load_cuda())
    return answer_sheet(graph, graph.versions["cuda"])


def _unambiguous(label: str) -> bool:
    try:
        gpu = find_gpu(label.partition(" (")[0], load_gpus())
    except InputError:
        return False
    return f"({gpu.capability}, " in label


@cache
def questions() -> tuple[Question, ...]:
    source = random.Random(29)  # noqa: S311 - reproducible, not secret
    labels = [entry.label for entry in sheet().gpus if _unambiguous(entry.label)]
    releases = list(sheet().packages)
    drawn: dict[Question, None] = {
        Question(_label(name), driver, None, "linux-64"): None
        for name, driver in (("RTX 5090", "550"), ("H100", "450.80.02"), ("RTX 4090", "470"), ("B200", "535.183"))
    }
    while len(drawn) < COUNT:
        question = Question(
            source.choice(labels) if source.random() < 0.75 else "",
            source.choice(DRIVERS) if source.random() < 0.6 else "",
            source.choice(releases) if source.random() < 0.4 else None,
            source.choice([*filter(None, sheet().platforms)]) if source.random() < 0.5 else "",
            source.choice(sheet().cudas) if source.random() < 0.5 else "",
        )
        if question.gpu or question.driver or question.release:
            drawn[question] = None
    return tuple(drawn)


def _label(name: str) -> str:
    gpu = find_gpu(name, load_gpus())
    return f"{gpu.name} ({gpu.capability}, {gpu.architecture})"


def block(number: int) -> tuple[Question, ...]:
    return questions()[number * BLOCK : (number + 1) * BLOCK]


# --- who answers ------------------------------------------------------------------------------------------------------


@cache
def by_command_line(question: Question) -> tuple[frozenset[str], bool]:
    """The CUDA versions that `cuda resolve` finds, and whether it says of none that it is known."""
    found: set[str] = set()
    unknown = []
    for each in question.on_each_system():
        words = ["cuda", "resolve", *each.demands(), "--kind", "cuda", "--limit", "100", "--json"]
        answer = json.loads(CliRunner().invoke(program._group, words, standalone_mode=False).output)
        if isinstance(answer, list):
            found |= {one["cuda"]["version"] for one in answer}
        else:
            unknown.append(answer["unknown"])
    return frozenset(found), any(unknown)


def by_judge(question: Question) -> tuple[frozenset[str], bool]:
    """The same from the library."""
    answers = [resolve(each.demands(), kinds=["cuda"], most=100) for each in question.on_each_system()]
    found = frozenset(one["cuda"] for answer in answers for one in answer.sets)
    return found, any(answer.conflict.unknown for answer in answers if answer.conflict)


def by_data(question: Question) -> dict[str, str]:
    """What the data of the page says of each CUDA version: what a page does, in other words."""
    document = sheet().document()
    cudas, platforms = document["cudas"], document["platforms"]
    gpu = next((document["gpus"][entry.answer] for entry in sheet().gpus if entry.label == question.gpu), None)
    parts = [_places(document, gpu["places"] if gpu else document["everywhere"])]
    if question.release:
        by_architecture = document["packages"][sheet().packages[question.release].answer]
        parts.append(_places(document, by_architecture.get(gpu["sm"] if gpu else "", by_architecture[""])))
    verdicts = dict.fromkeys(cudas, NO)
    for place in range(len(cudas) * len(platforms)):
        cuda, platform = cudas[place % len(cudas)], platforms[place // len(cudas)]
        windows = platform == "win-64"
        if question.cuda not in ("", cuda) or question.platform not in ("", platform):
            continue
        if question.driver and not question.platform and not platform.startswith("linux"):
            continue
        here = [part.get(place, NO) for part in parts]
        if question.driver:
            least = document["drivers"][place % len(cudas)][windows]
            here.append(UNKNOWN if least is None else YES if reaches(question.driver, least) else NO)
            here.append(_of_gpu(gpu["drivers"][windows], question.driver) if gpu else YES)
        verdict = NO if NO in here else UNKNOWN if UNKNOWN in here else YES
        verdicts[cuda] = max(verdicts[cuda], verdict, key=(NO, UNKNOWN, YES).index)
    return verdicts


def _places(document: Mapping[str, Any], number: int) -> dict[int, str]:
    found: dict[int, str] = {}
    for spans, verdict in zip(document["places"][number].split("?"), (YES, UNKNOWN), strict=False):
        for span in spans.split():
            first, _, last = span.partition("-")
            found |= dict.fromkeys(range(int(first), int(last or first) + 1), verdict)
    return found


def _of_gpu(bounds: list[Any], driver: str) -> str:
    sure, below, least = bounds
    if below and reaches(driver, below):
        return NO
    return YES if not sure or reaches(driver, sure) else UNKNOWN if not least or reaches(driver, least) else NO


#: Asks the page one question after the other: the verdict on each CUDA version, as its table shows it.
ASK = """
(questions => questions.map(question => {
  for (const [name, value] of Object.entries(question)) { document.getElementById(name).value = value; }
  document.getElementById("gpu").dispatchEvent(new Event("input"));
  return Object.fromEntries([...document.querySelectorAll("tbody tr")].map(row =>
    [row.dataset.cuda, row.hidden ? "no" : row.classList.contains("unknown") ? "unknown" : "yes"]));
}))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole page."""
    graph = pin_graph(load_cuda())
    path = tmp_path_factory.mktemp("page") / "pins.html"
    path.write_text(pins_page(graph, graph.versions["cuda"], "conda-forge"), encoding="utf-8")
    return path


def agree(question: Question, verdicts: Mapping[str, str], answer: tuple[frozenset[str], bool]) -> None:
    found, unknown = answer
    assert {cuda for cuda, verdict in verdicts.items() if verdict == YES} == found, question
    # `cuda resolve` names the smallest conflict, which missing facts may cause where another one is certain.
    if question.cuda and not found and verdicts[question.cuda] == UNKNOWN:
        assert unknown, question


# --- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(COUNT // BLOCK))
def test_the_data_of_the_page_is_what_the_judge_says(number: int) -> None:
    for question in block(number):
        agree(question, by_data(question), by_judge(question))


@needs("browser", BROWSER, "Chromium")
@pytest.mark.slow
@pytest.mark.parametrize("number", range(COUNT // BLOCK))
def test_the_page_answers_as_the_command_line(number: int, tab: Page, file: Path) -> None:
    tab.open(file.as_uri())
    asked = [
        {"gpu": q.gpu, "driver": q.driver, "package": q.label, "platform": q.platform, "cuda": q.cuda}
        for q in block(number)
    ]
    for question, verdicts in zip(block(number), tab.ask(f"{ASK}({json.dumps(asked)})"), strict=True):
        agree(question, verdicts, by_command_line(question))
        assert verdicts == by_data(question), question


def test_old_drivers_and_new_gpus_are_among_the_questions() -> None:
    """A driver that does not know the GPU, one that does not run the toolkit, a toolkit that does not know the GPU."""
    nothing_fits = [question for question in questions() if YES not in by_data(question).values()]
    assert sum(bool(q.gpu and q.driver and not q.cuda and not q.release) for q in nothing_fits) >= 20
    assert sum(bool(q.gpu and q.cuda and not q.driver and not q.release) for q in nothing_fits) >= 15
    assert sum(bool(q.driver and q.cuda and not q.gpu and not q.release) for q in nothing_fits) >= 5
    assert sum(UNKNOWN in by_data(question).values() for question in questions()) >= 20


@pytest.mark.parametrize("number", range(COUNT // BLOCK))
def test_what_gpu_refuses_the_page_does_not_offer(number: int) -> None:
    """`gpu` says how, and knows code for older GPUs: what it calls native and the page offers is the same code."""
    for question in block(number):
        if not question.gpu or question.release:
            continue
        for each in question.on_each_system():
            words = ["cuda", "gpu", "--json", each.gpu.partition(" (")[0], "--platform", each.platform or "linux-64"]
            words += ["--driver", each.driver] if each.driver else []
            (card,) = json.loads(CliRunner().invoke(program._group, words, standalone_mode=False).output)["gpus"]
            runs = {build["cuda"]: build["runs"] for build in card["builds"]}
            verdicts = by_data(each)
            assert {runs[cuda] for cuda, verdict in verdicts.items() if verdict == YES} <= {"native"}, question
