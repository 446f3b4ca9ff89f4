"""What a shell offers for the word at the cursor, and `--completion`, which prints the shell's script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli.commands import is_folder
from feedstock_tools.cli.printing import say
from feedstock_tools.errors import FeedstockError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PROGRAM = "feedstock-tools"
#: While it is set in the environment, the program answers a shell instead of running a command.
VARIABLE = "_FEEDSTOCK_TOOLS_COMPLETE"

#: Words that people leave out of the name of a GPU.
_LINES = ("GeForce-", "Tesla-")

Completion = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _offering(words: Callable[[click.Context, str], Iterable[str]]) -> Completion:
    """Offer those of the words that continue the typed one, each once; none if something cannot be read."""

    @wraps(words)
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            found = [word for word in words(context, incomplete) if word.startswith(incomplete)]
        except (FeedstockError, OSError):
            found = []
        items = [CompletionItem(word) for word in dict.fromkeys(found)]
        # One of the words may be the feedstock's folder; that is for the shell to complete.
        return items or ([CompletionItem(incomplete, type="dir")] if parameter.name == "names" else [])

    return complete


def _folder(context: click.Context) -> Path:
    """The feedstock that the words before the cursor name, with `--feedstock` or among names; default: here."""
    if (folder := context.params.get("feedstock")) is not None:
        return Path(folder)
    words = (*context.params.get("names", ()), *context.params.get("targets", ()))
    return next((Path(word) for word in words if is_folder(word, only_existing=True, feedstock=None)), Path())


def _configurations(context: click.Context, incomplete: str) -> Iterable[str]:
    """Short names and names of the files in `.ci_support`; until something is typed, short names alone."""
    from feedstock_tools.feedstock.configurations import outline
    from feedstock_tools.feedstock.planned import rows_by_short_name

    planned = outline(_folder(context))
    yield from sorted(rows_by_short_name(planned))
    if incomplete:
        yield from (configuration.name for configuration in planned)


configurations = _offering(_configurations)


@_offering
def key_or_configurations(context: click.Context, incomplete: str) -> Iterable[str]:
    """The keys of the configurations; after a key, configurations."""
    words, given = context.params.get("names", ()), context.params.get("feedstock")
    if not all(is_folder(word, only_existing=True, feedstock=given) for word in words):
        return _configurations(context, incomplete)
    from feedstock_tools.rerender.configuration import read_configurations

    return sorted({key for configuration in read_configurations(_folder(context)) for key in configuration.values})


@_offering
def gpus(context: click.Context, incomplete: str) -> Iterable[str]:
    """The names of GPUs, as one word each."""
    return _gpu_names()


def _gpu_names() -> Iterable[str]:
    """`RTX-3080`, and the whole name for those who begin with it: `GeForce-RTX-3080`."""
    from feedstock_tools.facts.gpus import load_gpus

    names = [gpu.name.replace(" ", "-") for gpu in load_gpus().gpus]
    return [*(name.partition("-")[2] if name.startswith(_LINES) else name for name in names), *names]


@_offering
def cuda_versions(context: click.Context, incomplete: str) -> Iterable[str]:
    """The versions of CUDA toolkits, newest first."""
    return reversed(_toolkits())


def _toolkits() -> list[str]:
    from feedstock_tools.facts.cuda import load_cuda

    return list(load_cuda().toolkits)


@_offering
def demands(context: click.Context, incomplete: str) -> Iterable[str]:
    """Demands of `cuda resolve`: a kind, and then the versions of CUDA or the names of GPUs."""
    from feedstock_tools.pins.graph.kinds import KINDS

    words = {"cuda": _toolkits(), "gpu": _gpu_names()}
    before: Sequence[str] = context.params.get("demands") or ()
    if len(before) > 1 and before[-1] == "=":  # bash breaks words at an equals sign
        return words.get(before[-2], ())
    kind, equals, _ = incomplete.partition("=")
    if not equals:
        return (f"{name}=" for name in KINDS)
    return (f"{kind}={word}" for word in words.get(kind, ()))


@_offering
def packages(context: click.Context, incomplete: str) -> Iterable[str]:
    """Packages that the facts know: frameworks and CUDA's libraries."""
    from feedstock_tools.facts.cuda import load_cuda
    from feedstock_tools.facts.frameworks import load_frameworks

    return sorted({*load_frameworks().frameworks, *load_cuda().libraries})


@_offering
def platforms(context: click.Context, incomplete: str) -> Iterable[str]:
    """Platforms as conda names them."""
    from feedstock_tools.platforms import KNOWN_SUBDIRS

    return sorted(KNOWN_SUBDIRS)


def print_script(context: click.Context, _parameter: click.Parameter, shell: str | None) -> None:
    """The callback of `--completion`: print the script of a shell, and end the program."""
    if shell is None or context.resilient_parsing:
        return
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    completer = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    say(completer(context.command, {}, PROGRAM, VARIABLE).source(), nl=False, whole=True)
    context.exit()
