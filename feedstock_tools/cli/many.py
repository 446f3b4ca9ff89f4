"""`feedstock-tools many`: a folder of feedstocks, read into an index."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import click

from feedstock_tools.bounds.limits import released
from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.printing import say, say_error, say_note, say_result
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
@options.as_json
def index(folder: Path, file: Path | None, jobs: int, as_json: bool) -> None:
    """Read each feedstock of DIR whose files have changed since the last time, and forget those that are gone.

    An interrupted run goes on where it ended. A feedstock that cannot be rendered is named with the reason.
    """
    from feedstock_tools.many.index import INDEX, opened_index

    began, counts, refused = time.monotonic(), Counter[str](), dict[str, str]()
    path = file or folder / INDEX
    with released(), opened_index(path, make=folder.is_dir()) as found:
        for each in found.update(folder, jobs):
            counts[each.outcome] += 1
            if each.reason:
                refused[each.name] = each.reason
            stage(f"many index: {counted(counts.total(), 'feedstock')} done")
    for name, reason in sorted(refused.items()):
        say_error(f"{name}: {reason}")
    if as_json:
        say_result(
            {
                "index": str(path),
                **{word: counts[word] for word in ("read", "unchanged", "gone", "refused")},
                "reasons": refused,
            }
        )
        return
    said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    say(
        f"{counted(counts.total(), 'feedstock')}: {said or 'none found'}; {path.stat().st_size / 1e6:.1f} MB in {path}."
    )
    say_note(f"{duration(time.monotonic() - began)}")


@many.command("list", short_help="List the feedstocks that use a key, a package or CUDA.")
@_FOLDER
@_INDEX
@options.option("--key", metavar="KEY", meaning="Those with a job that uses this key of variants, such as openssl")
@options.option("--depends", metavar="PACKAGE", meaning="Those with a package that requires this one")
@options.option("--makes", metavar="PACKAGE", meaning="Those that make this package")
@options.option("--cuda-jobs", "cuda", is_flag=True, meaning="Those with CUDA jobs")
@options.option("--recipe", "form", type=click.Choice(["meta.yaml", "recipe.yaml"]), meaning="Those with this recipe")
@options.as_json
def list_(
    folder: Path,
    file: Path | None,
    key: str | None,
    depends: str | None,
    makes: str | None,
    cuda: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """List the indexed feedstocks of DIR that meet all of the given conditions.

    What jobs use is what the last rerender of the feedstock wrote into `.ci_support`; what packages require is what the
    recipe renders to for these jobs.
    """
    from feedstock_tools.many.index import INDEX, opened_index

    with opened_index(file or folder / INDEX) as found:
        feedstocks = found.find(key=key, depends=depends, makes=makes, cuda=cuda, form=form)
    if as_json:
        names = ("name", "format", "providers", "jobs", "cuda", "error")
        say_result([{name: getattr(each, name) for name in names} for each in feedstocks])
        return
    rows = [
        (each.name, each.format or "?", str(each.jobs), str(each.cuda), " ".join(each.providers)) for each in feedstocks
    ]
    if rows:
        say(table(("feedstock", "recipe", "jobs", "CUDA", "providers"), rows, right=frozenset({2, 3})))
    say_note(counted(len(rows), "feedstock"))


@many.command("impact", short_help="Show which feedstocks a change of the pinning rebuilds, and in which order.")
@_FOLDER
@click.argument("before", type=click.Path(path_type=Path, exists=True))
@click.argument("after", type=click.Path(path_type=Path, exists=True))
@_INDEX
@options.jobs
@options.option("--every", is_flag=True, meaning="Render every feedstock again, as a check")
@options.option("--job-time", metavar="TIME", default="1 h", meaning="Time of a job, for the sum", default_text="1 h")
@options.as_json
def impact(
    folder: Path, before: Path, after: Path, file: Path | None, jobs: int, every: bool, job_time: str, as_json: bool
) -> None:
    """Show what becomes of the indexed feedstocks of DIR when the pinning BEFORE becomes AFTER.

    BEFORE and AFTER are folders laid out as the conda-forge-pinning package, its feedstock, or its variant file. Only
    feedstocks that could change are rendered again: those that mention a changed key, one zipped with it, or have a
    migration that changed.
    """
    from feedstock_tools.many.impact import impact as impact_of
    from feedstock_tools.many.index import INDEX, opened_index
    from feedstock_tools.report.many import impact_json, impact_text

    seconds = time_of(job_time)
    with released(), opened_index(file or folder / INDEX) as found:
        result = impact_of(found, before, after, every=every, jobs=jobs)
    say_result((impact_json if as_json else impact_text)(result, seconds))
