"""The library works on values alone: no terminal, no arguments of the process, no environment."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import feedstock_tools
from tests.support import command
from tests.support.feedstocks import TinyFeedstock
from tests.support.library import make_library_folder

PACKAGE = Path(feedstock_tools.__file__).parent

#: Modules that may use the process: the command line and its display of a run (debugging passes stderr on to the
#: engine), the fork of a bounded command, and programs that run as separate processes.
OUTSIDE = (
    "__main__.py",
    "bootstrap.py",
    "bounds/supervision.py",
    "cli/",
    "report/observers.py",
    "builds/engines/embedded/debug_worker.py",
    "builds/engines/embedded/emulation.py",
    "builds/engines/embedded/patchelf.py",
    "builds/engines/embedded/script_output.py",
    "builds/engines/embedded/worker.py",
    "builds/engines/process/program_worker.py",
    "builds/engines/process/supervision.py",
    "builds/fleet/host/",
    "builds/fleet/carrying/courier.py",
    "builds/fleet/hub.py",
    "builds/fleet/worker.py",
    "builds/runs/debug.py",
    "builds/stand_in/nvcc_from_nvrtc.py",
    "builds/stand_in/probe.py",
    "builds/testing/worker.py",
    "channel/upload_worker.py",
)
#: What needs the environment all the same: a fleet of this machine hands it to its processes, the engine's door hides
#: it from recipes, git gets it without git's own variables, temporary files go where the system wants them, and
#: RATTLER_AUTH_FILE and NETRC say where the user's credentials for channels are; a hub and a bot's command get the
#: caller's, shellcheck is on PATH, and newer facts are in the user's cache.
_MAY = {
    "bot.py": "os.environ",
    "builds/fleet/cluster/hub_process.py": "os.environ",
    "check/linting/feedstock_files.py": "os.environ",
    "facts/content.py": "os.environ",
    "builds/fleet/local.py": "os.environ",
    "builds/ledger/seal.py": "os.environ",
    "channel/http.py": "os.environ",
    "feedstock/git.py": "os.environ",
    "files/temporary.py": "os.environ",
    "recipe/v1_engine.py": "os.environ",
}
_OF_THE_PROCESS = {
    "os.environ",
    "os.environb",
    "os.getenv",
    "os.putenv",
    "sys.argv",
    "sys.stdin",
    "sys.stdout",
    "sys.stderr",
}


#: What each use of the process has in its text.
_SIGNS = re.compile(rf"\b(?:print|input)\(|\b(?:{'|'.join(name.partition('.')[2] for name in _OF_THE_PROCESS)})\b")


def uses_of_the_process(text: str) -> Iterator[str]:
    """Calls of `print` and `input`, and names of `os` and `sys` that belong to the process, with their line."""
    for node in ast.walk(ast.parse(text)) if _SIGNS.search(text) else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "input"):
            yield f"{node.lineno}: {node.func.id}()"
        elif isinstance(node, ast.Attribute) and _SIGNS.match(node.attr) and ast.unparse(node) in _OF_THE_PROCESS:
            yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom) and node.module in ("os", "sys"):
            yield from (
                f"{node.lineno}: {node.module}.{alias.name}"
                for alias in node.names
                if f"{node.module}.{alias.name}" in _OF_THE_PROCESS
            )


def test_modules_of_the_library_neither_print_nor_read_arguments_or_the_environment() -> None:
    modules = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    inside = {name: path for name, path in modules.items() if not name.startswith(OUTSIDE)}
    found = {
        name: uses
        for name, path in inside.items()
        if (
            uses := [
                use
                for use in uses_of_the_process(path.read_text(encoding="utf-8"))
                if not use.endswith(_MAY.get(name, "nothing"))
            ]
        )
    }
    assert len(inside) > 200
    assert found == {}
    assert [name for name in OUTSIDE if not any(each.startswith(name) for each in modules)] == []


def test_the_check_sees_what_it_is_meant_to_see() -> None:
    text = "import os\nfrom sys import argv\nprint(1)\nos.environ['A']\nos.path.join('a')\nconsole.print(1)\n"
    assert list(uses_of_the_process(text)) == ["2: sys.argv", "3: print()", "4: os.environ"]


#: Every arrow, on the feedstocks of the library's examples; the results go to a file.
ARROWS = """
import json
import sys
from pathlib import Path
from feedstock_tools import api

feedstock, pinning = Path("solver-feedstock"), Path("pinning")
configurations = api.read_configurations(feedstock)
wanted = api.outputs(feedstock, configurations)
results = {
    "generate": {str(path): text for path, text in api.generate(Path("hello")).texts.items()},
    "rerender": {name: text.decode() for name, text in api.rerender(feedstock, pinning=pinning).files.items()},
    "outputs": [file.path for file in wanted],
    "lacking": [file.path for file in api.lacking(wanted, ["./empty-channel"])],
    "explain": repr(api.explain(feedstock, "python", pinning=pinning)),
    "resolve": api.answer_json(api.resolve(["cuda=11.2", "gcc=11"])) + api.answer_text(api.resolve(["cuda=12.9"])),
    "check": repr(api.check(feedstock, configurations)),
    "rehearse": api.rehearse(feedstock, configurations[:1], ["./empty-channel"]).to_json(),
}
tiny, channel = Path("tiny-feedstock"), str(Path("tiny-channel").resolve())
workspace = api.open_workspace(tiny, Path(RESULTS + "-artifacts").resolve(), [channel], MACHINE)
chosen = workspace.chosen([f"{api.Platform.here().name}_cuda11.2_py3.11"])
agenda = api.plan(workspace, chosen, api.Capacity.of_machine())
results["plan"] = [
    (row.name, row.wanted.identities, [output.file_name for output in row.wanted.makes]) for row in agenda.todo
]
built = api.build(workspace, agenda)
results["build"] = [outcome.record and (outcome.record.result, outcome.record.reason) for outcome in built.outcomes]
matrix = api.read_matrix(workspace, chosen)
results["read_matrix"] = [each.state for each in matrix.configurations]
tests = api.run_tests(api.built_packages(workspace, chosen)[:1], api.TestOptions(), MACHINE)
results["run_tests"] = [(test.result, test.reason) for test in tests]
target = api.parse_target(RESULTS + "-published", None, MACHINE, Path.cwd())
results["publish"] = [(package.file, package.result) for package in api.publish(matrix, target)]
other = api.open_workspace(tiny, Path(RESULTS + "-collected").resolve(), [channel], MACHINE)
results["collect"] = repr(api.collect([workspace.artifacts.root], other.artifacts, other.feedstock))
Path(RESULTS).write_text(json.dumps(results))
"""


def script(folder: Path, name: str) -> str:
    """The statements that write the results of the arrows to a file of this name in a folder."""
    machine = {key: os.environ[key] for key in ("PATH", "HOME", "XDG_CACHE_HOME", "SYSTEMROOT") if key in os.environ}
    return f"RESULTS, MACHINE = {str(folder / name)!r}, {machine!r}\n{ARROWS}"


def usual_results(folder: Path, variables: dict[str, str], *arguments: str) -> dict[str, object]:
    """The results with an environment and arguments that could mislead."""
    program = f"{script(folder, 'usual')}raise SystemExit"
    run = command.run(command.patched(program, *arguments), folder, variables)
    assert run.returncode == 0, run.stderr
    return dict(json.loads((folder / "usual").read_text()))


def bare_results(folder: Path) -> dict[str, object]:
    """The results in a new Python with no environment, no arguments and, where a shell can close them, no streams."""
    (folder / "bare.py").write_text(script(folder, "bare"))
    least = {key: os.environ[key] for key in ("SYSTEMROOT",) if key in os.environ}  # Windows starts nothing without it
    words = [sys.executable, str(folder / "bare.py")]
    if os.name == "posix":  # the shell closes what subprocess can only redirect
        words = ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words]
    subprocess.run(words, cwd=folder, env=least, check=True, capture_output=True)
    return dict(json.loads((folder / "bare").read_text()))


def test_the_arrows_need_no_streams_arguments_or_environment(tmp_path: Path, feedstock: TinyFeedstock) -> None:
    make_library_folder(tmp_path)
    (tmp_path / "tiny-channel").symlink_to(feedstock.channel)
    noisy = {"CUDA_VISIBLE_DEVICES": "0", "CF_CUDA_ENABLED": "False", "python": "3.6", "CONDA_OVERRIDE_CUDA": "9.0"}

    usual, bare = usual_results(tmp_path, command.environment(**noisy), "--json", "build"), bare_results(tmp_path)

    assert bare == usual
    assert all(bare.values())
    assert (bare["build"], bare["read_matrix"]) == ([["done", ""]] * 4, ["done"])
