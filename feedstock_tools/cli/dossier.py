"""`feedstock-tools dossier`: the evidence that reviewers of packages built by hand ask for, in one folder."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say, say_json


@click.command("dossier", cls=Command)
@options.output("dossier in the artifacts folder", kind="folder")
@click.option("--no-packages", is_flag=True, help="Leave the packages out; their hashes stay.")
@click.option(
    "--uploaded",
    metavar="TARGET",
    help="Where the packages were published, as given to `publish`; checked there.",
)
@options.server
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.as_json
@options.configurations
@options.gathered("place", options.Place)
def command(
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
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.channel.targets import parse_target
    from feedstock_tools.cli.opening import opened_to_read
    from feedstock_tools.report.dossier import DossierOptions, make_dossier

    channel = parse_target(uploaded, server, os.environ, Path.cwd()) if uploaded else None
    workspace = opened_to_read(place)
    matrix = read_matrix(workspace, workspace.chosen(names))
    dossier = make_dossier(
        matrix,
        workspace.feedstock.folder / ".ci_support",
        (output or matrix.artifacts / "dossier").absolute(),
        os.environ,
        DossierOptions(named=bool(names), with_packages=not no_packages, uploaded=channel),
    )
    if as_json:
        say_json({**asdict(dossier), "folder": str(dossier.folder)})
        return
    number = len(dossier.configurations)
    say(f"{number} configuration{'s' if number != 1 else ''}, {dossier.packages} packages: {dossier.folder}")
    if dossier.left_out:
        say(f"Left out, since not done: {', '.join(dossier.left_out)}")
    say("Check it there with: sha256sum -c SHA256SUMS")
