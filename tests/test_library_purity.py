"""The library works on values alone: no terminal, no arguments of the process, no environment."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import feedstock_tools
from tests.support.library import make_library_folder

PACKAGE = Path(feedstock_tools.__file__).parent

#: What may talk to the process: the command line, what it shows while a run goes on, and programs that are started as
#: processes of their own.
OUTSIDE = (
    "__main__.py",
    "bootstrap.py",
    "cli/",
    "report/run/",
    "builds/engines/embedded/debug_worker.py",
    "builds/engines/embedded/emulation.py",
    "builds/engines/embedded/worker.py",
    "builds/engines/process/program_worker.py",
    "builds/engines/process/supervision.py",
    "builds/runs/debug.py",
    "builds/stand_in/nvcc_from_nvrtc.py",
    "builds/stand_in/probe.py",
    "builds/testing/worker.py",
    "channel/upload_worker.py",
)
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


def uses_of_the_process(tree: ast.AST) -> Iterator[str]:
    """Calls of `print` and `input`, and names of `os` and `sys` that belong to the process, with their line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "input"):
            yield f"{node.lineno}: {node.func.id}()"
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in _OF_THE_PROCESS:
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
        if (uses := list(uses_of_the_process(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert len(inside) > 200
    assert found == {}
    assert [name for name in OUTSIDE if not any(each.startswith(name) for each in modules)] == []


def test_the_check_sees_what_it_is_meant_to_see() -> None:
    text = "import os\nfrom sys import argv\nprint(1)\nos.environ['A']\nos.path.join('a')\nconsole.print(1)\n"
    assert list(uses_of_the_process(ast.parse(text))) == ["2: sys.argv", "3: print()", "4: os.environ"]


#: Every arrow that needs no machine, on the feedstock of the library's examples; the results go to a file.
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
    "resolve": api.resolve(["cuda=11.2", "gcc=11"]).as_json() + api.resolve(["cuda=12.9"]).as_json(),
    "check": repr(api.check(feedstock, configurations)),
    "rehearse": api.rehearse(feedstock, configurations[:1], ["./empty-channel"]).to_json(),
}
Path(RESULTS).write_text(json.dumps(results))
"""


def results_of(
    folder: Path, name: str, environment: dict[str, str], *arguments: str, closed: bool
) -> dict[str, object]:
    """What the arrows give in a process of its own, without standard streams where `closed` says so."""
    script = folder / f"{name}.py"
    script.write_text(f"RESULTS = {str(folder / name)!r}\n{ARROWS}")
    command = [sys.executable, str(script), *arguments]
    if closed:  # the shell closes what subprocess can only redirect
        command = ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    found = json.loads((folder / name).read_text())
    assert isinstance(found, dict)
    return found


def test_the_arrows_need_no_streams_arguments_or_environment(tmp_path: Path) -> None:
    make_library_folder(tmp_path)
    noisy = {"CUDA_VISIBLE_DEVICES": "0", "CF_CUDA_ENABLED": "False", "python": "3.6", "CONDA_OVERRIDE_CUDA": "9.0"}

    usual = results_of(tmp_path, "usual", {**os.environ, **noisy}, "--json", "build", closed=False)
    bare = results_of(tmp_path, "bare", {}, closed=os.name == "posix")

    assert bare == usual
    assert all(bare.values())
