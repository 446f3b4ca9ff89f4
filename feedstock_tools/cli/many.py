"""`feedstock-tools many`: a folder of feedstocks, read into an index."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import click

from feedstock_tools.bounds.limits import released
from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.fetched import chosen_release, required_pinning, version_of_pinning
from feedstock_tools.cli.printing import say, say_error, say_note, say_result, write_page
from feedstock_tools.stages import stage
from feedstock_tools.wording import counted, duration, table, time_of

_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
_INDEX = options.option(
    "--index",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    meaning="The index",
    default_text=".feedstock-tools-index.sqlite in DIR",
)


@click.group("many", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def many() -> None:
    """Read a folder of feedstocks into an index, and ask it.

    DIR has clones, bare snapshots (OWNER+NAME/repo), or the folders of one repository. Of a repository the last commit
    counts.
    """


@many.command("index", short_help="Read what is new in a folder of feedstocks.")
@_FOLDER
@_INDEX
@options.jobs
@options.strict
@options.as_json
def index(folder: Path, file: Path | None, jobs: int, strict: bool, as_json: bool) -> int:
    """Read each feedstock of DIR whose files have changed since the last time, and forget those that are gone.

    An interrupted run goes on where it ended. A feedstock that cannot be rendered is named with the reason.
    """
    from feedstock_tools.check.findings import Check, checks_line, checks_values, verdict_of
    from feedstock_tools.many.index import INDEX, opened_index
    from feedstock_tools.report.many import reading_checks

    began, counts, refused = time.monotonic(), Counter[str](), dict[str, str]()
    path = file or folder / INDEX
    with released(), opened_index(path, make=folder.is_dir()) as found:
        for each in found.update(folder, jobs):
            counts[each.outcome] += 1
            if each.reason:
                refused[each.name] = each.reason
            stage(f"many index: {counted(counts.total(), 'feedstock')} done")
        known = found.find()
    left = refused.keys() - {each.name for each in known}
    checks = (*reading_checks(known), *(Check.of(name, wrong=False, unknown=refused[name]) for name in sorted(left)))
    for name, reason in sorted(refused.items()):
        say_error(f"{name}: {reason}")
    if as_json:
        say_result(
            {
                **checks_values(checks),
                "index": str(path),
                **{word: counts[word] for word in ("read", "unchanged", "gone", "refused")},
                "reasons": refused,
            }
        )
        return options.status_of(verdict_of(checks), strict=strict)
    said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    say(checks_line(checks, "reading"))
    say(
        f"{counted(counts.total(), 'feedstock')}: {said or 'none found'}; {path.stat().st_size / 1e6:.1f} MB in {path}."
    )
    say_note(f"{duration(time.monotonic() - began)}")
    return options.status_of(verdict_of(checks), strict=strict)


@many.command("list", short_help="List the feedstocks that use a key, a package or CUDA.")
@_FOLDER
@_INDEX
@options.option("--key", metavar="KEY", meaning="Those with a job that uses this key of variants, such as openssl")
@options.option("--depends", metavar="PACKAGE", meaning="Those with a package that requires this one")
@options.option("--makes", metavar="PACKAGE", meaning="Those that make this package")
@options.option("--cuda-jobs", "cuda", is_flag=True, meaning="Those with CUDA jobs")
@options.option("--recipe", "form", type=click.Choice(["meta.yaml", "recipe.yaml"]), meaning="Those with this recipe")
@options.strict
@options.as_json
def list_(
    folder: Path,
    file: Path | None,
    key: str | None,
    depends: str | None,
    makes: str | None,
    cuda: bool,
    form: str | None,
    strict: bool,
    as_json: bool,
) -> int:
    """List the indexed feedstocks of DIR that meet all of the given conditions.

    What jobs use is what the last rerender of the feedstock wrote into `.ci_support`; what packages require is what the
    recipe renders to for these jobs. Of a feedstock that could not be read, none of this is known.
    """
    from feedstock_tools.check.findings import checks_line, checks_values, verdict_of
    from feedstock_tools.many.index import INDEX, opened_index
    from feedstock_tools.report.many import reading_checks

    with opened_index(file or folder / INDEX) as found:
        feedstocks = found.find(key=key, depends=depends, makes=makes, cuda=cuda, form=form)
        checks = reading_checks(found.find())
    status = options.status_of(verdict_of(checks), strict=strict)
    if as_json:
        names = ("name", "format", "providers", "jobs", "cuda", "error")
        listed = [{name: getattr(each, name) for name in names} for each in feedstocks]
        say_result({**checks_values(checks), "feedstocks": listed})
        return status
    say(checks_line(checks, "reading"))
    rows = [
        (each.name, each.format or "?", str(each.jobs), str(each.cuda), " ".join(each.providers)) for each in feedstocks
    ]
    if rows:
        say(table(("feedstock", "recipe", "jobs", "CUDA", "providers"), rows, right=frozenset({2, 3})))
    say_note(counted(len(rows), "feedstock"))
    return status


@many.command("impact", short_help="Show which feedstocks a change of the pinning rebuilds, and in which order.")
@_FOLDER
@click.argument("before")
@click.argument("after")
@_INDEX
@options.jobs
@options.option("--every", is_flag=True, meaning="Render every feedstock again, as a check")
@options.option("--job-time", metavar="TIME", default="1 h", meaning="Time of a job, for the sum", default_text="1 h")
@options.option(
    "--job-times",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    meaning="Times of jobs by feedstock, FEEDSTOCK/JOB or globs, such as `pytorch*: 3 h`",
)
@options.strict
@options.html
@options.markdown
@options.as_json
def impact(
    folder: Path,
    before: str,
    after: str,
    file: Path | None,
    jobs: int,
    every: bool,
    job_time: str,
    job_times: Path | None,
    strict: bool,
    html: Path | None,
    markdown: bool,
    as_json: bool,
) -> int:
    """Show what becomes of the indexed feedstocks of DIR when the pinning BEFORE becomes AFTER.

    BEFORE and AFTER are folders laid out as the conda-forge-pinning package, its feedstock, or its variant file; or
    CLONE@REVISION of a clone of its feedstock, such as a pull request's branch. AFTER may be a migration, which is
    added to BEFORE. Only feedstocks that could change are rendered again: those that mention a changed key, one zipped
    with it, or have a migration that changed.
    """
    from feedstock_tools.check.findings import verdict_of
    from feedstock_tools.many.impact import impact as impact_of
    from feedstock_tools.many.index import INDEX, opened_index
    from feedstock_tools.report.many import (
        JobTimes,
        impact_checks,
        impact_json,
        impact_markdown,
        impact_page,
        impact_text,
    )

    options.refuse_both(as_json, markdown)
    given: dict[str, float] = {}
    if job_times:
        from feedstock_tools.builds.fleet import read_times

        given = read_times(job_times)
    times = JobTimes(given, time_of(job_time))
    with released(), opened_index(file or folder / INDEX) as found, _pinning(before) as old, _pinning(after) as new:
        result = impact_of(found, old, new, every=every, jobs=jobs)
    if html is not None:
        write_page(html, impact_page(result, times), beside=as_json or markdown)
    if html is None or as_json or markdown:
        say_result(
            (impact_json if as_json else impact_markdown if markdown else impact_text)(result, times), whole=markdown
        )
    return options.status_of(verdict_of(impact_checks(result)), strict=strict)


@dataclass(frozen=True, slots=True)
class _Which:
    """Which feedstocks to migrate: only some, not some, up to a number."""

    only: tuple[str, ...]
    exclude: tuple[str, ...]
    limit: int | None

    def of(self, names: Iterable[str]) -> tuple[str, ...]:
        found = (name for name in names if name not in self.exclude and (not self.only or name in self.only))
        return tuple(islice(found, self.limit))


@dataclass(frozen=True, slots=True)
class _How:
    """What a rerender follows."""

    pinning: str | None
    rules: str | None
    smithy: str | None


@many.command("migrate", short_help="Commit a migration to the feedstocks that need it, one branch in each.")
@_FOLDER
@click.argument("migration", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_INDEX
@options.pinning
@options.offline
@options.rules
@options.smithy
@options.option(
    "--new-branch", "branch", metavar="NAME", meaning="Name of the new branches", default_text="the migration's"
)
@options.option("--only", metavar="NAME", repeatable=True, meaning="Only this feedstock")
@options.option("--exclude", metavar="NAME", repeatable=True, meaning="Not this feedstock")
@options.option(
    "--first", "limit", type=click.IntRange(1), metavar="N", meaning="Only the first N in the order of rebuilding"
)
@options.jobs
@options.dry_run
@options.strict
@options.as_json
@options.gathered("how", _How)
@options.gathered("which", _Which)
def migrate(
    folder: Path,
    migration: Path,
    file: Path | None,
    branch: str | None,
    how: _How,
    which: _Which,
    jobs: int,
    dry_run: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Lay the migration in a file on the indexed feedstocks of DIR whose jobs it changes, in the order of rebuilding.

    In each clone, a new branch gets one commit on the last one: the migration, the raised build number and the
    rerender, with conda-smithy's message and the jobs that change. Work trees stay as they are; nothing is pushed. A
    feedstock that has the branch is done, so an interrupted run goes on.
    """
    from feedstock_tools.check.findings import checks_line, checks_values, verdict_of
    from feedstock_tools.many.impact import impact as impact_of
    from feedstock_tools.many.index import INDEX, opened_index
    from feedstock_tools.many.migrate import Laid, Plan
    from feedstock_tools.many.migrate import migrate as each_laid
    from feedstock_tools.report.many import impact_checks
    from feedstock_tools.rerender.many import read_migration
    from feedstock_tools.rerender.smithy import chosen_rules

    pinning = required_pinning(how.pinning, Path(os.devnull))
    if pinning is None:
        raise click.UsageError("a migration changes what a pinning says: name one with --pinning")
    release = chosen_release(how.smithy, how.rules)
    rules = chosen_rules(how.rules, release)
    version = version_of_pinning(pinning)
    plan = Plan(read_migration(migration), pinning, rules, branch or migration.stem, release, version)
    with released(), opened_index(file or folder / INDEX) as index:
        found = impact_of(index, pinning, migration, jobs=jobs)
        names = which.of(name for layer in found.layers for name in layer)
        refused = {each.name: each.error for each in found.failed}
        laid = [Laid(name, "refused", refused[name]) for name in which.of(refused)]
        if dry_run:
            laid += [Laid(name, "needed") for name in names]
        for each in () if dry_run else each_laid(index, names, plan, os.environ, jobs=jobs):
            laid.append(each)
            stage(f"many migrate: {len(laid)} of {counted(len(names), 'feedstock')} done")
    checks = impact_checks(found)
    if as_json:
        say_result({"feedstocks": [asdict(each) for each in laid], **checks_values(checks)})
    else:
        say(checks_line(checks, "rendering"))
        if laid:
            say(table(("feedstock", "outcome", ""), [(each.name, each.outcome, each.detail) for each in laid]))
    counts = Counter(each.outcome for each in laid)
    say_note(f"{counted(len(laid), 'feedstock')}: {', '.join(f'{counts[each]} {each}' for each in sorted(counts))}")
    return 1 if counts["refused"] else options.status_of(verdict_of(checks), strict=strict)


def _pinning(named: str) -> AbstractContextManager[Path]:
    """A folder or file, or what a revision of a clone has."""
    from feedstock_tools.feedstock.git import checked_out

    clone, _, revision = named.rpartition("@")
    if clone and not Path(named).exists():
        return checked_out(Path(clone), revision)
    return nullcontext(Path(named))
