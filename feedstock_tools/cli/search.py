"""`feedstock-tools search`: the builds of a package in channels, with the CUDA toolkit of each."""

from __future__ import annotations

import click

from feedstock_tools.cli import completion, options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.opening import readable, suggesting_stand_in
from feedstock_tools.cli.printing import say


@click.command("search", cls=Command)
@click.argument("spec", shell_complete=completion.packages)
@options.channels("conda-forge")
@options.platform("that of this machine")
@options.cuda
@options.as_json
@suggesting_stand_in()
def command(spec: str, channels: tuple[str, ...], platform: str | None, cuda: str | None, as_json: bool) -> int:
    """List the builds of a package as `conda search` does, with the CUDA toolkit of each.

    SPEC is a name or a match specification: cudnn, 'cudnn >=8', 'cuda*'. Exits with 1 if there are no such builds.
    """
    from feedstock_tools.pins.channels import of_toolkit, search
    from feedstock_tools.platforms import Platform
    from feedstock_tools.report.pins.channel import found_json, found_table

    where = Platform.parse(platform) if platform else Platform.here()
    builds = search(spec, readable(channels or ("conda-forge",), [where]), where)
    if cuda:
        builds = of_toolkit(builds, cuda)
    say(found_json(builds) if as_json else found_table(builds))
    return 0
