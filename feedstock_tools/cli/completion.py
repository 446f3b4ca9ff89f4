"""`feedstock-tools completion`: the script with which a shell completes words of the command."""

from __future__ import annotations

import click

from feedstock_tools.cli.completing import PROGRAM, VARIABLE
from feedstock_tools.cli.printing import say
from feedstock_tools.cli.spelling import Command

__all__ = ["command"]

_POWERSHELL = f"""\
Register-ArgumentCompleter -Native -CommandName {PROGRAM} -ScriptBlock {{
    param($word, $line, $cursor)
    $words = @($line.CommandElements | ForEach-Object {{ $_.ToString() }})
    $env:COMP_WORDS = $words -join ' '
    $env:COMP_CWORD = if ($word) {{ $words.Count - 1 }} else {{ $words.Count }}
    $env:{VARIABLE} = 'bash_complete'
    {PROGRAM} | ForEach-Object {{
        $type, $value = $_ -split ',', 2
        if ($type -eq 'plain') {{ [System.Management.Automation.CompletionResult]::new($value) }}
    }}
    Remove-Item Env:COMP_WORDS, Env:COMP_CWORD, Env:{VARIABLE}
}}
"""


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, configurations, keys, GPUs, CUDA versions and packages.

    \b
    bash:        eval "$(feedstock-tools completion bash)"        in ~/.bashrc
    zsh:         eval "$(feedstock-tools completion zsh)"         in ~/.zshrc
    fish:        feedstock-tools completion fish > ~/.config/fish/completions/feedstock-tools.fish
    powershell:  feedstock-tools completion powershell | Out-String | Invoke-Expression   (not tried)
    """
    from click.shell_completion import get_completion_class

    if shell == "powershell":
        say(_POWERSHELL, nl=False)
        return
    if kind := get_completion_class(shell):
        say(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
