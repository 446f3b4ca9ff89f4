"""`feedstock-tools ci`: files for CI services, and the matrix that those ask for when they run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

__all__ = ["command"]


@click.command("ci")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--feedstock", type=click.Path(path_type=Path), default=".", metavar="DIR", help="Default: here.")
@click.option("--service", type=click.Choice(["github", "azure", "both"]), default="both", show_default=True)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 where a file is missing or stale.")
@click.option("--install", metavar="REQUIREMENT", help="What pip installs there (default: this version).")
@click.option("--channel", default="conda-forge", show_default=True, help="What it has is not built.")
@click.option("--branch", default="main", show_default=True, help="Build what is pushed to it, beside pull requests.")
@click.option("--matrix", type=click.Choice(["github", "azure"]), help="Print the jobs of a run in the service's form.")
@click.option("--missing", "channels", multiple=True, metavar="CHANNEL", help="With --matrix: what this channel lacks.")
def command(
    names: tuple[str, ...],
    feedstock: Path,
    service: str,
    check: bool,
    install: str | None,
    channel: str,
    branch: str,
    matrix: str | None,
    channels: tuple[str, ...],
) -> int:
    """Write a GitHub Actions workflow and an Azure pipeline that build what is not on the channel yet.

    Their first job computes the matrix when they run (with `ci --matrix`), so nothing is to be written again when the
    configurations change. conda-smithy's own CI files are left as they are. With --matrix a NAME limits the jobs to
    configurations.
    """
    from feedstock_tools.feedstock.folder import find_feedstock

    find_feedstock(feedstock, Path.cwd())
    if matrix is not None:
        from feedstock_tools.builds.ci.jobs import azure_lines, ci_jobs, github_lines, missing_configurations

        say = partial(click.echo, err=True)
        jobs = ci_jobs(missing_configurations(feedstock, names, channels), say)
        click.echo(github_lines(jobs) if matrix == "github" else azure_lines(jobs, say))
        return 0
    if names:
        raise click.UsageError("names go with --matrix: the files are for all configurations")
    from feedstock_tools.builds.ci.files import SERVICES, ci_files

    services = tuple(SERVICES) if service == "both" else (service,)
    files = ci_files(feedstock, services, install=install, channel=channel, branch=branch)
    if check:
        stale = files.stale()
        click.echo("\n".join(f"stale: {feedstock / name}" for name in stale) or "The CI files are up to date.")
        return 1 if stale else 0
    written = files.write()
    click.echo("\n".join(f"wrote {feedstock / name}" for name in written) or "The CI files are up to date.")
    return 0
