"""Several edits of recipes in one call: read all, make all, then show or write what they change."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.places import is_folder
from feedstock_tools.cli.printing import no_signs, say, say_diff
from feedstock_tools.cli.spelling import Group

if TYPE_CHECKING:
    from feedstock_tools.edit.draft import Draft
    from feedstock_tools.files.repository import Repository

Edit = Callable[["Draft"], "Draft"]
#: One edit of a call: what it is called in a commit message, what it does, and the options given with it.
Step = tuple[str, Edit, "Ending"]
#: With a feedstock known, the arguments of an edit are folders only if they are written as paths.
_HERE = Path()


@dataclass(frozen=True, slots=True)
class Ending:
    """Which feedstock is edited, and what becomes of the result."""

    feedstock: Path | None
    write: bool
    commit: str | None


class EditGroup(Group):
    """A group that takes several of its commands in one call, each with its options after its words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments of the edits together; `--help` alone is that of the group."""
        if args[:1] and not args[0].startswith("-"):
            ctx.args = args
            return args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Read all edits, then make them."""
        steps = []
        left = list(ctx.args)
        while left:
            name, found, left = self.resolve_command(ctx, left)
            assert found is not None  # noqa: S101 - resolve_command ends with an error for an unknown name
            own, left = self._split(ctx, found, left)
            with found.make_context(name, own, parent=ctx) as context:
                steps.append(found.invoke(context))
        return _finish(steps)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the edit that the first argument names; a feedstock's folder there or before has an error of its own."""
        if args[0] not in self.commands and not any(word.startswith("--feedstock") for word in ctx.args):
            for word in ctx.args[: len(ctx.args) - len(args) + 1]:
                if is_folder(word, only_existing=True, feedstock=None):
                    _refuse_folder(ctx, word)
        return super().resolve_command(ctx, args)

    def _split(self, ctx: click.Context, found: click.Command, words: list[str]) -> tuple[list[str], list[str]]:
        """The words of one edit, and those from the next edit's name on: after its last argument and its options."""
        arguments = sum(isinstance(parameter, click.Argument) for parameter in found.params)
        valued = {
            name
            for parameter in found.params
            if isinstance(parameter, click.Option) and not parameter.is_flag and parameter.name != "commit"
            for name in parameter.opts
        }
        at = 0
        while at < len(words):
            word = words[at]
            if word in valued:
                at += 1
            elif not word.startswith("-"):
                if not arguments and (word in self.commands or words[at - 1] != "--commit"):
                    break
                if arguments and is_folder(word, only_existing=True, feedstock=_HERE):
                    _refuse_folder(ctx, word)
                arguments = max(0, arguments - 1)
            at += 1
        return words[:at], words[at:]


def _refuse_folder(ctx: click.Context, word: str) -> NoReturn:
    ctx.fail(f"'{word}' is a folder. Edits take the feedstock with its option: --feedstock {word}")


def _finish(steps: Sequence[Step]) -> int:
    """Make all edits, then show or write what they change."""
    from feedstock_tools.edit.draft import open_draft
    from feedstock_tools.feedstock.folder import find_feedstock

    ending = _merged([own for _, _, own in steps])
    draft = open_draft(find_feedstock(ending.feedstock, Path()).folder)
    repository = _repository(draft.folder) if ending.commit is not None else None
    for _, edit, _ in steps:
        draft = edit(draft)
    changes = draft.changes()
    writes = ending.write or repository is not None
    if writes:
        tidy(draft.folder)
    say_diff(changes.diff())
    for remark in draft.remarks:
        say(f"note: {remark}", err=True)
    if not changes:
        say("nothing to change", err=True)
        return 0
    names = ", ".join(path for _, path in changes.listed())
    if not writes:
        say(f"would change {names}; --write does", err=True)
        return 0
    changes.apply()
    say(f"changed {names}", err=True)
    if repository is not None:
        named = ending.commit in (options.OWN_MESSAGE, options.EDIT_MESSAGE)
        message = "; ".join(title for title, _, _ in steps) if named else ending.commit or ""
        if ending.commit == options.EDIT_MESSAGE:
            no_signs()
        repository.commit(changes, message, edit=ending.commit == options.EDIT_MESSAGE)
        say(f"committed: {message}", err=True)
    return 0


def _merged(endings: Sequence[Ending]) -> Ending:
    """The options of all edits of a call together.

    Raises:
        UsageError: they name several feedstocks.
    """
    folders = {ending.feedstock for ending in endings if ending.feedstock is not None}
    if len(folders) > 1:
        raise click.UsageError("the edits of one call are for one feedstock")
    commits = [ending.commit for ending in endings if ending.commit is not None]
    return Ending(next(iter(folders), None), any(ending.write for ending in endings), commits[-1] if commits else None)


def _repository(folder: Path) -> Repository:
    from feedstock_tools.files.repository import find_repository

    return find_repository(folder, os.environ)
