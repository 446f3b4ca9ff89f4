"""`feedstock-tools rerender`: write `.ci_support` from recipe, pinning and migrations."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from feedstock_tools.bounds.limits import released
from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.fetched import chosen_release, required_pinning, version_of_pinning
from feedstock_tools.cli.opening import behind_spec, commit_changes, refuse_without_feedstock, repository_of, tidy
from feedstock_tools.cli.printing import say, say_diff, say_note, say_result
from feedstock_tools.errors import WorkError
from feedstock_tools.platforms import Platform
from feedstock_tools.stages import stage
from feedstock_tools.wording import counted, named

if TYPE_CHECKING:
    from feedstock_tools.feedstock.git import Repository
    from feedstock_tools.files.changes import Changes
    from feedstock_tools.rerender.many import RerenderedFeedstock
    from feedstock_tools.rerender.rerendering import Rerender
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.smithy import Release


@dataclass(frozen=True, slots=True)
class _How:
    """What a rerender follows: the pinning, versions of conda-smithy and conda-build, platforms, a release."""

    pinning: str | None
    rules: str | None
    platforms: tuple[str, ...]
    smithy: str | None
    online: bool


@dataclass(frozen=True, slots=True)
class _Modes:
    """What becomes of the result: checked, shown, printed as JSON, compared with conda-smithy, staged, committed."""

    check: bool
    show_diff: bool
    as_json: bool
    verify: bool
    stage: bool
    commit: str | None

    @property
    def is_for_git(self) -> bool:
        return self.stage or self.commit is not None


@dataclass(frozen=True, slots=True)
class _Many:
    """How many feedstocks are rerendered in parallel, the migration to apply to them, and the record of outcomes."""

    jobs: int
    migration: Path | None
    resume: Path | None


class _LikeSmithys(Command):
    """A command that also takes the options of `conda smithy rerender`, for scripts that call either."""

    _SPELLINGS: Mapping[str, str] = {
        "-e": "--pinning",
        "--exclusive-config-file": "--pinning",
        "-c": "--commit",
        "--feedstock_directory": "--feedstock",
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments with its own spellings in place of conda-smithy's."""
        words = [word.partition("=") for word in args if word != "--no-check-uptodate"]
        return super().parse_args(
            ctx, [self._SPELLINGS.get(name, name) + equals + value for name, equals, value in words]
        )


@click.command("rerender", cls=_LikeSmithys)
@options.folders
@options.pinning
@options.rules
@options.platform("all of the feedstock's", repeatable=True)
@options.check
@options.diff
@options.as_json
@click.option("--verify", is_flag=True, help="Write nothing; run conda-smithy from PATH in a copy and compare.")
@options.smithy
@click.option("--online", is_flag=True, help="Look up the feedstock's number at Azure, for the README (5 s at most).")
@options.offline
@click.option("--stage", is_flag=True, help="Stage the changes in git, as conda-smithy does.")
@options.commit("conda-smithy's message")
@options.jobs
@click.option(
    "--migration",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Migration to apply, whether or not the pinning has it (feedstocks that do not need it stay as they are).",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Record outcomes in this file, and skip the feedstocks that it has.",
)
@options.gathered("many", _Many)
@options.gathered("modes", _Modes)
@options.gathered("how", _How)
@click.pass_context
def rerender(context: click.Context, feedstocks: tuple[Path, ...], how: _How, modes: _Modes, many: _Many) -> None:
    """Write the .ci_support of each FEEDSTOCK and all other files of conda-smithy: CI files, scripts, README.md.

    They are made with the templates of a release of conda-smithy: the one that --rules names, else the newest that
    `feedstock-tools smithy` fetched, else an installed one. DIR is a source tree as in conda-smithy's git repository,
    an unpacked conda package, or an environment. Without a release, only .ci_support and job lists are written.

    Without --pinning, a feedstock with a spec needs only its recipe's conda_build_config.yaml; other feedstocks use the
    newest pinning that `feedstock-tools pinning` fetched, or fetch it. The command prints which one it uses.
    """
    asks_for_jobs = context.get_parameter_source("jobs") is not ParameterSource.DEFAULT
    if len(feedstocks) > 1 or many.migration or many.resume or asks_for_jobs:
        _rerender_many(feedstocks, how, modes, many)
    else:
        _rerender_one(feedstocks[0], how, modes)


def _rerender_one(feedstock: Path, how: _How, modes: _Modes) -> None:
    """Rerender a feedstock and print what changes; exit with 1 if something does with --check."""
    _refuse_mixtures(feedstock, modes)
    refuse_without_feedstock(feedstock)
    gc.disable()  # a short process without reference cycles: collecting garbage would take a third of its time
    repository = repository_of(feedstock, "" if modes.is_for_git else None)
    pinning = required_pinning(how.pinning, feedstock)
    result = _rerendered(feedstock, pinning, how)
    if modes.verify:
        _verify(result, pinning)
        return
    changes = result.changes()
    if modes.show_diff:
        say_diff(changes.diff())
    report = _report(result, changes, behind_spec(feedstock))
    if not modes.as_json:
        _say_report(report, err=modes.show_diff, with_jobs=modes.check)
    if not modes.check:
        tidy(feedstock)
        changes.apply()
    if repository is not None and modes.stage:
        report["message"] = _message(result, pinning) if repository.stage(changes) else None
    if modes.as_json:
        say_result(report)
    if modes.check and changes:
        raise SystemExit(1)
    say_note(f"{counted(len(result.configurations), 'configuration')}, {counted(len(changes.paths), 'change')}")
    if repository is not None and modes.commit is not None:
        commit_changes(repository, changes, _message(result, pinning), modes.commit)


def _message(result: Rerender, pinning: Path | None) -> str:
    """The message that conda-smithy gives a rerender."""
    return result.rules.commit_message(version_of_pinning(pinning) if pinning else None)


def _rerender_many(feedstocks: Sequence[Path], how: _How, modes: _Modes, many: _Many) -> None:
    """Rerender feedstocks in several processes; exit with 1 if one failed, or changes with --check."""
    from feedstock_tools.rerender.many import opened_record, rerender_many
    from feedstock_tools.rerender.smithy import chosen_rules

    if modes.show_diff or modes.verify or modes.stage or how.online or how.platforms:
        raise click.UsageError("--diff, --verify, --stage, --online and --platform are for one feedstock")
    repositories = {each: repository_of(each, modes.commit) for each in feedstocks}
    pinning = required_pinning(how.pinning, Path(os.devnull))
    release = chosen_release(how.smithy, how.rules)
    rules = chosen_rules(how.rules, release)
    # What outcomes depend on, for the record.
    depends_on = {
        "rules": rules.name,
        "release": release.version or str(release.folder) if release else None,
        "pinning": _digest(pinning),
        "migration": _digest(many.migration),
        "writing": "no" if modes.check else "yes",
    }
    began = time.monotonic()
    version = version_of_pinning(pinning) if pinning and modes.commit is not None else None
    outcomes: list[RerenderedFeedstock] = []
    opened = opened_record(many.resume, depends_on) if many.resume else nullcontext()
    with opened as record, released():  # each feedstock has bounds of its own
        if record is not None:
            outcomes += [record.earlier[str(each.resolve())] for each in feedstocks if record.has(each)]
        left = [feedstock for feedstock in feedstocks if record is None or not record.has(feedstock)]
        for outcome in rerender_many(
            left,
            pinning=pinning,
            rules=rules,
            smithy=release,
            migration=many.migration,
            write=not modes.check,
            jobs=many.jobs,
        ):
            repository = repositories[outcome.feedstock]
            if repository is not None and modes.commit is not None and outcome.changes:
                _commit_outcome(repository, outcome, rules.commit_message(version), modes.commit)
            if record is not None:
                record.add(outcome)
            outcomes.append(outcome)
            if not modes.as_json:
                _say_outcome(outcome)
            stage(f"rerender: {len(outcomes)} of {counted(len(feedstocks), 'feedstock')} done")
    if modes.as_json:
        say_result([_as_json(outcome) for outcome in outcomes])
    _say_summary(outcomes, len(left), time.monotonic() - began)
    bad = {"refused", "failed", "changed"} if modes.check else {"refused", "failed"}
    if any(outcome.outcome in bad for outcome in outcomes):
        raise SystemExit(1)


def _commit_outcome(repository: Repository, done: RerenderedFeedstock, own: str, requested: str) -> None:
    from feedstock_tools.files.changes import Changes

    paths = dict.fromkeys(repository.feedstock / name for _, name in done.changes)
    commit_changes(repository, Changes(repository.feedstock, {}, seen=paths), own, requested)


def _digest(path: Path | None) -> str | None:
    return sha256(path.read_bytes()).hexdigest() if path is not None and path.is_file() else None


def _say_outcome(done: RerenderedFeedstock) -> None:
    detail = counted(len(done.changes), "file") if done.changes else done.reason.partition("\n")[0]
    say(f"{done.outcome}  {done.feedstock}{f': {detail}' if detail else ''}")


def _as_json(found: RerenderedFeedstock) -> dict[str, object]:
    return {
        "feedstock": found.feedstock,
        "outcome": found.outcome,
        "reason": found.reason,
        "changes": [{"file": name, "change": kind} for kind, name in found.changes],
        "notes": found.notes,
        "seconds": round(found.seconds, 3),
    }


def _say_summary(found: Sequence[RerenderedFeedstock], now: int, seconds: float) -> None:
    from feedstock_tools.rerender.many import OUTCOMES

    counts = Counter(each.outcome for each in found)
    parts = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    earlier = f", {len(found) - now} of them by an earlier run" if len(found) > now else ""
    say_note(f"{counted(len(found), 'feedstock')}: {parts or 'nothing to do'}{earlier}")
    if now:
        say_note(f"{now / max(seconds, 1e-9):.1f} a second")


def _refuse_mixtures(feedstock: Path, modes: _Modes) -> None:
    if modes.as_json and (modes.show_diff or modes.verify):
        raise click.UsageError("--json excludes --diff and --verify")
    if modes.is_for_git and (modes.check or modes.verify):
        raise click.UsageError("--commit and --stage exclude --check and --verify")
    if modes.commit is not None and feedstock == Path() and Path(modes.commit).is_dir():
        raise click.UsageError(f"--commit takes '{modes.commit}' for the message: write the folder before --commit")


def _rerendered(feedstock: Path, pinning: Path | None, how: _How) -> Rerender:
    from feedstock_tools.feedstock.pinned import require_what_is_asked
    from feedstock_tools.rerender import rerendering
    from feedstock_tools.rerender.smithy import chosen_rules

    release = chosen_release(how.smithy, how.rules)
    rules = chosen_rules(how.rules, release)
    result = rerendering.rerender(
        feedstock,
        pinning=pinning,
        rules=rules,
        platforms=[Platform.parse(name) for name in how.platforms] or None,
        smithy=release,
        azure_number=_azure_number(feedstock, release, rules) if how.online and release else None,
    )
    require_what_is_asked(feedstock, result, pinning)
    return result


def _azure_number(feedstock: Path, release: Release, rules: Rules) -> int | None:
    """The feedstock's number at Azure; None if conda-forge.yml has it, or with a line on stderr if Azure does not."""
    from feedstock_tools.channel.http import AZURE, build_number
    from feedstock_tools.rerender.smithy import azure_project

    place = azure_project(feedstock, release, rules)
    if place is None:
        return None
    try:
        return build_number(place.organisation, place.project, place.repository, server=AZURE)
    except WorkError as error:
        say_note(f"note: the number in README.md stays as it is: {error}")
        return None


def _say_report(report: Mapping[str, Any], *, err: bool, with_jobs: bool) -> None:
    """Print what changes, a line each, and the notes; on stderr beside a diff."""
    for change in report["changes"]:
        say(named(f"{change['change']} {change['file']}"), err=err)
    for warning in report["warnings"]:
        say_note(named(f"warning: {warning}"))
    for note in report["notes"]:
        say_note(named(f"note: {note}"))
    for job in report["stale_jobs"] if with_jobs else ():
        say(named(f"stale {job}"), err=err)


def _report(result: Rerender, changes: Changes, behind: str | None) -> dict[str, Any]:
    """The result of a rerender, before anything is written, as JSON values.

    `behind` says why the recipe is not what the spec says.
    """
    update = result.ci_files() if result.tree is None else None
    notes = result.tree.notes if result.tree is not None else result.ci_files().notes
    return {
        "rules": result.rules.name,
        "whole_tree": result.tree is not None,
        "configurations": [configuration.name for configuration in result.configurations],
        "changes": [{"file": name, "change": kind} for kind, name in changes.listed()],
        "stale_jobs": [str(job) for job in (update.stale if update else ())],
        "notes": [*(note for note in (behind, result.rules.note) if note), *notes],
        "warnings": [str(lost) for lost in result.lost_jobs()],
    }


def _verify(result: Rerender, pinning: Path | None) -> None:
    """Print how conda-smithy's files differ; exit with 1 if any does.

    Whole trees are compared if this is a whole rerender, else the rendered configurations.
    """
    from feedstock_tools.rerender import verify

    theirs, ours = verify.files_of_conda_smithy(result.feedstock, pinning), verify.files_after(result.changes())
    if verify.lacks_number(theirs):
        ours = verify.without_number(ours)
        say_note("note: conda-smithy could not look up the number at Azure; it is not compared")
    if result.tree is None or result.platforms is not None:
        theirs, ours = (
            {name: file for name, file in files.items() if _is_of(name, result)} for files in (theirs, ours)
        )
    lines = list(verify.differences(ours, theirs))
    say_diff(lines)
    same = sum(ours.get(name) == file for name, file in theirs.items())
    say_note(f"same files: {same} (conda-smithy wrote {len(theirs)}, feedstock-tools {len(ours)})")
    if lines:
        raise SystemExit(1)


def _is_of(name: str, result: Rerender) -> bool:
    """Whether a file is a configuration of one of the rendered platforms."""
    folder, _, file = name.rpartition("/")
    wanted = tuple(f"{platform.name}_" for platform in result.platforms) if result.platforms is not None else ""
    return folder == ".ci_support" and file.endswith(".yaml") and file.startswith(wanted)
