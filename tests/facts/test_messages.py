"""Error messages as users paste them, and what they are explained by."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from feedstock_tools.cli import program
from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.facts.messages import explain_message, load_messages
from maintenance.drawn import leaves
from tests.support.paths import ROOT

_PASTED = YAML(typ="safe").load(Path(__file__).with_name("messages.yaml"))
#: Each message with the name of its explanation, and a part of what that says.
MESSAGES = [(entry["text"], name, entry.get("said", "")) for name, entries in _PASTED.items() for entry in entries]


def test_messages_that_users_paste_are_explained() -> None:
    for message, name, said in MESSAGES:
        explanation = explain_message(message)[0]
        assert (explanation.name, said in explanation.means) == (name, True), message
        texts = (explanation.means, *explanation.user, *explanation.maintainer, *explanation.commands)
        assert not re.search(r"[{}]", "".join(texts)), message


@pytest.mark.parametrize(
    "torn",
    [
        lambda text: "\n".join(text[start : start + 37] for start in range(0, len(text), 37)),
        lambda text: "".join(f"> {line}\n" for line in textwrap.wrap(text, 30)),
        lambda text: "E       " + "\nE       ".join(textwrap.wrap(text, 40)),
        lambda text: "\x1b[31;1m" + text.replace(" ", " \x1b[0m", 1),
        lambda text: re.sub(r"'([^']*)'", "\u2018\\1\u2019", re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text)),
        lambda text: f"web-1  | 2026-02-06T16:34:06.123Z {text}",
        lambda text: "collected 3 items\n" * 50 + text + "\nexit status 1",
    ],
    ids=["cut lines", "quoted", "pytest", "coloured", "curly", "container", "log"],
)
def test_the_form_in_which_a_message_is_pasted_does_not_matter(torn: Callable[[str], str]) -> None:
    for message, name, _ in MESSAGES:
        assert name in {explanation.name for explanation in explain_message(torn(message))}, torn(message)


def test_errors_stand_before_remarks() -> None:
    log = "Unable to register cuDNN factory\nCUDA out of memory\ninvalid device ordinal"
    names = [explanation.name for explanation in explain_message(log)]
    assert names == ["GPU out of memory", "a number of a GPU that is not there", "remarks of TensorFlow"]


@pytest.mark.parametrize("text", ["", "collected 3 items", "error: subprocess-exited-with-error", "Segmentation fault"])
def test_other_text_is_not_explained(text: str) -> None:
    with pytest.raises(WorkError, match="no explanation"):
        explain_message(text)


def test_a_log_with_several_messages_has_each_explained_once() -> None:
    messages = ["CUDA out of memory", "invalid device ordinal", "Error 804", "CUDA error: out of memory"]
    names = [explanation.name for explanation in explain_message("\n".join(messages) + "\n" + "x" * 10_000)]
    assert len(names) == len(set(names)) == 3


def test_every_known_message_is_tried_here() -> None:
    assert {known.name for known in load_messages()} == {name for _, name, _ in MESSAGES}


def test_the_commands_that_are_named_exist_with_their_options() -> None:
    known = {words: {name for each in leaf.params for name in each.opts} for words, leaf in leaves(program._group, "")}
    for explanation in load_messages():
        for text in explanation.commands:
            words = text.removeprefix("feedstock-tools ").split()
            options = known.get(words[0]) or known[" ".join(words[:2])]
            assert {word for word in words if word.startswith("--")} <= options, text


def test_the_documentation_counts_the_messages() -> None:
    assert f"It knows {len(load_messages())} messages" in (ROOT / "docs/cuda.md").read_text(encoding="utf-8")


def test_an_unknown_message_is_an_error_and_an_empty_one_too() -> None:
    with pytest.raises(WorkError, match="no explanation"):
        explain_message("Segmentation fault")
    result = CliRunner().invoke(command, ["explain"], standalone_mode=False)
    assert isinstance(result.exception, FeedstockError)


@pytest.mark.parametrize("arguments", [["-"], []])
def test_a_log_is_read_from_standard_input(arguments: list[str]) -> None:
    log = "building\nptxas fatal   : Value 'sm_86' is not defined for option 'gpu-name'\nmake: *** [a.o] Error 255"
    result = CliRunner().invoke(command, ["explain", *arguments, "--json"], input=log)
    assert result.exception is None, repr(result.exception)
    assert [entry["name"] for entry in json.loads(result.output)] == ["architecture unknown to nvcc"]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("nvcc fatal   : Unsupported gpu architecture 'compute_86'", "CUDA 11.1 to "),
        ("The NVIDIA driver on your system is too old (found version 11040).", " to 2.0.1, for __cuda=11.4"),
        ("unsatisfied condition: cuda>=12.8", "driver 525.60.13 or later, for cuda=12.8"),
        (
            "is of cuda capability 3.5. PyTorch no longer supports this GPU because it is too old",
            "torch 1.0.1 to 1.2.0, for sm=35",
        ),
    ],
)
def test_the_judge_is_asked_with_what_a_message_says(message: str, said: str) -> None:
    result = CliRunner().invoke(command, ["explain", message, "--json"], standalone_mode=False)
    assert said in json.loads(result.output)[0]["judged"]


def test_each_message_tells_users_and_maintainers_apart() -> None:
    assert all(known.user and known.maintainer for known in load_messages())
