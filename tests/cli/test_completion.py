"""What shells offer for the word at the cursor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import command
from tests.support.paths import ROOT

GPUPROBE = ROOT / "examples" / "gpuprobe"


def offered(words: str, folder: Path = GPUPROBE) -> list[str]:
    """The words that bash would offer; the last word is the one at the cursor."""
    count = len(words.split(" "))
    asked = {"COMP_WORDS": f"feedstock-tools {words}", "COMP_CWORD": str(count)}
    run = command.run(command.tool(), folder, {**os.environ, **asked, "_FEEDSTOCK_TOOLS_COMPLETE": "bash_complete"})
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    return [line.partition(",")[2] for line in run.stdout.splitlines() if line.startswith("plain,")]


@pytest.mark.parametrize(
    ("words", "among"),
    [
        ("rer", "rerender"),
        ("build linux_64_cuda11.2_py", "linux_64_cuda11.2_py3.12"),
        ("build linux_64_", "linux_64_cpu"),
        ("status linux_64_cuda_compiler_version11.2", "linux_64_cuda_compiler_version11.2"),
        ("why cuda", "cuda_compiler_version"),
        ("gpu --model RTX-30", "RTX-3080"),
        ("gpu --model GeForce-RTX-30", "GeForce-RTX-3080"),
        ("gpu --cuda 12.", "12.9"),
        ("cuda show 11.", "11.2"),
        ("cuda resolve cu", "cudnn="),
        ("cuda resolve gpu=A1", "gpu=A100"),
        ("search cud", "cudnn"),
        ("rerender --platform linux-", "linux-aarch64"),
        ("outputs --feed", "--feedstock"),
    ],
)
def test_words_are_offered(words: str, among: str) -> None:
    found = offered(words)
    start = words.split(" ")[-1]
    assert any(word == among or word.startswith(among) for word in found), found[:20]
    assert all(word.startswith(start) for word in found)


def test_every_offered_gpu_is_known() -> None:
    names = offered("gpu --model RTX-40")
    shown = command.run(command.tool("gpu", "--model", names[0], "--cuda", "12.9"), GPUPROBE)
    assert shown.returncode == 0, shown.stderr


def test_a_feedstock_that_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    assert offered("build linux", tmp_path) == []
    (tmp_path / "recipe").mkdir()
    (tmp_path / ".ci_support").mkdir()
    (tmp_path / ".ci_support" / "linux_64_.yaml").write_text("{{{")
    assert offered("build linux", tmp_path) == []
    assert offered("why c", tmp_path) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_has_a_script(shell: str) -> None:
    shown = command.run(command.tool("completion", shell), ROOT)
    assert shown.returncode == 0, shown.stderr
    assert "_FEEDSTOCK_TOOLS_COMPLETE" in shown.stdout


def test_bash_completes_a_configuration(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    program = tmp_path / "feedstock-tools"
    program.write_text(f'#!{bash}\nexec {shlex.join(command.tool())} "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(feedstock-tools completion bash)"\n'
        "COMP_WORDS=(feedstock-tools build linux_64_cuda11.2_py3.1) COMP_CWORD=2\n"
        "_feedstock_tools_completion feedstock-tools\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([bash, "-c", script], cwd=GPUPROBE, env=environ, capture_output=True, text=True, check=True)
    assert "linux_64_cuda11.2_py3.12" in done.stdout.splitlines(), done.stderr
