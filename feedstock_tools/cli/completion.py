"""`feedstock-tools completion`: the script with which a shell completes words of the command."""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

from feedstock_tools.cli.printing import say
from feedstock_tools.cli.spelling import Command

# Each script passes the line up to the cursor on, and gets lines of three parts between tabs: plain, dir or file; the
# word; what it means. No space follows a word that ends with `=`.

# bash completes what follows the last of its word breaks, `=` and `:` among them, so that what precedes is cut off.
_BASH = r"""_feedstock_tools_completion() {
    local line="${COMP_LINE:0:COMP_POINT}" kind value help word breaks cut=
    word="${line##*[[:space:]]}"
    breaks="${COMP_WORDBREAKS//[^=:]/}"
    [[ -z "$breaks" ]] || cut="${word%"${word##*[$breaks]}"}"
    COMPREPLY=()
    while IFS=$'\t' read -r kind value help; do
        case "$kind" in
            plain) COMPREPLY+=("${value#"$cut"}") ;;
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
        esac
    done < <(env _FEEDSTOCK_TOOLS_LINE="$line" _FEEDSTOCK_TOOLS_COMPLETE=words_complete "$1")
    [[ "${COMPREPLY[0]}" != *= ]] || compopt -o nospace
}

complete -o nosort -F _feedstock_tools_completion feedstock-tools
"""

_ZSH = r"""#compdef feedstock-tools

_feedstock_tools_completion() {
    local -a plain open described
    local line="${(j: :)words[1,CURRENT-1]} $PREFIX" kind value help
    while IFS=$'\t' read -r kind value help; do
        case "$kind" in
            plain)
                if [[ -n "$help" ]]; then
                    described+=("${value//:/\\:}:$help")
                elif [[ "$value" == *= ]]; then
                    open+=("$value")
                else
                    plain+=("$value")
                fi ;;
            dir) [[ "$PREFIX" != --*=* ]] || compset -P '--*='; _path_files -/ ;;
            file) [[ "$PREFIX" != --*=* ]] || compset -P '--*='; _path_files ;;
        esac
    done < <(env _FEEDSTOCK_TOOLS_LINE="$line" _FEEDSTOCK_TOOLS_COMPLETE=words_complete feedstock-tools)
    (( ! $#described )) || _describe -V unsorted described
    (( ! $#plain )) || compadd -V unsorted -a plain
    (( ! $#open )) || compadd -V unsorted -S '' -a open
}

if [[ "${zsh_eval_context[-1]}" == loadautofunc ]]; then
    _feedstock_tools_completion "$@"
else
    compdef _feedstock_tools_completion feedstock-tools
fi
"""

_FISH = r"""function _feedstock_tools_completion
    set -l line (commandline -cp)
    env _FEEDSTOCK_TOOLS_LINE="$line" _FEEDSTOCK_TOOLS_COMPLETE=words_complete feedstock-tools | \
            while read -l -d \t kind value help
        set -l option (string match -r -- '^--[^=]*=' $value)
        set -l path (string replace -- "$option" '' $value)
        switch $kind
            case plain
                printf '%s\t%s\n' $value "$help"
            case dir
                printf "$option%s\n" (__fish_complete_directories $path)
            case file
                printf "$option%s\n" (__fish_complete_path $path)
        end
    end
end

complete --no-files --keep-order --command feedstock-tools --arguments '(_feedstock_tools_completion)'
"""

_POWERSHELL = r"""Register-ArgumentCompleter -Native -CommandName feedstock-tools -ScriptBlock {
    param($word, $line, $cursor)
    $env:_FEEDSTOCK_TOOLS_LINE = if ($word) { $line.ToString() } else { $line.ToString() + ' ' }
    $env:_FEEDSTOCK_TOOLS_COMPLETE = 'words_complete'
    feedstock-tools | ForEach-Object {
        $kind, $value, $help = $_ -split "`t", 3
        if ($kind -eq 'plain') { [System.Management.Automation.CompletionResult]::new($value) }
    }
    Remove-Item Env:_FEEDSTOCK_TOOLS_LINE, Env:_FEEDSTOCK_TOOLS_COMPLETE
}
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH, "powershell": _POWERSHELL}


@add_completion_class
class Words(ShellComplete):
    """The words for a line, in the form that the scripts above read; those of click know no `=` within words."""

    name = "words"

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one at the cursor, and that one."""
        line = os.environ.get("_FEEDSTOCK_TOOLS_LINE", "")
        words = split_arg_string(line)[1:]
        return (words, "") if not words or line[-1].isspace() else (words[:-1], words[-1])

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """The words; those for the value in `--option=value` begin with the option."""
        found = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if not (equals and option.startswith("--")):
            return found
        return [CompletionItem(f"{option}={item.value}", item.type, item.help) for item in found]

    def format_completion(self, item: CompletionItem[str]) -> str:
        """A line of the answer."""
        return f"{item.type}\t{item.value}\t{' '.join((item.help or '').split())}"


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(list(_SCRIPTS)))
def command(shell: str) -> None:
    """Print the script that completes commands, options, configurations, keys, GPUs, CUDA versions and packages.

    \b
    bash:        eval "$(feedstock-tools completion bash)"        in ~/.bashrc
    zsh:         eval "$(feedstock-tools completion zsh)"         in ~/.zshrc
    fish:        feedstock-tools completion fish > ~/.config/fish/completions/feedstock-tools.fish
    powershell:  feedstock-tools completion powershell | Out-String | Invoke-Expression   (not tried)
    """
    say(_SCRIPTS[shell], nl=False)
