"""`feedstock-tools env`: an environment.yml that gets the GPU build of a framework, or the CPU build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import completion, options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.opening import readable
from feedstock_tools.cli.printing import say

if TYPE_CHECKING:
    from feedstock_tools.pins.environments import Environment


@dataclass(frozen=True, slots=True)
class _Wish:
    """The packages, and the machine that they are for."""

    packages: tuple[str, ...]
    gpu: bool | None
    cuda: str | None
    platform: str | None
    channels: tuple[str, ...]
    python: str | None
    virtual: tuple[str, ...]
    unsolved: bool


@dataclass(frozen=True, slots=True)
class _Form:
    """How the environment is written."""

    name: str | None
    prefix: Path | None
    exact: bool
    output: Path | None
    as_json: bool

    def text_of(self, environment: Environment) -> str:
        from feedstock_tools.report.pins.environment import as_json, as_yaml

        request = environment.request
        name = self.name or f"{request.packages[0].split('=')[0].split(' ')[0]}-{request.target.accelerator}"
        prefix = self.prefix.absolute() if self.prefix else None
        file = self.output.name if self.output else "environment.yml"
        form = as_json if self.as_json else as_yaml
        return form(environment, name=name, prefix=prefix, exact=self.exact, file=file).rstrip("\n")


@click.command("env", cls=Command)
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE...", shell_complete=completion.packages)
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
@options.gathered("wish", _Wish)
@options.gathered("form", _Form)
def command(wish: _Wish, form: _Form) -> int:
    """Write an environment.yml that installs PACKAGEs, with the GPU or the CPU build of the frameworks among them.

    It is solved for the given platform and machine; its comments explain how to create the environment and how to check
    that it sees the GPU. Exits with 1, and the reason, if there is no such environment.
    """
    from feedstock_tools.facts import load_cuda
    from feedstock_tools.facts.frameworks import load_frameworks
    from feedstock_tools.files.changes import write_whole
    from feedstock_tools.pins.environments import Request, environment, target_of

    facts = load_cuda()
    target = target_of(wish.gpu, wish.cuda, wish.platform, facts)
    channels = readable(wish.channels, [target.platform]) or ("conda-forge",)
    request = Request(wish.packages, target, channels, wish.python, wish.virtual, solved=not wish.unsolved)
    text = form.text_of(environment(request, facts, load_frameworks()))
    if form.output is None:
        say(text)
    else:
        write_whole(form.output, f"{text}\n")
    return 0
