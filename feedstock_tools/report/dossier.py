"""The dossier: the evidence for reviewers of packages built by a maintainer, in one folder that sha256sum verifies.

conda-forge's enhancement proposal 3 asks for the build logs of packages that were not built by its CI services; with
them come the commit, the configuration, the solved environments and the packages with their hashes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools import __version__
from feedstock_tools.builds.ledger import (
    BuildRecord,
    ComparisonRecord,
    EnvironmentRecord,
    Ledger,
    PackageRecord,
    TestRecord,
)
from feedstock_tools.builds.ledger.records import told_of
from feedstock_tools.builds.matrix.matrix import ConfigurationState, Matrix
from feedstock_tools.data import text_templates
from feedstock_tools.digests import files_below, sha256_of
from feedstock_tools.errors import Mistake, WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import LARGEST_SETTINGS, read_bytes
from feedstock_tools.redaction import Redaction, known_secrets, redacted, secrets_in_file
from feedstock_tools.report.matrix import log_file
from feedstock_tools.report.run import are_same, comparison_words, library_lines
from feedstock_tools.wording import code, duration, markup, moment, named, size_text

if TYPE_CHECKING:
    from feedstock_tools.channel.targets import Target

SUMS = "SHA256SUMS"
_PAGE = "README.md"


@dataclass(frozen=True, slots=True)
class Dossier:
    """A written dossier: its folder, its configurations, and those left out because they are not done."""

    folder: Path
    configurations: tuple[str, ...]
    left_out: tuple[str, ...]
    packages: int


@dataclass(frozen=True, slots=True)
class DossierOptions:
    """What a dossier must hold.

    Attributes:
        named: the configurations were named, so each of them must be done.
        with_packages: include the packages themselves.
        uploaded: the target to which the packages were uploaded, which must have each of them.
    """

    named: bool
    with_packages: bool
    uploaded: Target | None = None


def make_dossier(
    matrix: Matrix, support: Path, target: Path, environment: Mapping[str, str], options: DossierOptions
) -> Dossier:
    """Write the dossier of a matrix's finished configurations to a folder, whole or not at all.

    An earlier dossier in its place is replaced.

    Args:
        support: the folder of configurations, `.ci_support`.
        environment: of this machine; the values of its secrets must not be in the logs.

    Raises:
        WorkError: nothing is done, a package or log is missing or has changed, a log contains a secret, a
            package is not where it was uploaded to, or the folder cannot be written; every reason at once.
    """
    _refuse_other_folder(target)
    chosen = [state for state in matrix.configurations if state.state == "done"]
    left_out = [state.configuration for state in matrix.configurations if state.state != "done"]
    others = [configuration.short_name for configuration in left_out]
    packages = _packages(chosen)
    tests = _tests(matrix, packages)
    mistakes = [*_mistakes(matrix, chosen, tests, environment), *_gone(matrix), *_not_at(options.uploaded, packages)]
    if options.named:
        mistakes += [Mistake(f"{name} is not done", hint="`feedstock-tools status` says why.") for name in others]
    if not chosen and not mistakes:
        mistakes = [Mistake("no configuration is done, so there is nothing to show", path=matrix.artifacts)]
    if mistakes:
        raise WorkError.of(mistakes)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(target.parent) as part:
            _fill(part, matrix, chosen, tests, support, Redaction(known_secrets(environment).values()))
            if options.with_packages:
                _add_packages(part, matrix, packages)
            _write(part / "packages.sha256", _sums((package.sha256, package.file) for package in packages))
            page = dossier_page(
                matrix, chosen, others, tests, with_packages=options.with_packages, uploaded=options.uploaded
            )
            _write(part / _PAGE, page)
            _seal(part)
            _put_in_place(part, target)
    except OSError as error:
        raise WorkError(f"cannot write the dossier: {error.strerror or error}", path=target) from error
    built = tuple(state.configuration.name for state in chosen)
    return Dossier(target, built, tuple(each.name for each in left_out), len(packages))


def _records(chosen: Sequence[ConfigurationState]) -> list[BuildRecord]:
    """The builds behind the finished configurations, each once."""
    records = (output.record for state in chosen for output in state.outputs if output.record)
    return list({record.id: record for record in records}.values())


def _packages(chosen: Sequence[ConfigurationState]) -> tuple[PackageRecord, ...]:
    by_file = {package.file: package for record in _records(chosen) for package in record.packages}
    return tuple(by_file[file] for file in sorted(by_file))


def _tests(matrix: Matrix, packages: Sequence[PackageRecord]) -> tuple[TestRecord, ...]:
    """The last run of `test` on each package and machine (or kind of GPU); without the logs that are gone."""
    wanted = {package.sha256 for package in packages}
    last = {(test.sha256, test.gpu or test.machine): test for test in matrix.tests if test.sha256 in wanted}
    return tuple(test if log_file(matrix.artifacts, test.log) else replace(test, log="") for test in last.values())


def _not_at(target: Target | None, packages: Sequence[PackageRecord]) -> list[Mistake]:
    """The packages that a channel lacks, or has with other contents."""
    if target is None:
        return []
    existing = target.there([package.file for package in packages])
    wrong = [package.file for package in packages if existing.get(package.file) != package.sha256]
    return [
        Mistake(f"{target.name} has a different {file}" if file in existing else f"{target.name} has no {file}")
        for file in wrong
    ]


def _mistakes(
    matrix: Matrix, chosen: Sequence[ConfigurationState], tests: Sequence[TestRecord], environment: Mapping[str, str]
) -> list[Mistake]:
    mistakes = []
    for package in _packages(chosen):
        path = matrix.artifacts / package.channel / package.file
        if not path.is_file():
            mistakes.append(Mistake("the package is missing", path=path))
        elif sha256_of(path) != package.sha256:
            mistakes.append(Mistake("the package has changed since it was built: its sha256 differs", path=path))
    secrets = known_secrets(environment)
    logs = [record.log for record in _records(chosen)] + [test.log for test in tests if test.log]
    for log in dict.fromkeys(logs):
        mistakes += _mistakes_of_log(matrix.artifacts, log, secrets)
    return mistakes


def _mistakes_of_log(artifacts: Path, log: str, secrets: Mapping[str, str]) -> list[Mistake]:
    path = log_file(artifacts, log)
    if path is None:
        hint = "Build that configuration again."
        return [Mistake("the log of a build is missing", path=artifacts / log, hint=hint)]
    try:
        secrets_found = secrets_in_file(path, secrets)
    except OSError as error:
        return [Mistake(f"the log cannot be read: {error.strerror or error}", path=path)]
    return [Mistake(f"the log contains {kind}", path=path, line=line) for kind, line in secrets_found.items()]


def _gone(matrix: Matrix) -> list[Mistake]:
    """Built packages that have been removed or changed since."""
    return [
        Mistake(f"{output.output.stem} of {state.configuration.short_name}: {output.reason}")
        for state in matrix.configurations
        for output in state.outputs
        if output.state == "missing" and output.record
    ]


def _fill(
    part: Path,
    matrix: Matrix,
    chosen: Sequence[ConfigurationState],
    tests: Sequence[TestRecord],
    support: Path,
    redaction: Redaction,
) -> None:
    with Ledger(Artifacts(matrix.artifacts).ledger) as ledger:
        for state in chosen:
            folder = part / "configurations" / state.configuration.name
            folder.mkdir(parents=True)
            content = read_bytes(support / f"{state.configuration.name}.yaml", LARGEST_SETTINGS, within=support.parent)
            # A configuration names its channels, whose URLs may have credentials.
            _write(folder / "configuration.yaml", redaction.text(content.decode(errors="replace")))
            records = _records([state])
            hashes = {package.sha256 for record in records for package in record.packages}
            tested = [test for test in tests if test.sha256 in hashes]
            logs = [record.log for record in records] + [test.log for test in tested if test.log]
            for log in dict.fromkeys(logs):
                shutil.copyfile(matrix.artifacts / log, folder / Path(log).name)
            _write_json(folder / "builds.json", [_build_json(record, redaction) for record in records])
            solved = {record.output + f" {record.row}": _environments(ledger, record) for record in records}
            _write_json(folder / "environments.json", solved)
            compared = [comparison for record in records for comparison in matrix.compared(record)]
            if compared:
                _write_json(folder / "comparisons.json", [_test_json(each) for each in compared])
            if tested:
                _write_json(folder / "tests.json", [_test_json(test) for test in tested])


def _add_packages(part: Path, matrix: Matrix, packages: Sequence[PackageRecord]) -> None:
    for package in packages:
        place = part / "packages" / package.file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(matrix.artifacts / package.channel / package.file, place)
        if sha256_of(place) != package.sha256:
            raise WorkError("the package changed while it was copied", path=place)


def _test_json(test: TestRecord | ComparisonRecord) -> dict[str, Any]:
    shown = {name: value for name, value in told_of(test).items() if name != "channel"}
    return {**shown, "log": Path(test.log).name}


def _build_json(record: BuildRecord, redaction: Redaction) -> dict[str, Any]:
    """A build in a form for others: without this machine's processes, and without credentials."""
    left_out = ("id", "process", "packages", "channels", "command", "log", "seal", "brought")
    shown = {name: value for name, value in asdict(record).items() if name not in left_out}
    packages = [{"file": package.file, "size": package.size, "sha256": package.sha256} for package in record.packages]
    channels = [redacted(channel) for channel in record.channels]
    log = Path(record.log).name
    values = {key: redaction.text(value) for key, value in record.values.items()}
    plain = {"channels": channels, "values": values, "command": redaction.text(record.command)}
    return {**shown, **plain, "log": log, "packages": packages}


def _environments(ledger: Ledger, record: BuildRecord) -> dict[str, list[dict[str, str]]]:
    environments: Sequence[EnvironmentRecord] = ledger.environments(record.id) if record.id is not None else ()
    return {
        environment.environment: [
            {**asdict(package), "channel": redacted(package.channel)}
            for package in sorted(environment.packages, key=lambda package: package.name)
        ]
        for environment in environments
    }


def _sums(pairs: Any) -> str:
    """Lines as sha256sum writes and reads them."""
    return "".join(f"{digest}  {name}\n" for digest, name in pairs)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _write_json(path: Path, content: Any) -> None:
    _write(path, json.dumps(content, indent=1, sort_keys=True) + "\n")


def _refuse_other_folder(target: Path) -> None:
    """Refuse to replace a folder that is not a dossier."""
    if target.is_symlink() or (target.exists() and not (target / SUMS).is_file() and not _is_empty(target)):
        raise WorkError("the folder exists and is not a dossier", path=target, hint="Choose another with -o.")


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _seal(part: Path) -> None:
    """Add the hashes of all files, and let others read the folder."""
    files = [Path(name) for name in files_below(part)]
    _write(part / SUMS, _sums((sha256_of(file), file.relative_to(part).as_posix()) for file in files))
    part.chmod(0o755)


def _put_in_place(part: Path, target: Path) -> None:
    if not target.exists():
        part.rename(target)
        return
    with temporary_folder(target.parent) as old:
        target.rename(old / target.name)
        part.rename(target)


def dossier_page(
    matrix: Matrix,
    chosen: Sequence[ConfigurationState],
    left_out: Sequence[str],
    tests: Sequence[TestRecord],
    *,
    with_packages: bool,
    uploaded: Target | None = None,
) -> str:
    """The page for some finished configurations.

    Args:
        left_out: the names of configurations that are not in the dossier.
        tests: the runs of `test` on their packages; `log` is empty for one whose log is gone.
        uploaded: the target with the packages.
    """
    # Markdown, which HTML escaping would spoil: `cell` escapes each text, `code` each name.
    environment = text_templates()
    environment.filters |= {
        "cell": markup,
        "code": code,
        "named": named,
        "duration": duration,
        "moment": moment,
        "size": size_text,
    }
    views = [_view(matrix, state, tests) for state in chosen]
    files = sorted({package.file for view in views for record in view["records"] for package in record.packages})
    return environment.get_template("dossier.md.j2").render(
        matrix=matrix,
        version=__version__,
        views=views,
        left_out=left_out,
        with_packages=with_packages,
        commits=sorted({record.commit_id for view in views for record in view["records"]}),
        stand_in=any(record.built_on.made_here for view in views for record in view["records"]),
        count=len(files),
        uploaded=uploaded,
        copying=copying(uploaded, files),
    )


def copying(uploaded: Target | None, files: Sequence[str]) -> list[str]:
    """The commands that copy packages from a maintainer's channel at anaconda.org, by conda-forge's proposal 3."""
    from feedstock_tools.channel.targets import ServiceTarget

    if not isinstance(uploaded, ServiceTarget) or uploaded.kind != "anaconda":
        return []
    releases = dict.fromkeys("/".join(file.rpartition("/")[2].rsplit("-", 2)[:2]) for file in files)
    words = f"anaconda copy --from-label {uploaded.label} --to-label main --to-owner conda-forge"
    return [f"{words} {uploaded.channel}/{release}" for release in releases]


def _view(matrix: Matrix, state: ConfigurationState, tests: Sequence[TestRecord]) -> dict[str, Any]:
    by_number: dict[int | None, BuildRecord] = {
        output.record.id: output.record for output in state.outputs if output.record
    }
    records = list(by_number.values())
    hashes = {package.sha256 for record in records for package in record.packages}
    return {
        "configuration": state.configuration,
        "tests": [test for test in tests if test.sha256 in hashes],
        "records": records,
        "compared": [
            (comparison.file, comparison_words(comparison), are_same([comparison]))
            for record in records
            for comparison in matrix.compared(record)[-1:]
        ],
        "logs": list(dict.fromkeys(record.log.rpartition("/")[2] for record in records)),
        "engines": _each(record.engine for record in records),
        "machines": _each(record.machine for record in records),
        "channels": _each(redacted(channel) for record in records for channel in record.channels),
        "begin": min(record.started for record in records),
        "end": max(record.ended or record.started for record in records),
        "seconds": sum(record.seconds or 0.0 for record in records),
        "untested": [
            (record.output, record.marks.get("tests-reason", ""))
            for record in records
            if record.marks.get("tests") == "left out"
        ],
        "libraries": library_lines(records),
    }


def _each(texts: Any) -> list[str]:
    return sorted({text for text in texts if text})
