"""`feedstock-tools status`: the state of every configuration."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NoReturn

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.errors import FeedstockError

#: Between two readings of the matrix: this time in seconds, and this multiple of the time that a reading takes.
_PAUSE, _REST = 2.0, 10.0


@click.command("status", cls=Command)
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.as_json
@options.markdown
@options.html
@options.option("--watch", is_flag=True, meaning="Write the page of --html again and again until Ctrl-C")
@options.configurations
@options.gathered("place", options.Place)
def command(
    names: tuple[str, ...],
    place: options.Place,
    as_json: bool,
    markdown: bool,
    html: Path | None,
    watch: bool,
) -> None:
    """Show the build matrix: done, running, failed, interrupted, stale, missing, refused.

    It shows when and where each configuration was built, how long that took, and what has changed if it is stale. The
    HTML page is one file without external resources, with filters, logs and a picture of the builds over time. With
    --watch it follows the builds of all runs in the artifacts folder, on this machine or a fleet, and an open page
    reloads itself; end it with Ctrl-C.
    """
    options.refuse_both(as_json, markdown)
    if watch:
        if html is None or as_json or markdown:
            raise click.UsageError("--watch needs --html FILE, and excludes --json and --markdown")
        _watch(names, place, html)
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


def _watch(names: tuple[str, ...], place: options.Place, html: Path) -> NoReturn:
    """Write the page with what goes on until Ctrl-C; the last one stays while the feedstock cannot be read.

    Raises:
        FeedstockError: the first page cannot be made or written.
    """
    _write_followed(names, place, html)
    say(f"{html} shows the builds as they go on: open it in a browser. End this with Ctrl-C.")
    refusal, took = "", 0.0
    while True:
        time.sleep(max(_PAUSE, _REST * took))
        began = time.monotonic()
        try:
            _write_followed(names, place, html)
            refusal = ""
        except FeedstockError as error:  # somebody may be editing the recipe
            if str(error) != refusal:
                say(f"the page stays as it was: {error}", err=True)
            refusal = str(error)
        took = time.monotonic() - began


def _write_followed(names: tuple[str, ...], place: options.Place, html: Path) -> None:
    from feedstock_tools.builds.matrix.live import read_runs
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.cli.opening import opened_to_read
    from feedstock_tools.report.matrix.page import write_page

    workspace = opened_to_read(place)
    write_page(html, read_matrix(workspace, workspace.chosen(names)), read_runs(workspace.artifacts))
