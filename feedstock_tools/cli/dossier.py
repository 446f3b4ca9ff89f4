"""`feedstock-tools dossier`: what reviewers of packages built by hand ask for, in one folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import click

__all__ = ["command"]


@click.command("dossier")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR", help="Default: dossier in the artifacts."
)
@click.option("--no-packages", is_flag=True, help="Leave the packages themselves out; their hashes stay.")
@click.option("--uploaded", metavar="TARGET", help="Where the packages were put, as `publish` takes it; it is asked.")
@click.option("--server", metavar="URL", help="With --uploaded: the service's own URL, where it is not the public one.")
@click.option("--feedstock", type=click.Path(path_type=Path), metavar="DIR", help="The feedstock (default: here).")
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="DIR", help="Default: build_artifacts in it.")
@click.option("--channel", "channels", multiple=True, metavar="CHANNEL", help="As given to the builds; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Say what was made as JSON.")
def command(
    names: tuple[str, ...],
    output: Path | None,
    no_packages: bool,
    uploaded: str | None,
    server: str | None,
    feedstock: Path | None,
    output_dir: Path | None,
    channels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write logs, commit, configurations, solved environments and hashes of what was built to a folder.

    It is what conda-forge asks for packages that maintainers build themselves. The folder holds a page (README.md) and
    SHA256SUMS, so that `sha256sum -c SHA256SUMS` checks all of it. Every package is held against its hash in the ledger
    first; nothing is written where one is missing or differs. A NAME is the name of a file in .ci_support without
    .yaml, a glob, or a short name; without one it is all configurations that are done.
    """
    from feedstock_tools.builds.matrix.matrix import open_matrix
    from feedstock_tools.channel.targets import parse_target
    from feedstock_tools.report.dossier.dossier import make_dossier

    place = parse_target(uploaded, server, os.environ, Path.cwd()) if uploaded else None
    setting, matrix = open_matrix(names, feedstock, output_dir, channels, Path.cwd(), os.environ)
    made = make_dossier(
        matrix,
        setting.feedstock.folder / ".ci_support",
        (output or matrix.artifacts / "dossier").absolute(),
        os.environ,
        named=bool(names),
        with_packages=not no_packages,
        uploaded=place,
    )
    if as_json:
        click.echo(json.dumps({**asdict(made), "folder": str(made.folder)}, indent=2))
        return
    number = len(made.configurations)
    click.echo(f"{number} configuration{'s' if number != 1 else ''}, {made.packages} packages: {made.folder}")
    if made.left_out:
        click.echo(f"Not done, and so left out: {', '.join(made.left_out)}")
    click.echo("Check it there with: sha256sum -c SHA256SUMS")
