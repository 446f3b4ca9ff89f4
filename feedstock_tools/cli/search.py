"""`feedstock-tools search`: the builds of a package in channels, with the CUDA toolkit of each."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("search")
@click.argument("spec")
@click.option("--channel", "channels", multiple=True, help="Name, URL or folder (repeatable); default: conda-forge.")
@click.option("--platform", help="For this platform (linux-64, win-64, …); default: that of this machine.")
@click.option("--cuda", help="Only builds of this toolkit: 11.2, or 11 for all of 11.x.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(spec: str, channels: tuple[str, ...], platform: str | None, cuda: str | None, as_json: bool) -> int:
    """List the builds of a package as `conda search` does, with the CUDA toolkit that each belongs to.

    SPEC is a name or a match specification: cudnn, 'cudnn >=8', 'cuda*'. Exits with 1 where there is none.
    """
    from feedstock_tools.pins.graph import search
    from feedstock_tools.platforms import Platform

    where = Platform.parse(platform) if platform else Platform.here()
    found = search.search(spec, channels or ("conda-forge",), where)
    if cuda:
        found = search.of_toolkit(found, cuda)
    click.echo(search.as_json(found) if as_json else search.as_table(found))
    return 0
