"""`feedstock-tools env`: an environment.yml that gets the GPU build of a framework, or the CPU build."""

from __future__ import annotations

from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.channels import readable
from feedstock_tools.cli.printing import say
from feedstock_tools.cli.spelling import Command

__all__ = ["command"]


@click.command("env", cls=Command)
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE...")
@options.gpu("GPU with --cuda, or if this machine has one", default=None)
@options.cuda
@options.platform("that of this machine")
@options.channels("conda-forge")
@click.option("--python", metavar="VERSION", help="Version of Python, such as 3.11.")
@click.option(
    "--virtual",
    multiple=True,
    metavar="NAME=VERSION",
    help="Virtual package of the machine: __cuda=12.4, __glibc=2.17 (repeatable).",
)
@click.option("--name", metavar="NAME", help="Name of the environment (default: made from the PACKAGEs).")
@click.option(
    "--prefix", type=click.Path(path_type=Path), metavar="DIR", help="Folder that the environment will be in."
)
@click.option("--exact", is_flag=True, help="List every package of the solution, with its build.")
@click.option("--unsolved", is_flag=True, help="Do not use the network; the environment is not solved.")
@options.output("the terminal", kind="file")
@options.as_json
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
    """Write an environment.yml that installs PACKAGEs, with the GPU or the CPU build of the frameworks among them.

    It is solved for the given platform and machine; its comments explain how to create the environment and how to check
    that it sees the GPU. Exits with 1, and the reason, if there is no such environment.
    """
    from feedstock_tools.facts import load_cuda
    from feedstock_tools.facts.frameworks import load_frameworks
    from feedstock_tools.pins.frameworks import environment_yml
    from feedstock_tools.pins.frameworks.environment import Request, environment, target_of
    from feedstock_tools.writing import write_whole

    facts = load_cuda()
    target = target_of(gpu, cuda, platform, facts)
    listed = readable(channels, [target.platform]) or ("conda-forge",)
    request = Request(packages, target, listed, python, virtual, solved=not unsolved)
    solution = environment(request, facts, load_frameworks())
    called = name or f"{request.packages[0].split('=')[0].split(' ')[0]}-{request.accelerator}"
    file = output.name if output else "environment.yml"
    form = environment_yml.as_json if as_json else environment_yml.as_yaml
    text = form(solution, name=called, prefix=prefix.absolute() if prefix else None, exact=exact, file=file).rstrip(
        "\n"
    )
    if output is None:
        say(text)
    else:
        write_whole(output, f"{text}\n")
    return 0
