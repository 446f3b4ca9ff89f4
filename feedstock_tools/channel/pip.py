"""The pip of this Python: the package indexes that it is configured with, and wheels that it fetches from them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from feedstock_tools.errors import WorkError
from feedstock_tools.files.changes import require_room
from feedstock_tools.files.locks import named_wait
from feedstock_tools.files.temporary import temporary_folder

_ASK_SECONDS = 60
#: Where an index has no metadata beside its wheels, pip downloads each of them to choose.
_CHOOSE_SECONDS = 1800
_FETCH_SECONDS = 1800
_PAUSE = 0.2
#: Run with pip on the path: the indexes that configuration files and the environment give `pip download`.
_ASK = """
import json, sys
sys.path[:0] = sys.argv[1:]
from pip._internal.commands import create_command
options, _ = create_command("download").parse_args(["-"])
print(json.dumps([] if options.no_index else [options.index_url, *options.extra_index_urls]))
"""
#: Run with pip on the path: the wheels of a report of pip's, each with the requirements that its environment has.
#: pip before 23.1 reports `hash` instead of `hashes`.
_CHOSEN = """
import json, sys
sys.path[:0] = sys.argv[2:]
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name
with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)
extras = {canonicalize_name(item["metadata"]["name"]): {""} for item in report["install"]}
def needs(item):
    of_item = extras[canonicalize_name(item["metadata"]["name"])] | {*item.get("requested_extras", ())}
    environments = [{**report["environment"], "extra": extra} for extra in of_item]
    for text in item["metadata"].get("requires_dist", ()):
        need = Requirement(text)
        if need.marker is None or any(map(need.marker.evaluate, environments)):
            yield need
known = None
while known != extras:
    known = {name: {*found} for name, found in extras.items()}
    for item in report["install"]:
        for need in needs(item):
            extras.setdefault(canonicalize_name(need.name), set()).update(need.extras)
def chosen(item):
    metadata, archive = item["metadata"], item["download_info"]["archive_info"]
    others = [need for need in needs(item) if canonicalize_name(need.name) != canonicalize_name(metadata["name"])]
    license = metadata.get("license_expression") or metadata.get("license") or ""
    return {
        "project": metadata["name"], "version": metadata["version"], "python": metadata.get("requires_python") or "",
        "license": license, "needs": [[need.name, str(need.specifier)] for need in others],
        "url": item["download_info"]["url"],
        "sha256": archive["hashes"]["sha256"] if "hashes" in archive else archive["hash"].removeprefix("sha256="),
    }
print(json.dumps([chosen(item) for item in report["install"]]))
"""
#: Options without which pip waits minutes for an index that does not answer, or keeps a second copy of each wheel.
_ALWAYS = ("--disable-pip-version-check", "--only-binary=:all:", "--no-cache-dir", "--retries", "2")
_OPTIONS = (*_ALWAYS, "--no-deps")
_UNREACHABLE = ("NewConnectionError", "Failed to establish", "Name or service", "Network is unreachable", "Retrying (")


def pip_command(interpreter: Path | None = None) -> tuple[str, ...]:
    """The command of pip; or of Python's bundled copy, if the environment has none (like those of uv).

    No module of the folder that it starts in takes the place of pip's.

    Args:
        interpreter: the Python that runs it, which may lack one; default: this one.
    """
    wheel = _bundled()
    if interpreter is not None:
        return (str(interpreter), "-I", str((wheel or _site_packages()) / "pip"))
    return (sys.executable, "-P", *(("-m", "pip") if wheel is None else (str(wheel / "pip"),)))


def index_urls(machine: Mapping[str, str]) -> tuple[str, ...]:
    """The addresses of pip's package indexes, in their order.

    Raises:
        WorkError: there is no pip, or it does not tell them.
    """
    wheel = _bundled()
    command = [sys.executable, "-c", _ASK, *([str(wheel)] if wheel else [])]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_ASK_SECONDS, env=dict(machine), cwd="/"
        )
        return tuple(str(url) for url in json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise WorkError("pip does not tell which package index it is configured with") from error


def _site_packages() -> Path:
    """The folder of this environment's pip."""
    found = importlib.util.find_spec("pip")
    assert found is not None and found.origin is not None  # noqa: S101  (asked after `_bundled`)
    return Path(found.origin).parents[1]


def _bundled() -> Path | None:
    """The wheel of pip to use; None if the environment has pip."""
    if importlib.util.find_spec("pip") is not None:
        return None
    for folder in _bundled_wheels():
        for wheel in sorted(folder.glob("pip-*.whl")):
            return wheel
    raise WorkError("this Python has no pip", hint=f"Install it for {sys.executable}.")


def _bundled_wheels() -> Iterator[Path]:
    """The folders where a Python may have the wheel that its ensurepip installs."""
    if system := sysconfig.get_config_var("WHEEL_PKG_DIR"):  # Debian, Fedora
        yield Path(system)
    if (module := importlib.util.find_spec("ensurepip")) is not None and module.origin:
        yield Path(module.origin).with_name("_bundled")


@dataclass(frozen=True, slots=True)
class Fetching:
    """The progress of a download.

    Attributes:
        what: the name of the download: `zig 0.17.1`.
        stage: `fetching`, `unpacking` or `ready`.
        why: it is fetched, in words, or at its end what else to know; empty where that goes without saying.
        seconds: the time since its start.
        done: bytes fetched so far; `size` is their total number, None if unknown.
    """

    what: str
    stage: str
    seconds: float
    done: int = 0
    size: int | None = None
    why: str = ""


#: Called with each step of a download, several times a second.
Watch = Callable[[Fetching], None]


def unwatched(progress: Fetching) -> None:
    """A `Watch` that does nothing."""


@dataclass(frozen=True, slots=True)
class Download:
    """Wheels to fetch: the lines of a requirements file, with hashes of known files.

    `what` is the name of it all, `size` its bytes if known, and `why` it is fetched: for those who watch. `options`
    are pip's, such as those for another platform; `interpreter` is the Python that they are for, None for this one.
    `room` is the space on the disk for them and for what is made of them, if it is known and more than `size`.
    """

    requirements: Sequence[str]
    what: str
    size: int | None = None
    why: str = ""
    options: Sequence[str] = ()
    interpreter: Path | None = None
    room: int = 0


def download_wheels(
    download: Download, folder: Path, machine: Mapping[str, str], watch: Watch = unwatched
) -> list[Path]:
    """Fetch wheels into a new folder.

    Raises:
        WorkError: there is no room for them, or pip is missing or cannot fetch them; the reason is in the message.
    """
    title, size = download.what, download.size
    folder.mkdir(parents=True)
    require_room(folder.parents[1], max(size or 0, download.room), title)  # not in the temporary folder between
    began = time.monotonic()
    with temporary_folder(folder.parent) as temporary:
        listed = temporary / "requirements.txt"
        listed.write_text("\n".join([*download.requirements, ""]), encoding="utf-8")
        options = (*_OPTIONS, *download.options, "--requirement", str(listed), "--dest", str(folder))
        command = [*pip_command(download.interpreter), "download", *options]
        environment = {**machine, "TMPDIR": str(temporary), "PYTHONUTF8": "1"}
        with (temporary / "log").open("w+b") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
            try:
                while process.poll() is None and time.monotonic() - began < _FETCH_SECONDS:
                    done = _size_below(temporary) + _size_below(folder)
                    watch(
                        Fetching(
                            title, "fetching", time.monotonic() - began, min(done, size or done), size, download.why
                        )
                    )
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_PAUSE)
            finally:
                process.kill()
                status = process.wait()
            log.seek(0)
            if status:
                raise WorkError(f"pip cannot fetch {title}: {_reason(log.read().decode(errors='replace'))}")
    return sorted(folder.glob("*.whl"))


@dataclass(frozen=True, slots=True)
class ChosenWheel:
    """A wheel that pip would install.

    Attributes:
        python: the Pythons that it is for (`>=3.9`); empty if it does not say.
        needs: name and versions (`>=1.2,<2`) of each project that it runs with.
    """

    project: str
    version: str
    python: str
    license: str
    needs: Sequence[tuple[str, str]]
    url: str
    sha256: str


def choose_wheels(download: Download, constraints: Sequence[str], machine: Mapping[str, str]) -> list[ChosenWheel]:
    """The wheels that pip would install for requirements, with those that they run with. Nothing is installed.

    Args:
        constraints: further lines that restrict versions.

    Raises:
        WorkError: pip is missing or finds none; the reason is in the message.
    """
    with temporary_folder() as temporary:
        files = {name: temporary / name for name in ("requirements", "constraints", "report")}
        files["requirements"].write_text("\n".join([*download.requirements, ""]), encoding="utf-8")
        files["constraints"].write_text("\n".join([*constraints, ""]), encoding="utf-8")
        asked = (f"--{name[:-1] if name[-1] == 's' else name}={path}" for name, path in files.items())
        options = ("--dry-run", "--ignore-installed", *_ALWAYS, *asked, *download.options)
        environment = {**machine, "TMPDIR": str(temporary), "PYTHONUTF8": "1"}
        reader = [sys.executable, "-P", "-c", _CHOSEN, str(files["report"]), str(_bundled() or _site_packages())]
        try:
            for command in ([*pip_command(download.interpreter), "install", *options], reader):
                with named_wait(f"pip to choose wheels for {download.what}", _CHOOSE_SECONDS):
                    done = subprocess.run(
                        command, capture_output=True, text=True, timeout=_CHOOSE_SECONDS, env=environment, check=False
                    )
                if done.returncode:
                    raise WorkError(f"pip finds no wheels for {download.what}: {_reason(done.stdout + done.stderr)}")
            return [ChosenWheel(**entry) for entry in json.loads(done.stdout)]
        except subprocess.TimeoutExpired:
            raise WorkError(f"pip chose no wheels for {download.what} within {_CHOOSE_SECONDS} s") from None
        except (OSError, ValueError, TypeError) as error:
            raise WorkError(f"pip does not tell which wheels it takes for {download.what}: {error}") from error


def _reason(log: str) -> str:
    """The reason in pip's output, in a line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if any(sign in line for line in lines for sign in _UNREACHABLE):
        return "the package index cannot be reached"
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        return "the index has a different file than expected (its SHA-256 differs)"
    if "The conflict is caused by:" in lines:
        causes = lines[lines.index("The conflict is caused by:") + 1 :]
        return "; ".join(takewhile(lambda line: not line.startswith("To fix this"), causes))
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it ended without a message"])[-1]


def _size_below(folder: Path) -> int:
    """The bytes of the wheels in a folder that another process writes to."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size if name.endswith(".whl") else 0  # noqa: PTH116, PTH118
            except OSError:  # it has just been moved
                continue
    return total
