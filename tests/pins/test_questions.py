"""The questions of docs/cuda-questions.md: every command is run, and its answer must say what the page says."""

from __future__ import annotations

import re
import shlex

import pytest
from click.testing import CliRunner

from feedstock_tools.cli import program
from feedstock_tools.errors import FeedstockError
from feedstock_tools.pins.graph.kinds import FRAMEWORKS
from feedstock_tools.versions import minor_of
from maintenance.facts.framework_wheels import TABLES
from maintenance.facts.records import read_table
from tests.support.paths import ROOT

_ROW = re.compile(r"^\| (?P<question>.+?) \| `(?P<command>.+?)` \| (?P<answer>.+?) \|$", re.MULTILINE)
QUESTIONS = _ROW.findall((ROOT / "docs" / "cuda-questions.md").read_text(encoding="utf-8"))[1:]


def test_there_are_two_hundred_and_fifty_questions() -> None:
    assert len(QUESTIONS) >= 250


def test_the_wheels_that_questions_are_about_are_recorded_with_their_hashes() -> None:
    asked = {
        (name, version) for _, command, _ in QUESTIONS for name, version in re.findall(r"([\w-]+)=(\d[\d.]*)", command)
    }
    for name, version in sorted(asked):
        for key in FRAMEWORKS.get(name, ()):
            for release, entry in read_table(f"{TABLES}/{key}").items():
                if minor_of(release) == minor_of(version):
                    assert all(found.get("sha256") or found.get("unread") for found in entry["platforms"].values()), key


@pytest.mark.parametrize(("question", "command", "answer"), QUESTIONS, ids=[question for question, *_ in QUESTIONS])
def test_the_answer_says_what_the_page_says(question: str, command: str, answer: str) -> None:
    result = CliRunner().invoke(program._group, shlex.split(command), standalone_mode=False)
    printed = str(result.exception) if isinstance(result.exception, FeedstockError) else result.output
    assert result.exception is None or isinstance(result.exception, FeedstockError)
    pattern = ".*?".join(re.escape(part) for part in answer.split(" … "))
    assert re.search(pattern, printed, re.DOTALL), f"{question}\n{printed}"
