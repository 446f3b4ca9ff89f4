"""The dossier: what reviewers of packages that a maintainer built ask for, in one folder that sha256sum verifies.

conda-forge's enhancement proposal 3 asks for the build logs of packages that were not built by its CI services; beside
them lie the commit, the configuration, the solved environments and the packages with their hashes.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.build.artifacts import Artifacts
from feedstock_tools.build.contents import files_below, sha256_of
from feedstock_tools.build.ledger import BuildRecord, EnvironmentRecord, Ledger, PackageRecord
from feedstock_tools.build.matrix import Matrix
from feedstock_tools.build.secrets import known_secrets, redacted, secrets_in
from feedstock_tools.build.state import ConfigurationState
from feedstock_tools.errors import Mistake, WorkError
from feedstock_tools.report.dossier_page import dossier_page

__all__ = ["Dossier", "make_dossier"]

SUMS = "SHA256SUMS"
_PAGE = "README.md"


@dataclass(frozen=True, slots=True)
class Dossier:
    """A dossier that was made: its folder, its configurations, and those that are not done and so not in it."""

    folder: Path
    configurations: tuple[str, ...]
    left_out: tuple[str, ...]
    packages: int


def make_dossier(
    matrix: Matrix,
    support: Path,
    target: Path,
    environment: Mapping[str, str],
    *,
    named: bool,
    with_packages: bool,
) -> Dossier:
    """Write the dossier of a matrix's finished configurations to a folder, whole or not at all.

    An earlier dossier in its place is replaced.

    Args:
        support: the folder of configurations, `.ci_support`.
        environment: of this machine; the values of its secrets must not be in the logs.
        named: the configurations were asked for by name, so that each of them has to be done.
        with_packages: put the packages themselves in, too.

    Raises:
        WorkError: nothing is done, a package or log is missing or is not what was recorded, a log holds a secret, or
            the folder cannot be written; every reason at once.
    """
    _refuse_other_folder(target)
    chosen = [each for each in matrix.configurations if each.state == "done"]
    others = [each.configuration.name for each in matrix.configurations if each.state != "done"]
    mistakes = [*_mistakes(matrix, chosen, environment), *_gone(matrix)]
    if named:
        mistakes += [Mistake(f"{name} is not done", hint="`feedstock-tools status` says why.") for name in others]
    if not chosen and not mistakes:
        mistakes = [Mistake("no configuration is done, so there is nothing to show", path=matrix.artifacts)]
    if mistakes:
        raise WorkError.of(mistakes)
    packages = _packages(chosen)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _fill(part, matrix, chosen, support, packages if with_packages else ())
            _write(part / "packages.sha256", _sums((each.sha256, each.file) for each in packages))
            page = dossier_page(matrix, chosen, others, with_packages=with_packages)
            _write(part / _PAGE, page)
            files = [Path(name) for name in files_below(part)]
            _write(part / SUMS, _sums((sha256_of(file), file.relative_to(part).as_posix()) for file in files))
            part.chmod(0o755)
            _put_in_place(part, target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise WorkError(f"cannot write the dossier: {error.strerror or error}", path=target) from error
    return Dossier(target, tuple(each.configuration.name for each in chosen), tuple(others), len(packages))


def _records(chosen: Sequence[ConfigurationState]) -> list[BuildRecord]:
    """The builds that the configurations are done by, each once."""
    found = (output.record for each in chosen for output in each.outputs if output.record)
    return list({record.id: record for record in found}.values())


def _packages(chosen: Sequence[ConfigurationState]) -> tuple[PackageRecord, ...]:
    found = {each.file: each for record in _records(chosen) for each in record.packages}
    return tuple(found[file] for file in sorted(found))


def _mistakes(matrix: Matrix, chosen: Sequence[ConfigurationState], environment: Mapping[str, str]) -> list[Mistake]:
    mistakes = []
    for package in _packages(chosen):
        path = matrix.artifacts / package.channel / package.file
        if not path.is_file():
            mistakes.append(Mistake("the package is missing", path=path))
        elif sha256_of(path) != package.sha256:
            mistakes.append(Mistake("the package is not the one that was built: its sha256 differs", path=path))
    secrets = known_secrets(environment)
    for log in dict.fromkeys(record.log for record in _records(chosen)):
        mistakes += _mistakes_of_log(matrix.artifacts, log, secrets)
    return mistakes


def _mistakes_of_log(artifacts: Path, log: str, secrets: Mapping[str, str]) -> list[Mistake]:
    path = (artifacts / log).resolve()
    if not path.is_relative_to(artifacts.resolve()) or not path.is_file():
        return [Mistake("the log of a build is missing", path=path, hint="Build that configuration again.")]
    text = path.read_text(encoding="utf-8", errors="replace")
    return [Mistake(f"the log holds {kind}", path=path, line=line) for kind, line in secrets_in(text, secrets).items()]


def _gone(matrix: Matrix) -> list[Mistake]:
    """Packages that were built and that have been removed or changed since."""
    return [
        Mistake(f"{output.output.stem} of {each.configuration.name}: {output.reason}")
        for each in matrix.configurations
        for output in each.outputs
        if output.state == "missing" and output.record
    ]


def _fill(
    part: Path,
    matrix: Matrix,
    chosen: Sequence[ConfigurationState],
    support: Path,
    packages: Sequence[PackageRecord],
) -> None:
    with Ledger(Artifacts(matrix.artifacts).ledger) as ledger:
        for each in chosen:
            folder = part / "configurations" / each.configuration.name
            folder.mkdir(parents=True)
            shutil.copyfile(support / f"{each.configuration.name}.yaml", folder / "configuration.yaml")
            records = _records([each])
            for log in dict.fromkeys(record.log for record in records):
                shutil.copyfile(matrix.artifacts / log, folder / Path(log).name)
            _write_json(folder / "builds.json", [_build_json(record) for record in records])
            solved = {record.output + f" {record.row}": _environments(ledger, record) for record in records}
            _write_json(folder / "environments.json", solved)
    for package in packages:
        place = part / "packages" / package.file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(matrix.artifacts / package.channel / package.file, place)
        if sha256_of(place) != package.sha256:
            raise WorkError("the package changed while it was copied", path=place)


def _build_json(record: BuildRecord) -> dict[str, Any]:
    """A build as it is shown to others: without what is of this machine's processes, and without credentials."""
    left_out = ("id", "process", "packages", "channels", "command", "log")
    shown = {name: value for name, value in asdict(record).items() if name not in left_out}
    packages = [{"file": each.file, "size": each.size, "sha256": each.sha256} for each in record.packages]
    channels = [redacted(channel) for channel in record.channels]
    log = Path(record.log).name
    return {**shown, "channels": channels, "command": redacted(record.command), "log": log, "packages": packages}


def _environments(ledger: Ledger, record: BuildRecord) -> dict[str, list[dict[str, str]]]:
    found: Sequence[EnvironmentRecord] = ledger.environments(record.id) if record.id is not None else ()
    return {
        each.environment: [
            {**asdict(package), "channel": redacted(package.channel)}
            for package in sorted(each.packages, key=lambda package: package.name)
        ]
        for each in found
    }


def _sums(pairs: Any) -> str:
    """Lines as sha256sum writes and reads them."""
    return "".join(f"{digest}  {name}\n" for digest, name in pairs)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _write_json(path: Path, content: Any) -> None:
    _write(path, json.dumps(content, indent=1, sort_keys=True) + "\n")


def _refuse_other_folder(target: Path) -> None:
    """A folder that is no dossier is not replaced."""
    if target.is_symlink() or (target.exists() and not (target / SUMS).is_file() and not _is_empty(target)):
        raise WorkError(
            "there is something else in the place of the dossier", path=target, hint="Give another with -o."
        )


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _put_in_place(part: Path, target: Path) -> None:
    if not target.exists():
        part.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        target.rename(old / target.name)
        part.rename(target)
    finally:
        shutil.rmtree(old, ignore_errors=True)
