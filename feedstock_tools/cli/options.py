"""Options that several commands take: one name, one short form, one metavar and one meaning each.

The help of an option is its meaning, followed by what differs between commands in parentheses: `(default: …)`,
`(repeatable)`. `docs/command-line.md` lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from feedstock_tools.cli import completion
from feedstock_tools.cli.commands import is_folder

if TYPE_CHECKING:
    from feedstock_tools.check.findings import Verdict

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

#: The values of --commit without a message, and to open the message in the editor: as conda-smithy has them.
OWN_MESSAGE, EDIT_MESSAGE = "auto", "edit"
#: The value of `--fleet` that is given without one.
ONLY_FLEET = "."


_NAMES = (
    "A NAME is the name of a file in .ci_support without .yaml, a glob over those names, or a short name such as "
    "linux_64_cuda11.2. One of the arguments may be the feedstock's folder instead."
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command finds its feedstock and packages: `--feedstock`, `--output-dir` and `--channel`."""

    feedstock: Path | None
    output_dir: Path | None
    channels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """The selection of configurations on the command line.

    Attributes:
        glob: only configurations whose names match it are considered.
        everything: also all other configurations that can be built here.
    """

    names: tuple[str, ...]
    glob: str | None = None
    everything: bool = False


def gathered(parameter: str, kind: type[Any]) -> Decorator:
    """Hand several options to a command as one value: those named like the fields of the dataclass `kind`.

    The last decorator of a command, below its options.
    """
    names = [field.name for field in fields(kind)]

    def decorate(function: Function) -> Function:
        @wraps(function)
        def command(*arguments: Any, **values: Any) -> Any:
            own = {name: values.pop(name) for name in names}
            return function(*arguments, **values, **{parameter: kind(**own)})

        return command

    return decorate


def option(*names: str, meaning: str, default_text: str = "", repeatable: bool = False, **settings: Any) -> Decorator:
    """An option whose help has the form that all of them have.

    Args:
        names: as of `click.option`: the spellings and the name of the parameter.
        meaning: a sentence without its full stop, the same wherever the option is taken.
        default_text: the behaviour without the option, if it is not obvious.
        repeatable: whether it can be given several times.
    """
    remarks = [*(["repeatable"] if repeatable else []), *([f"default: {default_text}"] if default_text else [])]
    text = f"{meaning} ({'; '.join(remarks)})." if remarks else f"{meaning}."
    return click.option(*names, help=text, multiple=repeatable, **settings)


def form(*forms: str) -> Decorator:
    """`--format FORM`: one of these, by default the first."""
    first, *others = forms
    return option(
        "--format",
        "form",
        type=click.Choice(forms),
        default=first,
        metavar="FORM",
        meaning="Form of the result",
        default_text=f"{first}; or {', '.join(others)}",
    )


feedstock = option(
    "--feedstock",
    type=click.Path(path_type=Path),
    metavar="DIR",
    meaning="Folder of the feedstock",
    default_text="here",
)


def folder(function: Function) -> Function:
    """`[FEEDSTOCK]` and `--feedstock DIR`, for commands that take the feedstock alone: `feedstock`, a `Path`.

    `Path()` if neither is given.
    """
    return _with_folders(function, "[FEEDSTOCK]", nargs=1)


def folders(function: Function) -> Function:
    """`[FEEDSTOCK]...` and `--feedstock DIR`, for a command that takes one feedstock or many: `feedstocks`, paths.

    One `Path()` if neither is given.
    """
    return _with_folders(function, "[FEEDSTOCK]...", nargs=-1)


def _with_folders(function: Function, metavar: str, *, nargs: int) -> Function:
    @wraps(function)
    def command(
        *arguments: Any, feedstock: Path | None, positional: Path | tuple[Path, ...] | None, **others: Any
    ) -> Any:
        if feedstock is not None and positional:
            raise click.UsageError("name the feedstock once: FEEDSTOCK or --feedstock DIR")
        found = positional or feedstock or Path()
        if nargs == 1:
            return function(*arguments, feedstock=found, **others)
        return function(*arguments, feedstocks=found if isinstance(found, tuple) else (found,), **others)

    path = click.Path(path_type=Path)
    argument = click.argument("positional", nargs=nargs, required=False, metavar=metavar, type=path)
    return argument(feedstock(command))


def configurations(function: Function) -> Function:
    """`[NAME]...` and `--feedstock DIR`, for commands that take configurations: `names`, and `feedstock` or None.

    One of the words may be the feedstock's folder instead of a name.
    """
    return _named_configurations(function, "[NAME]...", completion.configurations)


def key_or_configurations(function: Function) -> Function:
    """`[KEY|NAME] [NAME]...` and `--feedstock DIR`: `names`, of which the first may be a key, and `feedstock` or None.

    One of the words, also the first, may be the feedstock's folder.
    """
    return _named_configurations(function, "[KEY|NAME] [NAME]...", completion.key_or_configurations)


def _named_configurations(function: Function, metavar: str, complete: Callable[..., Any]) -> Function:
    command = _with_feedstock_among("names", function)
    command.__doc__ = f"{cleandoc(function.__doc__ or '')}\n\n{_NAMES}"
    return click.argument("names", nargs=-1, metavar=metavar, shell_complete=complete)(command)


def packages_or_configurations(function: Function) -> Function:
    """`[PACKAGE|NAME]...` and `--feedstock DIR`: `targets`, and `feedstock` or None."""
    argument = click.argument(
        "targets", nargs=-1, metavar="[PACKAGE|NAME]...", shell_complete=completion.configurations
    )
    return argument(_with_feedstock_among("targets", function))


def _with_feedstock_among(parameter: str, function: Function) -> Function:
    @wraps(function)
    def command(*arguments: Any, feedstock: Path | None, **others: Any) -> Any:
        words: Sequence[str] = others.pop(parameter)
        folders = [word for word in words if is_folder(word, only_existing=parameter == "targets", feedstock=feedstock)]
        if len(folders) > 1 or (folders and feedstock is not None):
            mentions = [*folders, *([f"--feedstock {feedstock}"] if feedstock is not None else [])]
            raise click.UsageError(f"name the feedstock once, not {len(mentions)} times: {', '.join(mentions)}")
        folder = Path(folders[0]) if folders else feedstock
        names = tuple(word for word in words if word not in folders)
        return function(*arguments, feedstock=folder, **{parameter: names}, **others)

    return feedstock(command)


output_dir = option(
    "--output-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    meaning="Artifacts folder: packages, logs and the ledger",
    default_text="build_artifacts in the feedstock",
)
as_json = option("--json", "as_json", is_flag=True, meaning="Print the result as JSON")


def status_of(verdict: Verdict, *, strict: bool) -> int:
    """The exit code of a command whose checks have a verdict together."""
    return {"right": 0, "wrong": 1, "unknown": int(strict)}[verdict]


def refuse_both(as_json: bool, markdown: bool) -> None:
    """Refuse --json beside --markdown.

    Raises:
        UsageError: both are given.
    """
    if as_json and markdown:
        raise click.UsageError("--json and --markdown exclude each other")


markdown = option("--markdown", is_flag=True, meaning="Print the result as Markdown")
html = option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", meaning="Write a page to this file"
)
dry_run = option("--dry-run", is_flag=True, meaning="Show what would happen; change nothing")
check = option("--check", is_flag=True, meaning="Write nothing; exit with 1 if a file would change")
force = option("--force", is_flag=True, meaning="Overwrite files that people wrote or edited")
diff = option("--diff", "show_diff", is_flag=True, meaning="Print what changes")


cache = option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    meaning="Folder of fetched versions",
    default_text="in the user's cache",
)
cores = option(
    "--cores", type=click.IntRange(1), metavar="N", meaning="Cores for all builds together", default_text="all"
)
memory = option(
    "--memory",
    metavar="SIZE",
    meaning="Memory for all builds together, such as 48 GiB, from 128 MiB",
    default_text="nine tenths of it",
)
jobs = option(
    "--jobs",
    "-j",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    meaning="Run up to N builds, tests, readings or rerenders in parallel",
    default_text="1",
)
log_limit = option(
    "--log-limit",
    default="1 GiB",
    metavar="SIZE",
    meaning="Keep the first and last part of a longer log",
    default_text="1 GiB",
)
#: The value of --pinning for feedstocks that need none.
NO_PINNING = "none"
pinning = option(
    "--pinning", metavar="DIR|FILE|VERSION", meaning="Pinning to use: a folder, its file, a fetched version, or none"
)
#: Where a call keeps that it has --offline, for `required_pinning`; several edits of one call share it.
OFFLINE = f"{__name__}.offline"


def _offline(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[OFFLINE] = value or context.meta.get(OFFLINE, False)


offline = click.option(
    "--offline",
    is_flag=True,
    expose_value=False,
    callback=_offline,
    help="Fetch no pinning where none was fetched yet: that is an error then.",
)
strict = click.option("--strict", is_flag=True, help="Exit with 1 as well if a check could not be completed.")
rules = option(
    "--rules",
    metavar="SMITHY[+CONDA_BUILD]",
    meaning="Behave as these versions of conda-smithy and conda-build",
    default_text="the newest known",
)
smithy = option(
    "--smithy",
    metavar="VERSION|DIR",
    meaning="Release of conda-smithy to use: a fetched version, a folder, or none",
    default_text="the one that --rules names",
)
server = option("--server", metavar="URL", meaning="URL of the service, if it is not the public one")
cuda = option(
    "--cuda", metavar="VERSION", meaning="This CUDA version only, such as 11.2", shell_complete=completion.cuda_versions
)
missing = option("--missing", "channels", metavar="CHANNEL", repeatable=True, meaning="Only what this channel lacks")


def engine(function: Function) -> Function:
    """`--engine ENGINE`: `engine`, a text or None. Most commands need no engine, nor this import."""
    from feedstock_tools.builds.engines.choice import ENGINES

    named = click.Choice(ENGINES)
    taken = option("--engine", type=named, meaning="Engine to build with", default_text="what the recipe needs")
    return taken(function)


def output(default: str, *, kind: str) -> Decorator:
    """`--output PATH`: `output`, a `Path` or None; `kind` is "file" or "folder"."""
    path = click.Path(path_type=Path, dir_okay=kind == "folder", file_okay=kind == "file")
    return option(
        "--output", "-o", type=path, metavar="PATH", meaning="Write the result to this path", default_text=default
    )


def platform(default: str, *, repeatable: bool = False) -> Decorator:
    """`--platform PLATFORM`: `platform`, a text or None; `platforms`, a tuple, if it is repeatable."""
    return option(
        "--platform",
        "platforms" if repeatable else "platform",
        metavar="PLATFORM",
        repeatable=repeatable,
        meaning="This platform only, such as linux-64",
        shell_complete=completion.platforms,
        default_text=default,
    )


def timeout(default: str) -> Decorator:
    """`--timeout TIME`: `timeout`, a text."""
    return option(
        "--timeout",
        default=default,
        metavar="TIME",
        meaning="Stop a build or test after this time: 90 s, 30 min, 3 h; 0 for never",
        default_text=default,
    )


def preset(default_text: str, *, default: str | None = None) -> Decorator:
    """`--preset NAME`: `preset`, a text or `default`."""
    return option(
        "--preset",
        default=default,
        metavar="NAME",
        meaning="Named list of GPU architectures",
        default_text=default_text,
    )


def gpu(default_text: str, *, default: bool | None) -> Decorator:
    """`--gpu` and `--cpu`: `gpu`, true, false, or `default` if neither is given."""
    return option(
        "--gpu/--cpu", "gpu", default=default, meaning="Use a GPU, or the CPU alone", default_text=default_text
    )


def _by_default(*names: str, **settings: Any) -> Callable[[str], Decorator]:
    """An option of which commands differ in the behaviour without it: a function of that behaviour's name."""
    return lambda default: option(*names, default_text=default, **settings)


#: `--channel CHANNEL`, repeatable: `channels`, a tuple of texts.
channels = _by_default(
    "--channel",
    "-c",
    "channels",
    metavar="CHANNEL",
    repeatable=True,
    meaning="Channel to use: a name, URL or folder, or stand-in",
)
#: `--commit [MESSAGE]`: a message, `EDIT_MESSAGE`, or `OWN_MESSAGE` without one, which the default names.
commit = _by_default(
    "--commit",
    is_flag=False,
    flag_value=OWN_MESSAGE,
    metavar="[MESSAGE]",
    meaning="Write and commit the changes; MESSAGE is a text, or edit",
)
#: `--fleet [INVENTORY]`: `fleet`, a text, `ONLY_FLEET` without a value, or None.
fleet = _by_default(
    "--fleet",
    is_flag=False,
    flag_value=ONLY_FLEET,
    metavar="[INVENTORY]",
    meaning="The fleet: its inventory, its folder or its name",
)
