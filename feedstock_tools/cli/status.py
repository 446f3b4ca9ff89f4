"""`feedstock-tools status`: what is done and what is not, of every configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

__all__ = ["command"]


@click.command("status")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--feedstock", type=click.Path(path_type=Path), metavar="DIR", help="The feedstock (default: here).")
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="DIR", help="Default: build_artifacts in it.")
@click.option("--channel", "channels", multiple=True, metavar="CHANNEL", help="As given to the builds; repeatable.")
@click.option("--json", "form", flag_value="json", help="As JSON, with every package and its build.")
@click.option("--markdown", "form", flag_value="markdown", help="As a Markdown table, to paste into an issue.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page.")
def command(
    names: tuple[str, ...],
    feedstock: Path | None,
    output_dir: Path | None,
    channels: tuple[str, ...],
    form: str | None,
    html: Path | None,
) -> None:
    """Show the build matrix: done, running, failed, interrupted, stale, missing, refused.

    Says when, where and in what time each configuration was built, and of a stale one what has changed since. A NAME is
    the name of a file in .ci_support without .yaml, a glob over those names, or a short name such as linux_64_cuda11.2.
    The HTML page is one file that fetches nothing, with filters, logs and a picture of the builds over time.
    """
    from feedstock_tools.builds.matrix.matrix import open_matrix

    _, matrix = open_matrix(names, feedstock, output_dir, channels, Path.cwd(), os.environ)
    if html is not None:
        from feedstock_tools.report.matrix.page import write_page

        write_page(html, matrix)
        click.echo(f"wrote {html}", err=form is not None)
    if form == "json":
        from feedstock_tools.report.matrix.text import matrix_json

        click.echo(json.dumps(matrix_json(matrix), indent=2))
    elif form == "markdown":
        from feedstock_tools.report.matrix.text import matrix_markdown

        click.echo(matrix_markdown(matrix))
    elif html is None:
        from feedstock_tools.report.matrix.text import matrix_text

        click.echo(matrix_text(matrix))
