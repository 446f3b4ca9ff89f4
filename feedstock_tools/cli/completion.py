"""`feedstock-tools completion`: the script with which a shell completes words of the command."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from feedstock_tools.cli.completing import PROGRAM, VARIABLE
from feedstock_tools.cli.printing import say
from feedstock_tools.cli.spelling import Command

_SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, configurations, keys, GPUs, CUDA versions and packages.

    \b
    bash:  eval "$(feedstock-tools completion bash)"        in ~/.bashrc
    zsh:   eval "$(feedstock-tools completion zsh)"         in ~/.zshrc
    fish:  feedstock-tools completion fish > ~/.config/fish/completions/feedstock-tools.fish
    """
    say(_SHELLS[shell](context.find_root().command, {}, PROGRAM, VARIABLE).source(), nl=False)
