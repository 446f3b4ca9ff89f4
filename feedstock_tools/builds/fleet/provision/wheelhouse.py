"""The wheels that hosts install: this program as it runs here, and what it needs for a host's Python and machine.

They are fetched once, into the user's cache; without a package index, `fleet up` takes those of the cache.
"""

from __future__ import annotations

import base64
import csv
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from feedstock_tools import __version__
from feedstock_tools.data import PACKAGE, cache_root, data_folder
from feedstock_tools.digests import digest_of_files, digest_of_values
from feedstock_tools.errors import WorkError
from feedstock_tools.files.changes import replacing
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import temporary_folder

_NAME = "feedstock-tools"
#: Hosts have this glibc or a newer one: Debian 10, Ubuntu 20.04, RHEL 8 and later.
_GLIBC = range(5, 29)
_LONGEST = 1800.0
#: Builds the wheel of a checkout into a folder.
_BUILD = """
import sys
from hatchling.builders.wheel import WheelBuilder
list(WheelBuilder(sys.argv[1]).build(directory=sys.argv[2], versions=["standard"]))
"""
#: What of an installation is no part of its wheel.
_OF_INSTALLER = frozenset({"INSTALLER", "REQUESTED", "direct_url.json", "RECORD"})
_OFFLINE = "The first time needs a package index; later runs take the wheels from the cache."


@dataclass(frozen=True, slots=True)
class Target:
    """For which hosts wheels are: their Python, such as `3.11`, their machine, such as `x86_64`, and their NumPy."""

    python: str
    machine: str
    numpy: str = ""


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive of files, and a digest of their names and contents."""

    path: Path
    digest: str


def wheelhouse(target: Target, machine: Mapping[str, str], tell: Callable[[str], None]) -> Archive:
    """The archive of wheels for some hosts; it is made if the cache lacks it.

    Args:
        machine: the environment of this machine, for pip and for the folder of the user's cache.
        tell: gets a line before wheels are fetched, which takes some seconds.
    """
    key = digest_of_values([__version__, _own_digest(), target.python, target.machine, target.numpy])[:16]
    folder = cache_root(machine) / "fleet" / f"wheels-{key}"
    with locked(folder.parent):
        if not folder.is_dir():
            tell(f"Fetching wheels for Python {target.python} on {target.machine}")
            with temporary_folder(folder.parent) as temporary:
                _fetch(target, temporary, machine)
                (temporary / "wheelhouse").rename(folder)
    return archive_of(folder / "wheels", folder / "wheelhouse.tar")


def archive_of(folder: Path, archive: Path) -> Archive:
    """An archive with the files of a folder, whose bytes depend on their names and contents only."""
    digest = digest_of_files([folder])
    if not archive.is_file():
        with replacing(archive) as part, tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(folder.iterdir()):
                entry = tarfile.TarInfo(path.name)
                entry.size, entry.mode = path.stat().st_size, 0o644
                with path.open("rb") as stream:
                    tar.addfile(entry, stream)
    return Archive(archive, digest)


def _own_digest() -> str:
    return digest_of_files([PACKAGE, *(data_folder(name) for name in ("templates", "variants", "examples"))])


def _fetch(target: Target, temporary: Path, machine: Mapping[str, str]) -> None:
    """Make `wheelhouse/` in a temporary folder, which is also the one that pip uses: if this process is killed, all of
    it is removed with the folder."""
    wheels = temporary / "wheelhouse" / "wheels"
    wheels.mkdir(parents=True)
    own = own_wheel(wheels, machine)
    wanted = {"host.txt": [f"{_NAME}[host] == {__version__}"]}
    if target.numpy:
        wanted["toolchain.txt"] = [f"numpy == {target.numpy}"]
    for name, requirements in wanted.items():
        (wheels / name).write_text("".join(f"{requirement}\n" for requirement in requirements), encoding="utf-8")
    platforms = [f"manylinux_2_{minor}_{target.machine}" for minor in _GLIBC]
    platforms += [f"manylinux2014_{target.machine}", f"linux_{target.machine}"]
    requirements = [f"{own}[host]", "pip", *([f"numpy=={target.numpy}"] if target.numpy else [])]
    _pip(
        {**machine, "TMPDIR": str(temporary)},
        "download",
        *("--only-binary=:all:", "--implementation=cp", f"--python-version={target.python}"),
        *(f"--platform={platform}" for platform in platforms),
        *("--dest", str(wheels), *requirements),
    )


def own_wheel(folder: Path, machine: Mapping[str, str]) -> Path:
    """A wheel of this program as it runs here: built from its checkout, or from what its installation recorded.

    Args:
        machine: the environment for what builds it.

    Raises:
        WorkError: it cannot be built.
    """
    checkout = PACKAGE.parent
    if (checkout / "pyproject.toml").is_file():
        with temporary_folder() as scratch:
            environment = {**machine, "TMPDIR": str(scratch)}
            if find_spec("hatchling") is None:
                _pip(environment, "wheel", "--no-deps", "--wheel-dir", str(scratch), str(checkout))
            else:  # as pip would, but in one process
                build = ("-c", _BUILD, str(checkout), str(scratch))
                _run(build, environment, "this program's wheel cannot be built", folder=scratch)
            (built,) = scratch.glob("*.whl")
            target = folder / built.name
            target.write_bytes(built.read_bytes())
            return target
    try:
        return _repacked(distribution(_NAME), folder)
    except PackageNotFoundError as error:
        raise WorkError("this program is not installed from a wheel, and not a checkout", path=checkout) from error


def _repacked(installed: Distribution, folder: Path) -> Path:
    """The wheel of an installation, from the files that it recorded."""
    path = folder / f"{_NAME.replace('-', '_')}-{installed.version}-py3-none-any.whl"
    rows = []
    with replacing(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in sorted(installed.files or (), key=str):
            if ".." in file.parts or file.suffix == ".pyc" or file.name in _OF_INSTALLER:
                continue
            content = Path(str(file.locate())).read_bytes()
            wheel.writestr(zipfile.ZipInfo(file.as_posix()), content)
            digest = base64.urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
            rows.append((file.as_posix(), f"sha256={digest}", str(len(content))))
        record = f"{_NAME.replace('-', '_')}-{installed.version}.dist-info/RECORD"
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (record, "", "")])
        wheel.writestr(zipfile.ZipInfo(record), text.getvalue())
    return path


def _pip(environment: Mapping[str, str], *arguments: str) -> None:
    if find_spec("pip") is None:
        raise WorkError("this Python has no pip, which fetches the wheels", hint="Install it: python -m ensurepip")
    command = ("-m", "pip", *arguments, "-q", "--disable-pip-version-check", "--no-input")
    _run(command, environment, "the wheels cannot be fetched", hint=_OFFLINE)


def _run(
    command: Sequence[str], environment: Mapping[str, str], wrong: str, folder: Path | None = None, hint: str = ""
) -> None:
    """Run this Python with some options and arguments, in a folder."""
    try:
        run = subprocess.run(
            [sys.executable, "-P", *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST,
            cwd=folder,
            env=dict(environment),
        )
    except subprocess.TimeoutExpired as error:
        raise WorkError(f"{wrong}: it took more than {_LONGEST:g} s", hint=hint) from error
    if run.returncode != 0:
        raise WorkError(f"{wrong}: {_reason(run.stderr.splitlines())}", hint=hint)


def _reason(lines: Sequence[str]) -> str:
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return errors[-1] if errors else " ".join(lines[-2:])
