"""`feedstock-tools env`: an environment.yml that gets the GPU build of a framework, or the CPU build."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("env")
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE...")
@click.option(
    "--gpu/--cpu", "gpu", default=None, help="Which build; default: GPU with --cuda or where this machine has one."
)
@click.option("--cuda", help="For this CUDA version: 11.2; default: the newest that the machine's driver runs.")
@click.option("--platform", help="For this platform (linux-64, win-64, …); default: that of this machine.")
@click.option("--channel", "channels", multiple=True, help="Name, URL or folder (repeatable); default: conda-forge.")
@click.option("--python", help="With this version of Python: 3.11.")
@click.option(
    "--virtual", multiple=True, metavar="NAME=VERSION", help="What the machine has: __cuda=12.4, __glibc=2.17."
)
@click.option("--name", help="The name of the environment; default: made from PACKAGEs.")
@click.option("--prefix", type=click.Path(path_type=Path), help="The folder that the environment will be in.")
@click.option("--exact", is_flag=True, help="Name every package that was solved, with its build.")
@click.option("--unsolved", is_flag=True, help="Do not ask the channels: what conda finds is not known then.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with all that was solved.")
def command(
    packages: tuple[str, ...],
    gpu: bool | None,
    cuda: str | None,
    platform: str | None,
    channels: tuple[str, ...],
    python: str | None,
    virtual: tuple[str, ...],
    name: str | None,
    prefix: Path | None,
    exact: bool,
    unsolved: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Write an environment.yml that gets PACKAGEs with the GPU build, or the CPU build, of the frameworks among them.

    It is solved for the platform and the machine asked for; its comments say how to create it and how to check that the
    GPU is seen. Exits with 1 where there is none, and says why.
    """
    from feedstock_tools.facts import load_cuda
    from feedstock_tools.facts.frameworks import load_frameworks
    from feedstock_tools.pins.frameworks import environment_yml
    from feedstock_tools.pins.frameworks.environment import environment, request_of
    from feedstock_tools.writing import write_whole

    facts = load_cuda()
    request = request_of(packages, gpu, cuda, platform, channels, python, virtual, facts, solved=not unsolved)
    found = environment(request, facts, load_frameworks())
    called = name or f"{request.packages[0].split('=')[0].split(' ')[0]}-{request.accelerator}"
    file = output.name if output else "environment.yml"
    form = environment_yml.as_json if as_json else environment_yml.as_yaml
    text = form(found, name=called, prefix=prefix.absolute() if prefix else None, exact=exact, file=file).rstrip("\n")
    if output is None:
        click.echo(text)
    else:
        write_whole(output, f"{text}\n")
    return 0
