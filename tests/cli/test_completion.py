"""What shells offer for the word at the cursor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools.cli import completion
from tests.support import command
from tests.support.needs import needs
from tests.support.paths import ROOT

GPUPROBE = ROOT / "examples" / "gpuprobe"


def answered(line: str, folder: Path = GPUPROBE) -> list[list[str]]:
    """What the program tells a shell about the word at the end of a line: its kind, the word, what it means."""
    words = shlex.split(line)
    at_cursor = "" if line.endswith(" ") else words[-1]
    asked = {"COMP_WORDS": f"feedstock-tools {line}", "COMP_CWORD": at_cursor, completion.VARIABLE: "fish_complete"}
    run = command.run(command.tool(), folder, command.environment(**asked))
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    return [[kind, *word.split("\t")] for kind, _, word in (row.partition(",") for row in run.stdout.splitlines())]


def offered(line: str, folder: Path = GPUPROBE) -> list[str]:
    """The words that a shell would offer for the one at the end of a line."""
    return [word for kind, word, *_ in answered(line, folder) if kind == "plain"]


@pytest.mark.parametrize(
    ("words", "among"),
    [
        ("rer", "rerender"),
        ("build linux_64_cuda11.2_py", "linux_64_cuda11.2_py3.12"),
        ("build linux_64_", "linux_64_cpu"),
        ("status linux_64_cuda_compiler_version11.2", "linux_64_cuda_compiler_version11.2"),
        ("why cuda", "cuda_compiler_version"),
        ("why . cuda", "cuda_compiler_version"),
        ("why python linux_64_cuda11.", "linux_64_cuda11.2"),
        ("cuda gpu --model RTX-30", "RTX-3080"),
        ("cuda gpu --model GeForce-RTX-30", "GeForce-RTX-3080"),
        ("cuda gpu --cuda 12.", "12.9"),
        ("cuda show 11.", "11.2"),
        ("cuda resolve cu", "cudnn="),
        ("cuda resolve gpu=A1", "gpu=A100"),
        ("cuda search cud", "cudnn"),
        ("rerender --platform linux-", "linux-aarch64"),
        ("outputs --feed", "--feedstock"),
        ("rerender --platform linux-a", "linux-aarch64"),
        ("cuda resolve gpu = A1", "A100"),  # as bash breaks gpu=A1
        ("'build' \"linux_64_cpu\" linux_64_", "linux_64_cpu"),
    ],
)
def test_words_are_offered(words: str, among: str) -> None:
    found = offered(words)
    start = words.split(" ")[-1]
    assert any(word == among or word.startswith(among) for word in found), found[:20]
    assert all(word.startswith(start) for word in found)


@pytest.mark.parametrize(
    "folder", ["../gpukernel/", "--feedstock ../gpukernel", "--feedstock=../gpukernel", "../gpukernel cpu"]
)
def test_configurations_are_those_of_the_feedstock_on_the_line(folder: str) -> None:
    assert offered(f"build {folder} linux_64_cuda11.") == ["linux_64_cuda11.8"]


def test_a_folder_is_left_to_the_shell_and_an_option_comes_with_its_meaning() -> None:
    assert answered("build ../gpuk") == [["dir", "../gpuk"]]
    assert answered("outputs --js") == [["plain", "--json", "Print the result as JSON."]]
    assert answered("status --html ../") == [["file", "../"]]


def test_every_offered_gpu_is_known() -> None:
    names = offered("cuda gpu --model RTX-40")
    shown = command.run(command.tool("cuda", "gpu", "--model", names[0], "--cuda", "12.9"), GPUPROBE)
    assert shown.returncode == 0, shown.stderr


def test_a_feedstock_that_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    assert offered("build linux", tmp_path) == []
    (tmp_path / "recipe").mkdir()
    (tmp_path / ".ci_support").mkdir()
    (tmp_path / ".ci_support" / "linux_64_.yaml").write_text("{{{")
    assert offered("build linux", tmp_path) == []
    assert offered("why c", tmp_path) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str) -> None:
    shown = command.run(command.tool("--completion", shell), ROOT)
    assert shown.returncode == 0, shown.stderr
    assert completion.VARIABLE in shown.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose `feedstock-tools` completes words, and otherwise appends its arguments to the file `ran`."""
    program = tmp_path / "feedstock-tools"
    real = shlex.join(command.tool())
    program.write_text(f'#!/bin/sh\n[ -z "${completion.VARIABLE}" ] || exec {real}\necho "$*" >>{tmp_path}/ran\n')
    program.chmod(0o755)
    return tmp_path


def in_home(home: Path) -> dict[str, str]:
    paths = {"HOME": str(home), "ZDOTDIR": str(home), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)}
    return command.environment(**paths, PATH=f"{home}:{os.environ['PATH']}", TERM="xterm", INPUTRC="/dev/null")


#: What somebody types in the folder of gpuprobe, with Tab for the key, and the arguments of the program then.
TYPED = {
    "rerend\t": "rerender",
    "build ../gpukernel/ linux_64_cuda11.\t": "build ../gpukernel/ linux_64_cuda11.8",
    "cuda resolve gpu=RTX-3090-\t": "cuda resolve gpu=RTX-3090-Ti",
    "rerender --platform linux-aa\t": "rerender --platform linux-aarch64",
}


@pytest.mark.parametrize(
    ("shell", "file", "before"),
    [
        pytest.param(["bash", "-i"], ".bashrc", "", marks=needs("system", shutil.which("bash"), "bash")),
        pytest.param(
            *(["zsh", "-i"], ".zshrc", "autoload -Uz compinit; compinit -u"),
            marks=needs("system", shutil.which("zsh"), "zsh"),
        ),
    ],
    ids=["bash", "zsh"],
)
def test_tab_completes_a_word_in_a_terminal(home: Path, shell: list[str], file: str, before: str) -> None:
    script = command.run(command.tool("--completion", shell[0]), ROOT).stdout
    (home / file).write_text(f"{before}\n{script}\n")
    keys = "".join(f"feedstock-tools {line}\r" for line in TYPED) + "exit\r"
    in_terminal = [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", *shell]
    shown = subprocess.run(
        in_terminal, cwd=GPUPROBE, env=in_home(home), input=keys.encode(), capture_output=True, timeout=120
    )
    assert (home / "ran").read_text().splitlines() == list(TYPED.values()), shown.stdout.decode()


@needs("system", shutil.which("fish"), "fish")
def test_fish_completes_a_word(home: Path) -> None:
    script = command.run(command.tool("--completion", "fish"), ROOT).stdout
    (home / "fish" / "completions").mkdir(parents=True)
    (home / "fish" / "completions" / "feedstock-tools.fish").write_text(script)
    expected = {
        "build ../gpukernel/ linux_64_cuda11.": "linux_64_cuda11.8",
        "cuda resolve gpu=RTX-3090-": "gpu=RTX-3090-Ti",
        "rerender --platform linux-aa": "linux-aarch64",
        "outputs --js": "--json\tPrint the result as JSON.",
    }
    asked = "; ".join(f"complete -C 'feedstock-tools {line}'" for line in expected)
    done = subprocess.run(
        ["fish", "-c", asked], cwd=GPUPROBE, env=in_home(home), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == list(expected.values())
