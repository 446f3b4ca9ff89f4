"""`feedstock-tools status`: the state of every configuration."""

from __future__ import annotations

from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.printing import say, say_json
from feedstock_tools.cli.spelling import Command

#: Where `--serve` listens if no port is given.
_PORT = 8470


@click.command("status", cls=Command)
@options.output_dir
@options.channels("those of the configuration, else conda-forge")
@options.as_json
@options.markdown
@options.html
@options.option(
    "--serve",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=_PORT,
    metavar="[PORT]",
    meaning="Serve the page, live, to a browser on this machine until Ctrl-C",
    default_text=f"at port {_PORT}",
)
@options.configurations
@options.gathered("place", options.Place)
def command(
    names: tuple[str, ...],
    place: options.Place,
    as_json: bool,
    markdown: bool,
    html: Path | None,
    serve: int | None,
) -> None:
    """Show the build matrix: done, running, failed, interrupted, stale, missing, refused.

    It shows when and where each configuration was built, how long that took, and what has changed if it is stale. The
    HTML page is one file without external resources, with filters, logs and a picture of the builds over time. With
    --serve it follows the builds of all runs in the artifacts folder, on this machine or a fleet; end it with Ctrl-C.
    """
    options.refuse_both(as_json, markdown)
    if serve is not None:
        if as_json or markdown or html is not None:
            raise click.UsageError("--serve excludes --json, --markdown and --html")
        _serve(names, place, serve)
        return
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


def _serve(names: tuple[str, ...], place: options.Place, port: int) -> None:
    """Serve the page until Ctrl-C.

    Raises:
        InputError: there is no feedstock, or a name matches nothing.
        WorkError: the port cannot be opened.
    """
    import asyncio
    import signal
    from contextlib import suppress

    from feedstock_tools.cli.opening import opened_to_read
    from feedstock_tools.report.live.server import ADDRESS, serve
    from feedstock_tools.report.live.site import StatusSite

    workspace = opened_to_read(place)
    workspace.chosen(names)

    def ready(opened: int) -> None:
        say(f"http://{ADDRESS}:{opened}/ shows the builds of {workspace.feedstock.name}. End it with Ctrl-C.")

    async def until_interrupted() -> None:
        serving = asyncio.ensure_future(serve(StatusSite(workspace, names), port, ready))
        with suppress(NotImplementedError):  # on Windows, where Ctrl-C raises KeyboardInterrupt wherever it comes
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, serving.cancel)
        await serving

    try:
        asyncio.run(until_interrupted())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
