"""Lay a migration on many feedstocks: one branch and one commit in each, in the order of rebuilding.

What a run did is seen in the repositories: a feedstock that has the branch is done, so an interrupted run goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.limits import READING, Bounds
from feedstock_tools.bounds.pool import each_bounded
from feedstock_tools.edit.draft import open_draft
from feedstock_tools.edit.migrations import add_migration
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.feedstock.git import Content, commit_on_branch, has_branch
from feedstock_tools.many.index import Index
from feedstock_tools.many.workspace import Member, opened
from feedstock_tools.reading import LARGEST_SCRIPT, read_bytes
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.many import MigrationFile, migrated
from feedstock_tools.rerender.rerendering import Request, rerendered
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import Release
from feedstock_tools.wording import counted

#: Lines of the commit's body.
_MOST = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """What `migrate` lays on feedstocks.

    `pinning` and `smithy` as of a rerender; `version` is that of the pinning, for the message, as far as it is known.
    """

    migration: MigrationFile
    pinning: Path
    rules: Rules
    branch: str
    smithy: Release | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Laid:
    """What became of a feedstock: `committed` with the commit, `done` before, `not needed` or `refused` with why."""

    name: str
    outcome: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Prepared:
    files: Mapping[str, Content | None] = field(default_factory=dict)
    body: str = ""
    reason: str = ""


def migrate(
    index: Index,
    names: tuple[str, ...],
    plan: Plan,
    environment: Mapping[str, str],
    *,
    jobs: int = 1,
    bounds: Bounds = READING,
) -> Iterator[Laid]:
    """Commit a migration to feedstocks of an index, and give the outcomes as they come.

    Args:
        names: the feedstocks, in order.
        environment: says, with the user's settings of git, who commits.
        jobs: how many processes render in parallel.
        bounds: for each feedstock.
    """
    members = {member.name: member for member, *_ in index.members()}
    left: list[Member] = []
    for name in names:
        member = members[name]
        if not member.is_repository:
            yield Laid(name, "refused", "is not a repository of its own")
        elif has_branch(member.path, plan.branch):
            yield Laid(name, "done", f"has the branch {plan.branch}")
        else:
            left.append(member)
    for member, found in each_bounded(partial(_prepared, plan), left, jobs, bounds):
        try:
            if isinstance(found, FeedstockError):
                raise found
            if found.reason:
                yield Laid(member.name, "not needed", found.reason)
                continue
            message = f"{plan.rules.commit_message(plan.version)}\n\n{found.body}"
            commit = commit_on_branch(member.path, plan.branch, found.files, message, environment)
        except FeedstockError as error:
            detail = error.mistakes[0].message if isinstance(error, InputError) else str(error)
            yield Laid(member.name, "refused", detail.partition("\n")[0])
        else:
            yield Laid(member.name, "committed", commit)


def _prepared(plan: Plan, member: Member) -> _Prepared:
    """The files of a feedstock with the migration, rendered in a copy of its last commit."""
    path = plan.migration.path
    with opened(member) as folder:
        request = Request(folder, plan.rules, plan.pinning)
        old = rerendered(request)
        new, reason = migrated(plan.migration, member.name, request, old)
        if new is None:
            return _Prepared(reason=reason)
        edits = add_migration(open_draft(folder), path.stem, path).changes()
        edits.apply()
        changes = rerendered(replace(request, smithy=plan.smithy, migrations=(path,))).changes()
        changes.apply()
        names = {each.relative_to(folder).as_posix() for each in (*edits.paths, *changes.paths)}
        files = {name: _content(folder / name) for name in names}
    return _Prepared(files, "\n".join(_body(path.name, old.configurations, new.configurations)))


def _content(path: Path) -> Content | None:
    return (
        (read_bytes(path, LARGEST_SCRIPT, within=None), bool(path.stat().st_mode & 0o100)) if path.is_file() else None
    )


def _body(migration: str, old: Iterable[Configuration], new: Iterable[Configuration]) -> Iterator[str]:
    """What a migration does to the jobs, a line each."""
    before, after = ({each.name: each.values for each in configurations} for configurations in (old, new))
    lines = [f"- {name}" for name in sorted(before.keys() - after.keys())]
    lines += [f"+ {name}" for name in sorted(after.keys() - before.keys())]
    for name in sorted(before.keys() & after.keys()):
        changed = [
            f"{key} {' '.join(before[name].get(key, ())) or 'none'} -> {' '.join(after[name].get(key, ())) or 'none'}"
            for key in sorted(before[name].keys() | after[name].keys())
            if before[name].get(key) != after[name].get(key)
        ]
        lines += [f"  {name}: {', '.join(changed)}"] if changed else []
    yield f"{migration}: {counted(len(lines), 'job')} {'changes' if len(lines) == 1 else 'change'}"
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"  and {len(lines) - _MOST} more"
