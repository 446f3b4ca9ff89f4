"""The program: the group of all commands, and how a command ends."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from errno import ELOOP
from io import StringIO
from keyword import iskeyword
from pathlib import Path
from typing import NoReturn

import click

from feedstock_tools import __version__
from feedstock_tools.bounds.limits import LIFTING, READING, SOLVING, VARIABLE, Bounds, widen
from feedstock_tools.bounds.supervision import hold
from feedstock_tools.cli import completion, interruption
from feedstock_tools.cli.commands import Group, refuse_unknown
from feedstock_tools.cli.completion import PROGRAM
from feedstock_tools.cli.printing import no_signs, pulse_with, say, say_error, say_note
from feedstock_tools.cli.progress import Pulse
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.files.locks import tell_with
from feedstock_tools.stages import listen

#: Commands that read a feedstock, and those that also read channels and packages.
_READING = frozenset({"generate", "rerender", "outputs", "why", "plan", "status", "ci", "diff", "lint", "many"})
_SOLVING = frozenset({"pinning", "smithy", "cuda", "edit", "import", "rehearse", "review", "dossier", "collect"})

#: Section of `--help` → command → its description.
MENU = {
    "Make": {
        "init": "Write a first spec for a project: a folder, a git repository or a name on PyPI.",
        "generate": "Write the recipe and variant files that a spec describes.",
        "import": "Write the spec of a recipe that people wrote, and compare what both make.",
        "edit": "Change a recipe that people wrote: version, requirements, maintainers.",
        "rerender": "Write .ci_support and CI files from recipe, pinning and migrations, as conda-smithy does.",
        "pinning": "Show, fetch and update conda-forge's pinning.",
        "smithy": "Fetch and list releases of conda-smithy, for whole rerenders.",
    },
    "Ask": {
        "outputs": "List the packages that configurations will build, hashes included.",
        "why": "Explain where the values of a configuration come from, and what uses a key.",
        "cuda": "Ask what runs on which GPU, and which CUDA, libraries, compilers and drivers go together.",
        "many": "Index many feedstocks, and ask which use a key, a package or CUDA.",
    },
    "Check and build": {
        "diff": "Compare what two commits or folders build: jobs, packages, requirements, tests.",
        "review": "Review a branch as one comment: what changes for users, and what must be mended.",
        "lint": "Find mistakes in a recipe that conda-forge's linter does not see.",
        "rehearse": "Solve every environment of configurations, and show which builds users would get.",
        "plan": "Show what a build would do: order, needs, time.",
        "build": "Build configurations and record each build.",
        "fleet": "Build on other machines: make a fleet, serve in it, see what it does.",
        "test": "Run the tests of built packages again, here or on a GPU, and their benchmarks.",
        "status": "Show which configurations are built and which are not: table, Markdown, JSON, HTML page.",
    },
    "Share": {
        "publish": "Put built packages into a channel: a folder, S3, anaconda.org, prefix.dev, quetz.",
        "dossier": "Collect logs, configurations, environments and hashes of built packages, for reviewers.",
        "ci": "Write workflows for GitHub Actions and Azure that build what a channel lacks.",
        "collect": "Merge the ledgers and channels that several machines made into one.",
        "clean": "Show and remove caches, work folders, leftovers and old environments.",
    },
}
COMMANDS = {name: help_text for commands in MENU.values() for name, help_text in commands.items()}
#: Module → the commands that it defines, each by its name. It is imported when one of them runs.
_MODULES = {
    "build": "build",
    "checks": "diff review lint rehearse",
    "clean": "clean",
    "cuda": "cuda",
    "edit": "edit",
    "fetched": "pinning smithy",
    "fleet": "fleet",
    "many": "many",
    "matrix": "plan status",
    "rerender": "rerender",
    "sharing": "publish dossier ci collect",
    "spec": "init import generate",
    "test": "test",
    "why": "why outputs",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
_PLATFORMS = ("linux_", "osx_", "win_")


class _Commands(Group):
    """A group that imports a command only when it is called, not to list it: start-up is a feature."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"feedstock_tools.cli.{_MODULE_OF[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for a subcommand or the name of a configuration, the error has the whole command."""
        if args and args[0] not in COMMANDS:
            groups = [name for name in COMMANDS if args[0] in getattr(self.get_command(ctx, name), "commands", ())]
            if groups:
                whole = " or ".join(f"'{PROGRAM} {group} {args[0]}'" for group in groups)
                refuse_unknown(ctx, args[0], (), f" Did you mean {whole}?")
            if args[0].startswith(_PLATFORMS):
                refuse_unknown(ctx, args[0], (), f" To build a configuration: feedstock-tools build {args[0]}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in MENU.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])


@click.group(cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=completion.print_script,
    help="Print the script with which a shell completes words of this command, and exit.",
)
@click.pass_context
def _group(context: click.Context) -> None:
    """Generate, rerender, check and build the CPU and GPU packages of a conda-forge feedstock."""
    if context.invoked_subcommand is None:
        say(context.get_help())


def main() -> NoReturn:
    """The entry point `feedstock-tools`."""
    run(_group, PROGRAM, bounds=bounds_of(_name(sys.argv[1:]), sys.argv[1:]))


def _name(arguments: Sequence[str]) -> str:
    """The command among the arguments: the first one that is neither an option of all commands nor its value."""
    words = iter(arguments)
    for word in words:
        if word == "--color":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def bounds_of(name: str, arguments: Sequence[str]) -> Bounds | None:
    """The bounds of a whole command, also of its completion in a shell; None for one that builds, tests, publishes or
    goes on until Ctrl-C, which bounds only its reading."""
    if completion.VARIABLE in os.environ or name in _READING or (name == "build" and "--list" in arguments):
        return None if name == "status" and "--watch" in arguments else READING
    return SOLVING if name in _SOLVING else None


def run(command: click.Command, name: str, value: object = None, bounds: Bounds | None = None) -> NoReturn:
    """Run `command` under the program name `name`, then exit; with `bounds`, in a child under these bounds.

    Args:
        value: the object of the command's context.

    The status is 0, 1 for failed work, 2 for bad input, 130 for Ctrl-C.
    """
    _open_closed_streams()
    try:
        _refuse_names()
        widen(os.environ.get(VARIABLE, ""))
    except InputError as error:
        say_error(f"error: {error}")
        sys.exit(error.exit_code)
    if bounds is not None:
        _hold(bounds, name)
    tell_with(_tell)
    try:
        interruption.unwind()
        status = _status(command, name, value)
        no_signs()
        interruption.over = True
    except (KeyboardInterrupt, click.exceptions.Abort):
        interruption.over = True
        status = interruption.STATUS
        with contextlib.suppress(OSError):
            say_error(interruption.MESSAGE)
    interruption.ignore()
    gc.freeze()  # Python collects all garbage at its end, which takes a tenth of a rerender
    sys.exit(status)


def _refuse_names() -> None:
    """Refuse a current folder that is gone, and names that the ledger and the engine of recipe.yaml cannot hold.

    Raises:
        InputError: it is one of these.
    """
    try:
        here = Path.cwd()
    except OSError as error:
        raise InputError("the current folder is gone", hint="Change to a folder that exists.") from error
    try:
        str(here).encode()
    except UnicodeEncodeError as error:
        raise InputError("the name of the current folder is not UTF-8", path=here, hint="Rename it.") from error
    for word in sys.argv[1:]:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"the argument {word!r} is not UTF-8", hint="If it names a file, rename that.") from error


def _hold(bounds: Bounds, program: str) -> None:
    """Continue in a child under bounds, whose parent gives signs of life, unless a shell asks for words."""
    if completion.VARIABLE in os.environ:
        hold(bounds)
        return
    pulse = Pulse(f"{program} {_name(sys.argv[1:])}" if program == PROGRAM else program)
    hold(bounds, pulse.beat)
    pulse_with(pulse)
    listen(pulse.stage)


def _status(command: click.Command, name: str, value: object) -> int:
    """Run a command and print its error, if any; return the exit status."""
    try:
        status = command.main(prog_name=name, standalone_mode=False, obj=value)
        sys.stdout.flush()
    except click.exceptions.Abort:
        raise
    except click.ClickException as error:
        text = StringIO()
        error.show(text)
        say_error(text.getvalue(), nl=False)
        return error.exit_code
    except FeedstockError as error:
        say_error(f"error: {error}")
        return error.exit_code
    except MemoryError:
        say_error(f"error: there is not enough memory\n  {LIFTING}")
        return 2
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        _write_no_more()
        return 1
    except OSError as error:
        say_error(f"error: {error.filename or name}: {error.strerror or error}")
        _write_no_more()
        return 1
    except RuntimeError as error:
        looped = error.__context__
        if not isinstance(looped, OSError) or looped.errno != ELOOP:
            raise
        say_error(f"error: {looped.filename}: {looped.strerror}")  # Path.resolve before Python 3.13
        return 2
    return status if isinstance(status, int) else 0


def _tell(text: str) -> None:
    """Print a message about a wait."""
    with contextlib.suppress(OSError, ValueError):
        say_note(f"-- {text}")


def _open_closed_streams() -> None:
    """Replace streams that the caller has closed (`<&-`), which are None in Python."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115, PTH123
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123


def _write_no_more() -> None:
    """Discard buffered output for stdout: the interpreter would try to write it again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
