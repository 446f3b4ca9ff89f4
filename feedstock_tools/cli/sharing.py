"""`feedstock-tools publish`, `dossier`, `ci` and `collect`: what this machine gives to others and gets from them."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import command
from feedstock_tools.cli.opening import read_matrix_of, tidy
from feedstock_tools.cli.printing import is_quiet, say, say_error, say_note, say_result, stream_of_logs
from feedstock_tools.feedstock.folder import find_feedstock
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.wording import counted


@command("publish")
@click.argument("target", metavar="TARGET")
@options.server
@options.dry_run
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.as_json
@options.configurations
@options.gathered("place", options.Place)
def publish(
    target: str, names: tuple[str, ...], server: str | None, dry_run: bool, place: options.Place, as_json: bool
) -> None:
    """Put complete and tested builds into a channel, each package verified by its hash.

    TARGET is a folder, file://…, s3://BUCKET/CHANNEL, anaconda:OWNER[/LABEL], prefix:CHANNEL or quetz:CHANNEL. Without
    a NAME, everything that is complete and tested is published; named configurations must be complete and tested.
    Packages that the target already has are left alone.
    """
    from feedstock_tools.builds.publish.publish import publish
    from feedstock_tools.channel.targets import parse_target
    from feedstock_tools.report.publishing import PublishLines, published_json, published_text

    channel = parse_target(target, server, os.environ, Path.cwd())
    _note_new_folder(target)
    _, matrix = read_matrix_of(place, names)
    observer = PublishLines(StringIO() if is_quiet() else stream_of_logs(as_json=as_json))
    packages = publish(matrix, channel, observer, complete_only=not names, dry_run=dry_run)
    say_result((published_json if as_json else published_text)(channel, packages))


def _note_new_folder(target: str) -> None:
    """Note that a bare word creates a folder, since `build` reads such a word as a channel's name."""
    bare = ":" not in target and not target.startswith((".", "~")) and not Path(target).is_absolute()
    if bare and not Path(target).exists():
        here = f"'{target}' means a new folder here, not a channel's name"
        say_note(f"note: {here}; ./{target} is the same without this note")


@command("dossier")
@options.output("dossier in the artifacts folder", kind="folder")
@click.option("--no-packages", is_flag=True, help="Leave the packages out; their hashes stay.")
@click.option(
    "--uploaded", metavar="TARGET", help="Where the packages were published, as given to `publish`; checked there."
)
@options.server
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.as_json
@options.configurations
@options.gathered("place", options.Place)
def dossier(
    names: tuple[str, ...],
    output: Path | None,
    no_packages: bool,
    uploaded: str | None,
    server: str | None,
    place: options.Place,
    as_json: bool,
) -> None:
    """Write logs, commit, configurations, solved environments and hashes of built packages to a folder.

    This is what conda-forge asks for when maintainers build packages themselves. The folder has a page (README.md) and
    SHA256SUMS, so that `sha256sum -c SHA256SUMS` checks everything. Every package is first verified by its hash in the
    ledger; if one is missing or differs, nothing is written. Without a NAME: all configurations that are done.
    """
    from feedstock_tools.channel.targets import parse_target
    from feedstock_tools.feedstock.configurations import in_short
    from feedstock_tools.report.dossier import DossierOptions, make_dossier

    channel = parse_target(uploaded, server, os.environ, Path.cwd()) if uploaded else None
    workspace, matrix = read_matrix_of(place, names)
    made = make_dossier(
        matrix,
        workspace.feedstock.folder / CI_SUPPORT,
        (output or matrix.artifacts / "dossier").absolute(),
        os.environ,
        DossierOptions(named=bool(names), with_packages=not no_packages, uploaded=channel),
    )
    if as_json:
        say_result(asdict(made))
        return
    say(f"{counted(len(made.configurations), 'configuration')}, {made.packages} packages: {made.folder}")
    if made.left_out:
        say(f"Left out, since not done: {', '.join(in_short(made.left_out, workspace.feedstock.folder))}")
    say("Check it there with: sha256sum -c SHA256SUMS")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The files to write, or to compare with."""

    service: str
    install: str | None
    branch: str
    check: bool


@command("ci")
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
def ci(
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
    from feedstock_tools.builds.ci import SERVICES, ci_changes, ci_files

    check = wanted.check
    services = tuple(SERVICES) if wanted.service == "both" else (wanted.service,)
    if not check:
        tidy(folder)
    texts = ci_files(folder, services, install=wanted.install, channel=channel, branch=wanted.branch)
    changes = ci_changes(folder, texts)
    if not check:
        changes.apply()
    changed = [path.relative_to(folder).as_posix() for path in changes.paths]
    missing = {name for name in changed if check and not (folder / name).exists()}
    states = {name: "missing" if name in missing else "stale" if check else "written" for name in changed}
    if as_json:
        say_result([{"file": folder / name, "state": states.get(name, "same")} for name in texts])
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
    from feedstock_tools.report.publishing import azure_lines, github_lines

    planned, left_out = ci_jobs(missing_configurations(feedstock, names, channels))
    for platform, number in left_out.items():
        say_note(f"Left out {counted(number, 'configuration')} for {platform}: no machine for it.")
    for platform in not_on_azure(planned) if service == "azure" and not as_json else ():
        say_note(f"Left out the configurations for {platform}: Azure has no machine for it.")
    in_form = github_lines if service == "github" else azure_lines
    say_result([asdict(job) for job in planned] if as_json else in_form(planned), whole=True)


@command("collect")
@click.argument(
    "folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@options.output_dir
@options.as_json
@options.feedstock
def collect(folders: tuple[Path, ...], feedstock: Path | None, output_dir: Path | None, as_json: bool) -> int:
    """Merge the builds, packages and logs of other artifacts folders, as the jobs of a CI service leave them.

    A DIR is such a folder (it has a ledger.sqlite), or contains some. Every package is first verified by its hash. A
    folder with anything wrong, such as a package that is missing or differs, or one of another feedstock, is refused
    as a whole; the others are merged, and the status is 1. Known builds are skipped, so a second call does nothing.
    """
    from feedstock_tools.builds.publish.collect import collect
    from feedstock_tools.feedstock.layout import Artifacts

    target = find_feedstock(feedstock, Path.cwd())
    artifacts = Artifacts((output_dir or target.artifacts).resolve())
    tidy(target.folder, artifacts)
    done = collect(folders, artifacts, target)
    for mistake in done.refused:
        say_error(f"error: {mistake}")
    status = 1 if done.refused else 0
    if as_json:
        say_result({**asdict(done), "refused": list(map(str, done.refused))})
        return status
    taken = f"{done.builds} builds, {done.packages} packages and {done.tests} tests merged"
    say(f"{counted(done.folders, 'folder')}: {taken}, {done.known} builds already known.")
    if done.again:
        say(f"{done.again} packages were skipped: an earlier build from the same inputs made them.")
    say(f"Ledger: {artifacts.ledger}")
    return status
