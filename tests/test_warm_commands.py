"""Commands in forks of a warm process behave as in a new Python."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import command, warm
from tests.support.feedstocks import CPU, TinyFeedstock
from tests.support.needs import needs

pytestmark = needs("system", hasattr(os, "fork"), "fork")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["build", "--list", "--json"],
        ["outputs", "nothing-here"],
        ["generate", "--nonsense"],
    ],
    ids=" ".join,
)
def test_status_and_output_are_those_of_a_new_python(gpu_feedstock: TinyFeedstock, arguments: list[str]) -> None:
    new = subprocess.run(
        command.tool(*arguments),
        cwd=gpu_feedstock.folder,
        env=command.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    fork = warm.run(arguments, gpu_feedstock.folder, command.environment())
    assert (fork.status, fork.stdout, fork.stderr) == (new.returncode, new.stdout, new.stderr)


def test_folder_environment_and_stdin_are_the_given_ones(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    variables = {**command.environment(), "FEEDSTOCK_TOOLS_BOUNDS": "many"}
    assert "FEEDSTOCK_TOOLS_BOUNDS is 'many'" in warm.run(["status"], gpu_feedstock.folder, variables).stderr
    assert warm.run(["status"], gpu_feedstock.folder, command.environment()).status == 0
    assert warm.run(["status"], tmp_path, command.environment()).status == 2


def test_several_forks_run_at_once(gpu_feedstock: TinyFeedstock) -> None:
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda _: warm.run(["status"], gpu_feedstock.folder, command.environment()), range(5)))
    assert {(each.status, each.stdout) for each in ended} == {(0, ended[0].stdout)}
    assert all(each.seconds > 0 and each.memory > 0 for each in ended)


def test_a_build_with_workers_in_forks_is_that_of_new_processes(
    feedstock: TinyFeedstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feedstock.keep_outputs(2)
    shown = []
    feedstock.edit("recipe/build-library.sh", "mkdir", "env | sort; ulimit -a; ps -o sid= $$ | wc -l; mkdir")
    for folder in ("forks", "new"):
        run = feedstock.build(f"{CPU}_py3.11", "--output-dir", str(tmp_path / folder))
        assert run.returncode == 0, run.stdout
        packages = {path.name for path in (tmp_path / folder).glob("*/*.conda")}
        shown.append((packages, [line for line in run.stdout.splitlines() if re.match(r"\w+=|.*\(.*-\w\) ", line)]))
        monkeypatch.setenv(warm.NEW_WORKERS, "yes")
    assert len(shown[0][0]) == 2
    assert len(shown[0][1]) > 10
    assert [line.replace("/new/", "/forks/") for line in shown[1][1]] == shown[0][1]
    assert shown[1][0] == shown[0][0]


def test_settings_of_the_interpreter_need_a_new_python() -> None:
    assert warm.serves(command.environment(FEEDSTOCK_TOOLS_BOUNDS="off"))
    assert not warm.serves(command.environment(PYTHONHASHSEED="1"))
    assert not warm.serves(command.environment(LC_ALL="C"))
    assert not warm.serves({})


def test_a_prepared_worker_is_a_python_that_has_imported_the_tests(tmp_path: Path) -> None:
    wrong = tmp_path / "test_wrong.py"
    wrong.write_text("1 / 0\n")
    server = warm.Server("tests.support.preparing", [__file__, str(wrong)])
    named = f"[{__name__!r} in sys.modules, any('test_wrong' in name for name in sys.modules)]"
    statement = f"import os, sys; print({named}, os.getcwd(), os.environ['A'], flush=True); os._exit(3)"
    worker = subprocess.run(
        [*shlex.split(warm.python_of_workers(server.place)), "-u", "-c", "what an unprepared one runs"],
        cwd=tmp_path,
        env={"A": "b"},
        input=f"{statement!r}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    server.end()
    assert (worker.stdout, worker.returncode) == (f"[True, False] {tmp_path} b\n", 3), worker.stderr
