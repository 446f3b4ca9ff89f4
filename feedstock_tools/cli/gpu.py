"""`feedstock-tools gpu`: which builds a GPU runs natively, through PTX, or not at all."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("gpu")
@click.argument("packages", nargs=-1, metavar="[PACKAGE...]")
@click.option("--gpu", "name", help='A GPU by its name: "RTX 3080", V100; default: those of this machine.')
@click.option("--capability", help="A GPU by its compute capability: 8.6.")
@click.option("--driver", help="The driver of the named GPU's machine: 535.129.03.")
@click.option("--cuda", help="Only this toolkit: 11.0.")
@click.option("--preset", help="Judge by a named list of architectures instead of by all that a toolkit knows.")
@click.option("--channel", "channels", multiple=True, help="Where PACKAGEs are looked up; default: conda-forge.")
@click.option("--platform", help="The platform of PACKAGEs; default: that of this machine.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(
    packages: tuple[str, ...],
    name: str | None,
    capability: str | None,
    driver: str | None,
    cuda: str | None,
    preset: str | None,
    channels: tuple[str, ...],
    platform: str | None,
    as_json: bool,
) -> int:
    """Say how a GPU runs what each CUDA toolkit builds, or the builds of PACKAGEs: natively, through PTX, or not.

    Without --gpu and --capability the driver of this machine is asked for its GPUs.
    """
    from feedstock_tools.pins.gpu.report import report
    from feedstock_tools.platforms import Platform

    found = report(
        name=name,
        capability=capability,
        driver=driver,
        cuda=cuda,
        preset=preset,
        packages=packages,
        channels=channels or ("conda-forge",),
        platform=Platform.parse(platform) if platform else None,
    )
    click.echo(found.as_json() if as_json else found.as_text(single=cuda is not None and not packages))
    return 0
