"""`feedstock-tools review`: what a reviewer asks of a branch, as one comment."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say, say_json

if TYPE_CHECKING:
    from feedstock_tools.check.rehearsal import RehearsalChannels
    from feedstock_tools.rerender.configuration import Configuration


@click.command("review", cls=Command)
@click.argument("base", required=False, metavar="[BASE]")
@options.feedstock
@options.pinning
@options.rules
@options.smithy
@options.channels("those of the configuration, else conda-forge")
@click.option("--no-rehearse", is_flag=True, help="Solve no environments.")
@options.as_json
def command(
    base: str | None,
    feedstock: Path | None,
    pinning: str | None,
    rules: str | None,
    smithy: str | None,
    channels: tuple[str, ...],
    no_rehearse: bool,
    as_json: bool,
) -> int:
    """Review a branch as one Markdown comment: what changes for users, and what must be mended.

    BASE is a folder, or a commit of the feedstock; default: where this branch left the main one. Shows which jobs and
    packages change, whether the feedstock is rerendered, and what `lint`, `cuda check` and `rehearse` find that BASE
    does not have. Exits with 1 if there is something to mend.
    """
    from feedstock_tools.check.reviewing import review_feedstock
    from feedstock_tools.cli.rerender import chosen_pinning
    from feedstock_tools.cli.smithy import chosen_release
    from feedstock_tools.feedstock.folder import find_feedstock
    from feedstock_tools.feedstock.git import branch_base, checked_out
    from feedstock_tools.report.checks.review import review_json, review_markdown
    from feedstock_tools.rerender.smithy import chosen_rules

    gc.disable()  # a short process, as in `rerender`
    home = find_feedstock(feedstock, Path()).folder
    named = base or branch_base(home)
    path = chosen_pinning(pinning, home)
    release = chosen_release(smithy, rules)
    notes = [] if path else ["the check for a missing rerender was skipped: no pinning was fetched or named"]
    with ExitStack() as open_folders:
        before = Path(named) if base and Path(base).is_dir() else open_folders.enter_context(checked_out(home, named))
        review = review_feedstock(
            before,
            home,
            pinning=path,
            smithy=release,
            rules=chosen_rules(rules, release),
            rehearsed_in=None if no_rehearse else lambda touched: _channels(home, touched, channels),
        )
    if as_json:
        say_json(review_json(review, named, notes))
    else:
        say(review_markdown(review, named, notes), nl=False)
    return 0 if review.holds else 1


def _channels(folder: Path, configurations: Sequence[Configuration], requested: tuple[str, ...]) -> RehearsalChannels:
    from feedstock_tools.builds.channels import channels_to_rehearse
    from feedstock_tools.builds.plan.workspace import artifacts_of
    from feedstock_tools.feedstock.folder import find_feedstock

    feedstock = find_feedstock(folder, Path())
    return channels_to_rehearse(feedstock, artifacts_of(feedstock, None), configurations, requested, os.environ)
