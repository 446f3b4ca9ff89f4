"""`feedstock-tools gpu`: which builds a GPU runs natively, through PTX, or not at all."""

from __future__ import annotations

import click

from feedstock_tools.cli import completion, options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.opening import readable, suggesting_stand_in
from feedstock_tools.cli.printing import say


@click.command("gpu", cls=Command)
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...", shell_complete=completion.packages)
@click.option(
    "--model",
    metavar="NAME",
    help='A GPU by its name, such as "RTX 3080" (default: those of this machine).',
    shell_complete=completion.gpus,
)
@click.option("--capability", metavar="VERSION", help="A GPU by its compute capability, such as 8.6.")
@click.option("--driver", metavar="VERSION", help="Driver of the machine with that GPU, such as 535.129.03.")
@options.cuda
@options.preset("all that a toolkit knows")
@options.channels("conda-forge")
@options.platform("that of this machine")
@options.as_json
@suggesting_stand_in()
def command(
    packages: tuple[str, ...],
    model: str | None,
    capability: str | None,
    driver: str | None,
    cuda: str | None,
    preset: str | None,
    channels: tuple[str, ...],
    platform: str | None,
    as_json: bool,
) -> int:
    """Show how a GPU runs what each CUDA toolkit builds, or the builds of PACKAGEs: natively, through PTX, or not.

    Without --model and --capability the command asks the driver of this machine for its GPUs.
    """
    from feedstock_tools.pins.judge import Question, report
    from feedstock_tools.platforms import Platform
    from feedstock_tools.report.pins.gpu import gpu_json, gpu_text

    where = Platform.parse(platform) if platform else Platform.here()
    listed = readable(channels or ("conda-forge",), [where]) if packages else ()
    judged = report(Question(model, capability, driver, cuda, preset, packages, listed, where))
    say(gpu_json(judged) if as_json else gpu_text(judged, single=cuda is not None and not packages))
    return 0
