"""Publishing packages: only of configurations that are complete and tested, each verified by its hash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.builds.matrix.matrix import ConfigurationState, Matrix
from feedstock_tools.channel.packages.reading import PACKAGE_SUFFIXES, verify_package
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import InputError, WorkError

if TYPE_CHECKING:
    from feedstock_tools.channel.targets import Target

#: The number of files in a message.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Published:
    """A package and its result.

    Attributes:
        file: `<subdir>/<file name>`.
        path: its path on this machine.
        size: in bytes.
        result: `to be published`, `published`, `there` if the target has it, or `there, not verified` if a
            service refused it because of its name and does not show the hash of its own.
    """

    file: str
    path: Path
    sha256: str
    size: int
    result: str = "to be published"


class PublishObserver(Protocol):
    """An observer of the upload."""

    def incomplete(self, state: str, configurations: Sequence[str]) -> None:
        """Configurations (by their short names) are left out because they are in this state."""

    def untested(self, reason: str, files: Sequence[str]) -> None:
        """Packages are left out with all of their rows because their tests did not run or failed."""

    def begin(self, number: int, total: int, package: Published) -> None:
        """A package is uploaded, the first with the number 1."""


class _Unwatched:
    """An observer that ignores everything."""

    def incomplete(self, state: str, configurations: Sequence[str]) -> None: ...
    def untested(self, reason: str, files: Sequence[str]) -> None: ...
    def begin(self, number: int, total: int, package: Published) -> None: ...


_UNWATCHED = _Unwatched()


def publish(
    matrix: Matrix,
    target: Target,
    observer: PublishObserver = _UNWATCHED,
    *,
    complete_only: bool = True,
    dry_run: bool = False,
) -> tuple[Published, ...]:
    """Publish the packages of a matrix to a channel; existing ones are skipped.

    Everything is checked before the first upload: that each configuration is complete and its tests have passed,
    that each file has the hash from the ledger, and that the target has no different package of its name. A run
    that was interrupted can be repeated and skips the packages that arrived.

    Args:
        observer: called with everything that is left out, and with each uploaded package.
        complete_only: leave out configurations that are not complete and rows that are not tested, instead of failing.
        dry_run: check, and upload nothing.

    Raises:
        InputError: builds on the stand-in channel would leave this machine.
        WorkError: a check fails (all that fail are reported at once), or the target refuses a package.

    >>> built = workspace.chosen([f"{Platform.here().name}_cuda11.2_py3.11"])
    >>> published = publish(read_matrix(workspace, built), parse_target("published", None, os.environ, Path.cwd()))
    >>> [each.result for each in published]
    ['published', 'published', 'published', 'published']
    """
    packages = _checked(matrix, target, observer, complete_only=complete_only)
    existing = _existing(target, packages)
    new = [package for package in packages if package.file not in existing]
    results = dict.fromkeys((package.file for package in packages), "there")
    if dry_run:
        results |= {package.file: package.result for package in new}
        return tuple(replace(package, result=results[package.file]) for package in packages)
    for number, package in enumerate(new, 1):
        observer.begin(number, len(new), package)
        results[package.file] = target.put(package.path, package.file, package.sha256)
    if packages:  # even if nothing is new: the previous run may have ended before it wrote the index
        target.finish({package.file: package.sha256 for package in packages})
    return tuple(replace(package, result=results[package.file]) for package in packages)


def _checked(matrix: Matrix, target: Target, observer: PublishObserver, *, complete_only: bool) -> list[Published]:
    """The packages to publish, after the checks that need no answer of the target."""
    chosen, wrong = _complete(matrix, observer, complete_only=complete_only)
    untested = _untested(matrix, chosen)
    if complete_only and untested:
        chosen, untested = _tested(matrix, chosen, untested, observer), {}
    _refuse_to_leave(chosen, target)
    packages = _packages(matrix, chosen)
    brought = sorted({package.file for record in _records(chosen) if record.brought for package in record.packages})
    wrong += [f"{file} was brought: nothing shows that this user built it; `collect` checks it" for file in brought]
    wrong += [untested_in_words(reason, sorted(files)) for reason, files in untested.items()]
    wrong += [reason for package in packages if (reason := _why_not(package))]
    if wrong:
        hint = (
            "Run the tests with `feedstock-tools test NAME`, or publish less with a NAME such as linux_64_cpu_py3.11."
        )
        text = "nothing was published:\n" + "\n".join(f"  {reason}" for reason in wrong)
        raise WorkError(text, hint=hint if untested else None)
    return packages


def _existing(target: Target, packages: Sequence[Published]) -> Mapping[str, str | None]:
    """The packages that the target has, with their hashes as far as it shows them; none of them may differ."""
    from feedstock_tools.channel.targets import OTHER_PACKAGE

    existing = target.there([package.file for package in packages])
    other = [package.file for package in packages if existing.get(package.file) not in (None, package.sha256)]
    if other:
        raise WorkError(
            f"{target.name} has different packages with these names: {', '.join(other)}", hint=OTHER_PACKAGE
        )
    return existing


def _complete(
    matrix: Matrix, observer: PublishObserver, *, complete_only: bool
) -> tuple[list[ConfigurationState], list[str]]:
    """The configurations whose outputs are all done, and the mistakes of the others."""
    chosen = [each for each in matrix.configurations if each.state == "done"]
    others = [each for each in matrix.configurations if each.state != "done"]
    if not complete_only and others:
        words = {"missing": "not built here"}
        states = ((each, words.get(each.state, f"not complete, but {each.state}")) for each in others)
        return chosen, [f"{each.configuration.short_name} is {state}" for each, state in states]
    if not chosen:
        hint = "`feedstock-tools status` shows the state of each."
        raise WorkError("there is nothing to publish: no configuration is complete", path=matrix.artifacts, hint=hint)
    for state in dict.fromkeys(each.state for each in others):
        observer.incomplete(state, [each.configuration.short_name for each in others if each.state == state])
    return chosen, []


def _tested(
    matrix: Matrix, chosen: Sequence[ConfigurationState], untested: Mapping[str, set[str]], observer: PublishObserver
) -> list[ConfigurationState]:
    """The configurations without rows that have an untested package; packages shared by rows stay."""
    bad = set().union(*untested.values())
    left = {
        row.name
        for configuration in chosen
        for output in configuration.outputs
        if output.record and any(package.file in bad for package in output.record.packages)
        for row in output.rows
    }
    kept = [
        replace(
            each, outputs=tuple(output for output in each.outputs if any(row.name not in left for row in output.rows))
        )
        for each in chosen
    ]
    for reason, files in untested.items():
        observer.untested(reason, sorted(files))
    if not any(each.outputs for each in kept):
        hint = "Run the tests with `feedstock-tools test NAME`."
        raise WorkError(
            "there is nothing to publish: every row has untested packages", path=matrix.artifacts, hint=hint
        )
    return kept


def _records(chosen: Sequence[ConfigurationState]) -> Iterator[BuildRecord]:
    """The builds of complete configurations, outputs before those that need them."""
    for configuration in chosen:
        for output in configuration.outputs:
            if output.record is not None:
                yield output.record


def _refuse_to_leave(chosen: Sequence[ConfigurationState], target: Target) -> None:
    """Refuse to publish to another machine what was built on channels that were made here."""
    built_on = (record.built_on for record in _records(chosen))
    private = next((channels for channels in built_on if not channels.may_leave_machine), None)
    if private is not None and not target.on_this_machine:
        hint = "That channel's packages are not conda-forge's. Publish to a folder."
        raise InputError(f"packages built on the {private.origin} channel cannot leave this machine", hint=hint)


def _packages(matrix: Matrix, chosen: Sequence[ConfigurationState]) -> list[Published]:
    found: dict[str, Published] = {}
    for package in (package for record in _records(chosen) for package in record.packages):
        path = matrix.artifacts / package.channel / package.file
        found.setdefault(package.file, Published(package.file, path, package.sha256, package.size))
    return list(found.values())


def _untested(matrix: Matrix, chosen: Sequence[ConfigurationState]) -> dict[str, set[str]]:
    """Untested packages by reason: neither the build nor the last run of `test` tested them successfully."""
    last = {test.sha256: test for test in matrix.tests}
    files: dict[str, set[str]] = {}
    for record, package in [(built, each) for built in _records(chosen) for each in built.packages]:
        test = last.get(package.sha256)
        if test is not None and test.result != "passed":
            files.setdefault(f"rejected by the last `test`: {test.reason}", set()).add(package.file)
        elif test is None and record.marks.get("tests") == "left out":
            reason = record.marks.get("tests-reason", "its tests were left out")
            files.setdefault(f"not tested: {reason}", set()).add(package.file)
    return files


def untested_in_words(reason: str, files: Sequence[str]) -> str:
    """Why one or several packages cannot be published, with the first few names."""
    if len(files) == 1:
        return f"{files[0]} was {reason}"
    shown = ", ".join(files[:_SHOWN]) + (", …" if len(files) > _SHOWN else "")
    return f"{len(files)} packages were {reason} ({shown})"


def _why_not(package: Published) -> str | None:
    """What is wrong with a file: other bytes than those that were built, or a package that no index can describe."""
    try:
        if sha256_of(package.path) != package.sha256:
            return f"{package.file} has changed since it was built"
        metadata = verify_package(package.path)
    except OSError as error:
        raise WorkError(f"cannot read the package: {error.strerror or error}", path=package.path) from error
    except WorkError as error:
        return f"{package.file}: {error.mistakes[0].message}"
    stem = f"{metadata.subdir}/{metadata.file_name.removesuffix(PACKAGE_SUFFIXES[0])}"
    return None if package.file in {stem + suffix for suffix in PACKAGE_SUFFIXES} else f"{package.file} is {stem}"
