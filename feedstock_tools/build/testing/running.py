"""Running a package's tests and benchmark: processes of their own, a log, and what came of them."""

from __future__ import annotations

import json
import math
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from feedstock_tools.build.engines.process import end_group
from feedstock_tools.build.environment import PASSED_ON
from feedstock_tools.build.testing.gpu import Gpus
from feedstock_tools.build.testing.subject import Subject
from feedstock_tools.channel.archive import PACKAGE_SUFFIXES
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.errors import WorkError

__all__ = ["run_benchmark", "run_tests"]

#: What a test on a GPU needs of the machine's environment besides what a build gets.
_FOR_GPUS = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES")
#: Runs the worker of the code that runs here, with the packages that this process has, from wherever they come.
_START = (
    "import json, sys; from pathlib import Path; sys.path = json.loads(sys.argv[1]);"
    "from feedstock_tools.build.testing.worker import main; sys.exit(main(Path(sys.argv[2])))"
)
_FIGURE = 'A figure is a line of JSON: {"name": "…", "value": 1.5, "unit": "s"}'
_OURS = (str(Path(__file__).resolve().parents[3]),)
Log = Callable[[str], None]


def run_tests(subject: Subject, gpus: Gpus | None, machine: Mapping[str, str], log: Log) -> float:
    """Run the tests that a package brings, in fresh environments; how long they took, in seconds.

    Args:
        gpus: what the environments are solved for; None: for a machine whose driver runs the package's CUDA version, so
            that a GPU build is tested on a machine without a GPU too.

    Raises:
        WorkError: a test fails, or its environment cannot be made; the log says more.
    """
    with tempfile.TemporaryDirectory(prefix="feedstock-tools-test-") as name:
        folder = Path(name)
        request = folder / "request.json"
        request.write_text(json.dumps({"package": str(subject.path), "channels": list(subject.channels)}))
        command = [sys.executable, "-P", "-c", _START, json.dumps([*_OURS, *sys.path]), str(request)]
        began = time.monotonic()
        status = _run(command, _environment(subject, gpus, machine, folder), folder, log)
        if status:
            raise WorkError("its tests failed")
        return time.monotonic() - began


def run_benchmark(
    subject: Subject, gpus: Gpus | None, machine: Mapping[str, str], log: Log
) -> dict[str, dict[str, Any]]:
    """Run the benchmark of a package in a fresh environment; each figure by name, as `{"value": 1.5, "unit": "s"}`.

    Raises:
        WorkError: its environment cannot be made, a command fails, or no figure comes of it.
    """
    figures: dict[str, dict[str, Any]] = {}

    def read(line: str) -> None:
        log(line)
        figures.update(_figure(line))

    with tempfile.TemporaryDirectory(prefix="feedstock-tools-test-") as name:
        folder = Path(name)
        prefix = _installed(subject, gpus, folder)
        environment = _environment(subject, gpus, machine, folder)
        for command in subject.benchmark:
            log(f"+ {command}")
            script = f"{_activation(prefix)}\n{command}\n"
            if _run(["bash", "-e", "-c", script], environment, folder, read):
                raise WorkError(f"the benchmark's '{command}' failed")
    if not figures:
        raise WorkError(
            "the benchmark printed no figure", hint='A figure is a line {"name": "…", "value": 1, "unit": "s"}'
        )
    return figures


def _figure(line: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The figure that a line is, if it is one."""
    try:
        content = json.loads(line) if line.startswith("{") else None
    except ValueError:
        return
    if not isinstance(content, dict):
        return
    name, value, unit = (content.get(key) for key in ("name", "value", "unit"))
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if is_number and isinstance(name, str) and isinstance(unit, str):
        yield name, {"value": value, "unit": unit}


def _environment(subject: Subject, gpus: Gpus | None, machine: Mapping[str, str], folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in machine.items() if name in PASSED_ON or name in _FOR_GPUS}
    kept |= {"TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    kept["CONDA_OVERRIDE_CUDA"] = gpus.cuda if gpus else subject.cuda or ""
    kept["RATTLER_CACHE_DIR"] = str(_cache(subject, folder))
    return kept


def _cache(subject: Subject, folder: Path) -> Path:
    """Where packages are unpacked. A cache goes by names, and other builds of a package may have the same one: so what
    is tested, and what was built beside it, must not be in there from before."""
    if subject.cache is None:
        return folder / "cache"
    beside = (unquote(urlsplit(url).path) for url in subject.channels if url.startswith("file:"))
    names = {subject.path.name, *(path.name for place in beside for path in Path(place).glob("*/*"))}
    stems = {name.removesuffix(suffix) for name in names for suffix in PACKAGE_SUFFIXES if name.endswith(suffix)}
    for path in (subject.cache / "pkgs").glob("*"):
        if any(path.name.startswith(stem) for stem in stems):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    return subject.cache


def _installed(subject: Subject, gpus: Gpus | None, folder: Path) -> Path:
    """An environment with the package and what its benchmark needs."""
    from feedstock_tools.channel.installing import install
    from feedstock_tools.channel.solving import solve, virtual_packages

    add_packages(folder / "channel", [subject.path])
    metadata = subject.metadata
    specs = [f"{metadata.name} =={metadata.version} {metadata.build}", *subject.benchmark_needs]
    glibc = platform.libc_ver()[1] or "2.17"
    virtual = virtual_packages(subject.platform, cuda=gpus.cuda if gpus else subject.cuda, glibc=glibc)
    channels = ((folder / "channel").as_uri(), *subject.channels)
    prefix = folder / "environment"
    cache = _cache(subject, folder) / "pkgs"
    install(solve(specs, channels, subject.platform, virtual=virtual), prefix, subject.platform, cache=cache)
    return prefix


def _activation(prefix: Path) -> str:
    """What makes an environment the current one, for bash."""
    place = shlex.quote(str(prefix))
    return (
        f'export CONDA_PREFIX={place} PATH={place}/bin:"$PATH"\n'
        f'for script in {place}/etc/conda/activate.d/*.sh; do [ -f "$script" ] && . "$script" || true; done'
    )


def _run(command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Log) -> int:
    """Run a command and give each line of its output to `log`; its exit status."""
    with _process(command, environment, folder) as process:
        assert process.stdout is not None  # noqa: S101  (asked for below)
        for line in process.stdout:
            log(line.rstrip("\n"))
        return process.wait()


@contextmanager
def _process(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process in a session of its own, which ends with the context, and all of it."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        end_group(process.pid)
        process.wait()
