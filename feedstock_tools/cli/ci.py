"""`feedstock-tools ci`: files for CI services, and the matrix that their runs request."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.wording import counted


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The files to write, or to compare with."""

    service: str
    install: str | None
    branch: str
    check: bool


@click.command("ci", cls=Command)
@click.option(
    "--service",
    type=click.Choice(["github", "azure", "both"]),
    default="both",
    help="Services to write for (default: both).",
)
@options.check
@click.option(
    "--install", metavar="REQUIREMENT", help="What pip installs there (default: this version of feedstock-tools)."
)
@options.missing
@click.option("--branch", metavar="NAME", default="main", help="Branch to build besides pull requests (default: main).")
@click.option(
    "--matrix", type=click.Choice(["github", "azure"]), help="Print the jobs of a run, in the service's form."
)
@options.as_json
@options.configurations
@options.gathered("wanted", _Wanted)
def command(
    names: tuple[str, ...],
    feedstock: Path | None,
    wanted: _Wanted,
    channels: tuple[str, ...],
    matrix: str | None,
    as_json: bool,
) -> int:
    """Write a GitHub Actions workflow and an Azure pipeline that build what a channel lacks.

    Their first job computes the matrix with `ci --matrix` at run time, so the files stay valid when the configurations
    change. conda-smithy's own CI files are left alone. With --matrix, NAMEs limit the jobs to these configurations.
    """
    from feedstock_tools.feedstock.folder import find_feedstock

    find_feedstock(feedstock, Path.cwd())
    folder = feedstock or Path()
    if matrix is not None:
        _print_jobs(folder, names, channels, matrix, as_json=as_json)
        return 0
    if names:
        raise click.UsageError("names need --matrix; the files are for all configurations")
    if len(channels) > 1:
        raise click.UsageError("the files take one --missing CHANNEL; several need --matrix")
    return _write_files(folder, wanted, (*channels, "conda-forge")[0], as_json=as_json)


def _write_files(folder: Path, wanted: _Wanted, channel: str, *, as_json: bool) -> int:
    """Write the files, or with --check only report those that differ; the exit status is then 1 if any does."""
    from feedstock_tools.builds.ci import SERVICES, ci_files

    check = wanted.check
    services = tuple(SERVICES) if wanted.service == "both" else (wanted.service,)
    if not check:
        tidy(folder)
    files = ci_files(folder, services, install=wanted.install, channel=channel, branch=wanted.branch)
    changed = files.stale() if check else files.write()
    missing = {name for name in changed if check and not (folder / name).exists()}
    states = {name: "missing" if name in missing else "stale" if check else "written" for name in changed}
    if as_json:
        say_json([{"file": str(folder / name), "state": states.get(name, "same")} for name in files.texts])
    else:
        words = {"missing": "missing:", "stale": "stale:", "written": "wrote"}
        lines = [f"{words[state]} {folder / name}" for name, state in states.items()]
        say("\n".join(lines) or "The CI files are up to date.")
    return 1 if check and changed else 0


def _print_jobs(
    feedstock: Path, names: tuple[str, ...], channels: tuple[str, ...], service: str, *, as_json: bool
) -> None:
    """Print the jobs that build what the channels lack, in the form of a service or as JSON."""
    from feedstock_tools.builds.ci import ci_jobs, missing_configurations, not_on_azure
    from feedstock_tools.report.ci import azure_lines, github_lines

    planned, left_out = ci_jobs(missing_configurations(feedstock, names, channels))
    for platform, number in left_out.items():
        say(f"Left out {counted(number, 'configuration')} for {platform}: no machine for it.", err=True)
    for platform in not_on_azure(planned) if service == "azure" and not as_json else ():
        say(f"Left out the configurations for {platform}: Azure has no machine for it.", err=True)
    if as_json:
        say_json([asdict(job) for job in planned])
    else:
        say(github_lines(planned) if service == "github" else azure_lines(planned))
