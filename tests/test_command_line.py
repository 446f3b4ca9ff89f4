"""The command line as a whole: help, exit codes, errors without tracebacks."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from feedstock_tools import __version__
from feedstock_tools.cli import program
from feedstock_tools.errors import FeedstockError, InputError, Mistake, WorkError
from tests.support.command import run, tool
from tests.support.feedstocks import copy_of_example
from tests.support.needs import needs


def feedstock_tools(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(tool(*arguments))


def test_help_names_every_command() -> None:
    run = feedstock_tools("--help")
    assert run.returncode == 0
    for name in program.COMMANDS:
        assert f"  {name} " in run.stdout


@pytest.mark.parametrize("name", program.COMMANDS)
def test_every_command_of_the_table_has_help(name: str) -> None:
    run = feedstock_tools(name, "--help")
    assert run.returncode == 0, run.stderr
    assert f"feedstock-tools {name}" in run.stdout.replace("python -m feedstock_tools", "feedstock-tools")


def test_started_as_a_module_it_takes_none_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("yaml", "click", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is not ours')\n")
    (tmp_path / "feedstock.yaml").write_text("name: [\n")
    ended = run(tool("generate"), tmp_path)
    assert ended.returncode == 2
    assert "feedstock.yaml:" in ended.stderr


def test_a_folder_with_the_program_s_name_is_not_run_where_python_does_not_look(tmp_path: Path) -> None:
    """`python -m` itself looks in the current folder first; the command does not, nor does `-I` in the Action."""
    (tmp_path / "feedstock_tools").mkdir()
    for name in ("__init__", "__main__"):
        (tmp_path / f"feedstock_tools/{name}.py").write_text("raise SystemExit('this is not ours')\n")
    (tmp_path / "feedstock.yaml").write_text("name: [\n")
    ended = run([sys.executable, "-P", "-m", "feedstock_tools", "generate"], tmp_path)
    assert ended.returncode == 2
    assert "feedstock.yaml:" in ended.stderr


LIST_HEAVY_MODULES = """
import sys
from feedstock_tools.cli import program
sys.argv[1:] = ["--help"]
try:
    program.main()
finally:
    print([name for name in ("rich", "yaml", "pydantic", "rattler", "jinja2") if name in sys.modules])
"""


def test_help_imports_nothing_heavy() -> None:
    run = subprocess.run([sys.executable, "-c", LIST_HEAVY_MODULES], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_version() -> None:
    assert feedstock_tools("--version").stdout.split()[-1] == __version__


def test_an_unknown_command_is_bad_input() -> None:
    run = feedstock_tools("rerendr")
    assert run.returncode == 2
    assert "No such command 'rerendr'. Did you mean 'rerender'?" in run.stderr


def test_an_argument_that_is_not_utf8_is_bad_input() -> None:
    run = subprocess.run([sys.executable, "-m", "feedstock_tools", "build", b"h\xff"], capture_output=True, text=True)
    assert (run.returncode, run.stderr.splitlines()[0]) == (2, r"error: the argument 'h\udcff' is not UTF-8")


def test_a_subcommand_alone_is_answered_with_the_whole_command() -> None:
    run = feedstock_tools("gpu")
    assert run.returncode == 2
    assert "No such command 'gpu'. Did you mean 'feedstock-tools cuda gpu'?" in run.stderr


def test_closed_streams_do_no_harm() -> None:
    shell = f"{shlex.quote(sys.executable)} -m feedstock_tools cuda show 12.9 <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", shell], check=False).returncode == 0


@needs("system", Path("/dev/full").exists(), "/dev/full, which Linux has")
def test_output_that_cannot_be_written_is_one_error() -> None:
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(tool("generate", "--schema"), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines() == ["error: feedstock-tools: No space left on device"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("no such key", path=Path("feedstock.yaml"), line=3, column=5, hint="Write 'name'."), 2),
        (WorkError("the compiler failed"), 1),
        (click.exceptions.Abort(), 130),
        (OSError(28, "No space left on device", "packages"), 1),
    ],
)
def test_what_goes_wrong_ends_with_its_own_status_and_no_traceback(
    error: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command
    def failing() -> None:
        raise error

    with pytest.raises(SystemExit) as end, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["failing"])
        program.run(failing, "failing")
    assert end.value.code == status
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_names_place_and_remedy_of_each_mistake() -> None:
    error = FeedstockError.of(
        [Mistake("unknown key 'nam'", Path("feedstock.yaml"), 3, 5, "Did you mean 'name'?"), Mistake("empty")]
    )
    assert str(error) == "feedstock.yaml:3:5: unknown key 'nam'\n  Did you mean 'name'?\nempty"


def test_a_remedy_that_mistakes_share_is_printed_once() -> None:
    mistakes = [Mistake(f"{name} is not done", hint="Build it.") for name in ("a", "b")]
    error = FeedstockError.of([*mistakes, Mistake("c is late", hint="Wait."), Mistake("d is late")])
    assert str(error) == "a is not done\nb is not done\n  Build it.\nc is late\n  Wait.\nd is late"


WORK_ON_A_FEEDSTOCK = [
    ("generate",),
    ("rerender",),
    ("outputs",),
    ("why", "python"),
    ("cuda", "check"),
    ("rehearse",),
    ("plan",),
    ("test", "linux_64_cpu"),
    ("status",),
    ("dossier",),
    ("ci",),
    ("collect", "."),
    ("publish", "channel"),
]


@pytest.mark.parametrize("arguments", WORK_ON_A_FEEDSTOCK, ids=" ".join)
def test_without_a_feedstock_nothing_is_done(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(InputError) as raised:
        program._group.main(list(arguments), standalone_mode=False)
    assert raised.value.mistakes[0].hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("rerender",), ("why", "python")], ids=" ".join)
def test_without_a_feedstock_the_first_message_says_so(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tool(*arguments), tmp_path)
    assert done.stderr.startswith(f"error: {tmp_path}: there is no feedstock in this folder\n  A feedstock has recipe/")
    assert done.stderr.endswith("Go to one, or name it: --feedstock DIR.\n")


@pytest.mark.parametrize(
    "arguments", [("rerender", "--pinning", "none"), ("why", "python", "--pinning", "none")], ids=" ".join
)
def test_a_recipe_in_another_folder_is_rerendered(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "conda-forge.yml").write_text("recipe_dir: sources\n")
    (tmp_path / "sources").mkdir()
    recipe = "package:\n  name: demo\n  version: 1\nrequirements:\n  host:\n    - python\n"
    (tmp_path / "sources" / "meta.yaml").write_text(recipe)
    (tmp_path / "sources" / "conda_build_config.yaml").write_text("python:\n  - 3.12.* *_cpython\n")
    done = run(tool(*arguments), tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_recipe_that_was_not_generated_yet_is_an_error_that_names_the_command(tmp_path: Path) -> None:
    (tmp_path / "feedstock.yaml").write_text("name: demo\n")
    run = feedstock_tools("rerender", str(tmp_path))
    assert run.returncode == 2
    assert "`feedstock-tools generate` writes it from feedstock.yaml" in run.stderr


def test_the_changes_of_a_rerender_are_available_as_json(tmp_path: Path) -> None:
    demo = copy_of_example("gpukernel", tmp_path)
    (file,) = (demo / ".ci_support").glob("*12.9*.yaml")
    file.unlink()
    checked = feedstock_tools("rerender", str(demo), "--check", "--json")
    assert checked.returncode == 1
    assert json.loads(checked.stdout)["changes"] == [{"file": f".ci_support/{file.name}", "change": "add"}]
    assert not file.exists()
    generated = feedstock_tools("generate", str(demo), "--json")
    assert {each["state"] for each in json.loads(generated.stdout)} == {"same"}


def test_options_that_would_do_nothing_are_refused() -> None:
    run = feedstock_tools("build", "--output-id", "libgpuprobe")
    assert run.returncode == 2
    assert "--output-id needs --debug" in run.stderr
