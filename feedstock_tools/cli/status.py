"""`feedstock-tools status`: the state of every configuration."""

from __future__ import annotations

from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.cli.spelling import Command

__all__ = ["command"]


@click.command("status", cls=Command)
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.as_json
@options.markdown
@options.html
@options.configurations
@options.gathered("place", options.Place)
def command(
    names: tuple[str, ...],
    place: options.Place,
    as_json: bool,
    markdown: bool,
    html: Path | None,
) -> None:
    """Show the build matrix: done, running, failed, interrupted, stale, missing, refused.

    It shows when, where and in what time each configuration was built, and what has changed since for a stale one. The
    HTML page is one file without external resources, with filters, logs and a picture of the builds over time.
    """
    options.refuse_both(as_json, markdown)
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.cli.opening import opened_to_read

    workspace = opened_to_read(place)
    matrix = read_matrix(workspace, workspace.chosen(names))
    if html is not None:
        from feedstock_tools.report.matrix.page import write_page

        write_page(html, matrix)
        say(f"wrote {html}", err=as_json or markdown)
    if as_json:
        from feedstock_tools.report.matrix.text import matrix_json

        say_json(matrix_json(matrix))
    elif markdown:
        from feedstock_tools.report.matrix.text import matrix_markdown

        say(matrix_markdown(matrix))
    elif html is None:
        from feedstock_tools.report.matrix.text import matrix_text

        say(matrix_text(matrix))
