"""`feedstock-tools edit`: change recipes that people wrote, line by line."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command, Group, is_folder
from feedstock_tools.cli.fetched import pinning_at, required_pinning
from feedstock_tools.cli.opening import commit_changes, repository_of, tidy
from feedstock_tools.cli.printing import say_diff, say_note
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.folder import find_feedstock
from feedstock_tools.reading import SPEC_NAME

if TYPE_CHECKING:
    from feedstock_tools.channel.fetched import Pinning
    from feedstock_tools.edit.draft import Draft
    from feedstock_tools.edit.variants.lists import VersionKey
    from feedstock_tools.recipe.written.document import Document

#: Of a build number: more digits are a mistake.
_MOST_DIGITS = 9

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
    pinning: str | None = None
    anyway: bool = False
    strict: bool = False


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
    ctx.fail(f"'{word}' is a folder. Edits take the feedstock with its option: --feedstock {shlex.quote(word)}")


def _finish(steps: Sequence[Step]) -> int:
    """Make all edits, then show or write what they change."""
    from feedstock_tools.edit.draft import open_draft

    ending = _merged([own for _, _, own in steps])
    folder = find_feedstock(ending.feedstock, Path()).folder
    if (folder / SPEC_NAME).is_file():
        return _finish_in_spec(folder, steps, ending)
    draft = open_draft(folder)
    repository = repository_of(draft.folder, ending.commit)
    for _, edit, _ in steps:
        draft = edit(draft)
    if repository is not None and draft.doubts:
        raise InputError(
            "\n".join(draft.doubts),
            path=draft.recipe_path,
            hint="Nothing was written. --write writes without a commit.",
        )
    changes = draft.changes()
    writes = ending.write or repository is not None
    if writes and draft.refusals and not ending.anyway:
        hint = "Nothing was written. --anyway writes it, and keeps the meta.yaml beside it."
        raise WorkError("\n".join((*draft.remarks, *draft.refusals)), hint=hint)
    if writes:
        _refuse_doubts(draft, ending)
        tidy(draft.folder)
    _say_notes(*draft.doubts, *draft.refusals)
    say_diff(changes.diff())
    _say_notes(*draft.remarks)
    if not changes:
        say_note("nothing to change")
        return 0
    names = ", ".join(path for _, path in changes.listed())
    if not writes:
        how = "only --write --anyway does" if draft.refusals else "--write does"
        say_note(f"would change {names}; {how}")
        return int(ending.strict and bool(draft.doubts))
    changes.apply()
    say_note(f"changed {names}")
    if repository is not None:
        commit_changes(repository, changes, "; ".join(title for title, _, _ in steps), ending.commit)
    return 1 if draft.refusals else 0


def _finish_in_spec(folder: Path, steps: Sequence[Step], ending: Ending) -> int:
    """Make all edits of a generated recipe, take them into the spec, and generate."""
    from feedstock_tools.edit.draft import open_draft
    from feedstock_tools.files.changes import Changes
    from feedstock_tools.generate.generating import compare, generate
    from feedstock_tools.importing import edited_spec
    from feedstock_tools.report.spec import differing

    generated = generate(folder)
    if generated.stale:
        hint = "Run `feedstock-tools generate`, or `import --update` if somebody changed the files."
        raise InputError("is not what generated these files", path=folder / SPEC_NAME, hint=hint)
    draft = open_draft(folder, is_generated=True)
    repository = repository_of(draft.folder, ending.commit)
    for _, edit, _ in steps:
        draft = edit(draft)
    texts, others = dict(generated.texts), dict[Path, bytes | None]()
    written = draft.folder / SPEC_NAME
    listed = draft.spec.text if written in draft.edited and draft.spec is not None else None
    for path, document in draft.edited.items():
        if path == written:
            continue
        name = PurePosixPath(path.relative_to(draft.folder).as_posix())
        if name not in texts and path not in (draft.recipe_path, folder / "conda-forge.yml"):
            others[path] = None if document is None else document.text.encode()
        texts.pop(name, None)
        if document is not None:
            texts[name] = document.text
    found = _pinning_for(folder, ending.pinning)
    updated = edited_spec(folder, texts, listed=listed, pinning=found.path if found else None)
    seen = {path: known.text.encode() for path in others if (known := draft.original.get(path)) is not None}
    spec = Changes(
        folder,
        {folder / SPEC_NAME: updated.text.encode(), **others},
        seen={**seen, folder / SPEC_NAME: updated.before.encode()},
    )
    _say_notes(*draft.doubts)
    say_diff([updated.diff(), *(change.diff() for change in compare(folder, updated.texts))])
    _say_notes(*draft.remarks)
    reasons = [*(f"not in the spec: {text}" for text in updated.missed), *differing(updated.differences)]
    if reasons:
        hint = "Nothing was written. Edit the spec, then run: feedstock-tools generate"
        raise WorkError("\n".join(("the spec cannot say this edit", *reasons)), path=folder / SPEC_NAME, hint=hint)
    if repository is not None and draft.doubts:
        raise InputError("\n".join(draft.doubts), path=draft.recipe_path, hint="Nothing was written.")
    if not ending.write and repository is None:
        say_note(f"would change {SPEC_NAME} and generate; --write does")
        return int(ending.strict and bool(draft.doubts))
    _refuse_doubts(draft, ending)
    tidy(folder)
    spec.apply()
    made = generate(folder)
    made.apply()
    say_note(f"changed {SPEC_NAME}, generated {', '.join(str(change.path) for change in made.stale)}")
    if repository is not None:
        kept = made.kept()
        title = "; ".join(title for title, _, _ in steps)
        commit_changes(repository, Changes(folder, {}, seen={**kept.seen, **others}), title, ending.commit)
    return 0


def _say_notes(*notes: str) -> None:
    for note in notes:
        say_note(f"note: {note}")


def _refuse_doubts(draft: Draft, ending: Ending) -> None:
    """Refuse to write, with --strict, what could not be checked."""
    if ending.strict and draft.doubts:
        raise WorkError("\n".join(draft.doubts), path=draft.recipe_path, hint="Nothing was written.")


def _merged(endings: Sequence[Ending]) -> Ending:
    """The options of all edits of a call together.

    Raises:
        UsageError: they name several feedstocks or pinnings.
    """
    folders = {ending.feedstock for ending in endings if ending.feedstock is not None}
    if len(folders) > 1:
        raise click.UsageError("the edits of one call are for one feedstock")
    commits = [ending.commit for ending in endings if ending.commit is not None]
    pinnings = {ending.pinning for ending in endings if ending.pinning is not None}
    if len(pinnings) > 1:
        raise click.UsageError("the edits of one call take one pinning")
    return Ending(
        next(iter(folders), None),
        any(ending.write for ending in endings),
        commits[-1] if commits else None,
        next(iter(pinnings), None),
        any(ending.anyway for ending in endings),
        any(ending.strict for ending in endings),
    )


def _pinning_for(feedstock: Path, requested: str | None) -> Pinning | None:
    """The pinning that the edits of a call are made with; found, or fetched, when the first of them needs it."""
    known: dict[str | None, Pinning | None] = click.get_current_context().meta.setdefault(__name__, {})
    if requested not in known:
        path = required_pinning(requested, feedstock)
        known[requested] = pinning_at(path) if path else None
    return known[requested]


@click.group("edit", cls=EditGroup, no_args_is_help=True)
def edit() -> None:
    """Change a recipe and the files beside it: each line that need not change stays as it is.

    Shows a diff; --write applies it. Several edits work in one call, in the order given:
    `feedstock-tools edit version 2.3.0 --sha256 HASH maintainer add someone --write`.
    """


def _edit(
    name: str, *, needs_pinning: bool = False, **settings: Any
) -> Callable[[Callable[..., tuple[str, Edit]]], click.Command]:
    """A command of the group: its function gives the edit and what it is called.

    Every edit takes a pinning, since what is edited in a generated recipe is taken into the spec with one.
    """

    def decorate(function: Callable[..., tuple[str, Edit]]) -> click.Command:
        @wraps(function)
        def run(
            feedstock: Path | None, write: bool, commit: str | None, pinning: str | None, strict: bool, **values: Any
        ) -> Step:
            title, change = function(**values, **({"pinning": pinning} if needs_pinning else {}))
            return title, change, Ending(feedstock, write, commit, pinning, values.get("anyway", False), strict)

        decorated = options.feedstock(options.pinning(options.offline(_WRITE(_COMMIT(options.strict(run))))))
        return edit.command(name, cls=Command, **settings)(decorated)

    return decorate


def _of_recipe(change: Callable[..., Document], *values: Any) -> Callable[[Draft], Draft]:
    """An edit of the recipe alone."""
    return lambda draft: draft.with_recipe(lambda recipe: change(recipe, *values))


_WRITE = click.option("--write", is_flag=True, help="Write the changes (default: only show them).")
_COMMIT = options.commit("a message that names the edits")


@_edit("version")
@click.argument("version")
@click.option(
    "--sha256",
    multiple=True,
    metavar="HASH",
    help="SHA-256 (MD5, SHA-1: as the recipe has) of a source that changes, in order (repeatable).",
)
@click.option(
    "--of", "output", metavar="OUTPUT", help="Output that is edited (needed where the outputs have several versions)."
)
@click.option(
    "--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Variable that changes with the version (repeatable)."
)
@click.option(
    "--source",
    "moved",
    multiple=True,
    metavar="N=VALUE",
    help="Address, revision, tag or version that source N, counted from 1, has from now on (repeatable).",
)
@click.option("--keep-sources", is_flag=True, help="The sources stay as they are: commit without a new one.")
def _version(
    version: str,
    sha256: tuple[str, ...],
    output: str | None,
    pairs: tuple[str, ...],
    moved: tuple[str, ...],
    keep_sources: bool,
) -> tuple[str, Edit]:
    """Set the version to VERSION: version, hashes of sources, build number 0.

    Without --sha256, the sources are downloaded from the addresses that the recipe gives them. Sources that stay as
    they are are named; --commit refuses a new version without any new source.
    """
    from feedstock_tools.channel.source_files import fetch_source
    from feedstock_tools.digests import is_by_hash
    from feedstock_tools.edit.scripts import lines_naming
    from feedstock_tools.edit.sources import keeps_all_sources, kept_sources
    from feedstock_tools.edit.version import left_behind, lowered, move_to, set_version, version_of
    from feedstock_tools.feedstock.patches import without_taken
    from feedstock_tools.files.temporary import temporary_folder

    variables, sources = _values("--set", pairs), _numbered(moved)

    def update(draft: Draft) -> Draft:
        before, archives = draft.recipe, dict[str, Path]()
        with temporary_folder() as folder:

            def downloaded(url: str, kind: str) -> str:
                path = archives.setdefault(url, folder / str(len(archives)))
                found = fetch_source(url, kind, path, os.environ)
                where = f"the hash that {found.published} has" if found.published else "upstream publishes no hash"
                say_note(f"-- downloaded {url}: {where}")
                return found.digest

            moved = move_to(before, version, output=output, variables=variables, sources=sources)
            kept = kept_sources(before, moved) if keeps_all_sources(before, moved) and not keep_sources else []
            for number, place, address in kept:
                if is_by_hash(address):
                    hint = f"Give the new address with --source {number}=ADDRESS, or keep this one with --keep-sources."
                    message = (
                        f"{place}: source {number} does not follow the version: {address} has the hash of its file"
                    )
                    raise InputError(message, hint=hint)
            recipe = set_version(
                before, version, sha256 or downloaded, output=output, variables=variables, sources=sources
            )
            edited = draft.with_document(recipe).remarked(*left_behind(before, recipe, output))
            edited = without_taken(edited, archives)
        old = version_of(before, output, variables)
        edited = edited.remarked(*lines_naming(draft, old), *lowered(old, version))
        if keep_sources or not keeps_all_sources(before, recipe):
            return edited
        return edited.doubted(
            f"version {version} is built from the sources of the version before. "
            "Give the new one with --source N=VALUE, or say that they are right with --keep-sources."
        )

    return f"Update to {version}", update


def _numbered(pairs: tuple[str, ...]) -> dict[int, str]:
    """The values of `--source N=VALUE`."""
    values = _values("--source", pairs)
    for name in values:
        if not name.isdecimal() or len(name) > _MOST_DIGITS:
            raise InputError(f"'{name}' is not the number of a source", hint="Expected --source N=VALUE, N from 1.")
    return {int(name): value for name, value in values.items()}


def _values(option: str, pairs: tuple[str, ...]) -> dict[str, str]:
    """The values of an option that is given as NAME=VALUE."""
    for pair in pairs:
        name, equals, _ = pair.partition("=")
        if not (name and equals):
            raise InputError(f"'{pair}' sets nothing", hint=f"Expected {option} NAME=VALUE.")
    return dict(pair.split("=", 1) for pair in pairs)


@_edit("build-number")
@click.argument("number")
def _build_number(number: str) -> tuple[str, Edit]:
    """Set the build number to NUMBER; +N raises it by N."""
    from feedstock_tools.edit.version import raise_build_number, set_build_number

    digits = number.removeprefix("+")
    if not digits.isdecimal() or len(digits) > _MOST_DIGITS:
        hint = "Expected a whole number such as 2, or +1 to raise it."
        raise InputError(f"'{number}' is not a build number", hint=hint)
    change = raise_build_number if number.startswith("+") else set_build_number
    return f"Build number {number}", _of_recipe(change, int(digits))


@_edit("maintainer")
@click.argument("action", type=click.Choice(["add", "drop"]))
@click.argument("name")
def _maintainer(action: str, name: str) -> tuple[str, Edit]:
    """Add or drop the maintainer NAME, a user or team on GitHub."""
    from feedstock_tools.edit.keys import add_maintainer, drop_maintainer

    change = {"add": add_maintainer, "drop": drop_maintainer}[action]
    return f"{action.capitalize()} maintainer {name}", _of_recipe(change, name)


@_edit("requirement")
@click.argument("action", type=click.Choice(["add", "drop", "limit", "pin"]))
@click.argument("requirement")
@click.option(
    "--section",
    type=click.Choice(["build", "host", "run", "run_constrained", "run_constraints"]),
    help="Section of the requirements (default: all but for add).",
)
@click.option("--of", "output", metavar="OUTPUT", help="Output that is edited (default: all; add: the recipe).")
@click.option(
    "--if", "condition", metavar="CONDITION", help="Selector, or `if` of a recipe.yaml, that it stands under."
)
def _requirement(action: str, requirement: str, **given: str | None) -> tuple[str, Edit]:
    """Add, drop, limit or pin REQUIREMENT, such as 'numpy >=2'.

    `drop` removes each requirement that names the package, `pin` gives it the version constraint after the name,
    `limit` adds the condition of --if to its own.
    """
    from feedstock_tools.edit import requirements

    change = {
        "add": requirements.add_requirement,
        "drop": requirements.drop_requirement,
        "limit": requirements.limit_requirement,
        "pin": requirements.pin_requirement,
    }[action]
    where = requirements.Where(**given)
    return f"{action.capitalize()} requirement {requirement}", _of_recipe(change, requirement, where)


def _add_and_drop(word: str, title: str) -> None:
    """The edits that add and drop a version of CUDA or Python."""

    @_edit(
        f"add-{word}",
        needs_pinning=True,
        help=f"Build for {title} VERSION too: in the recipe's variant file, or by a migration.",
    )
    @click.argument("version")
    @click.option(
        "--with",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        help="Value that goes with the version (in place of its neighbour's or the migration's; repeatable).",
    )
    @click.option(
        "--migration",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Migration to apply, whether or not the pinning has it (the feedstock keeps it as its own).",
    )
    def _add(version: str, pairs: tuple[str, ...], migration: Path | None, pinning: str | None) -> tuple[str, Edit]:
        from feedstock_tools.edit.variants import versions

        key, values = _key(title), _values("--with", pairs)

        def change(draft: Draft) -> Draft:
            found = _pinning_for(draft.folder, pinning)
            source = migration or (found.migrations_folder if found else None)
            return versions.add_version(draft, key, version, source, values, found.path if found else None)

        return f"Add {title} {version}", change

    @_edit(
        f"drop-{word}",
        needs_pinning=True,
        help=f"Stop building for {title} VERSION: unlist it, remove its migration, or skip it.",
    )
    @click.argument("version")
    def _drop(version: str, pinning: str | None) -> tuple[str, Edit]:
        from feedstock_tools.edit.variants import versions

        key = _key(title)

        def change(draft: Draft) -> Draft:
            found = _pinning_for(draft.folder, pinning)
            return versions.drop_version(draft, key, version, found.path if found else None)

        return f"Drop {title} {version}", change


def _key(title: str) -> VersionKey:
    from feedstock_tools.edit.variants.lists import CUDA, PYTHON

    return {key.title: key for key in (CUDA, PYTHON)}[title]


_add_and_drop("cuda", "CUDA")
_add_and_drop("python", "Python")


@_edit("migration", needs_pinning=True)
@click.argument("action", type=click.Choice(["add", "drop"]))
@click.argument("name")
@click.option(
    "--migration",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Migration to apply, whether or not the pinning has it (its name is that of the file).",
)
def _migration(action: str, name: str, file: Path | None, pinning: str | None) -> tuple[str, Edit]:
    """Add or drop the migration NAME of the pinning, as conda-forge's bot does; added, it raises the build number."""
    from feedstock_tools.edit.migrations import add_migration, drop_migration

    if action == "drop":
        return f"Drop migration {name}", lambda draft: drop_migration(draft, name)

    def change(draft: Draft) -> Draft:
        found = None if file else _pinning_for(draft.folder, pinning)
        return add_migration(draft, name, file or (found.migrations_folder if found else None))

    return f"Rebuild for {name.removesuffix('.yaml')}", change


@_edit("pinning")
@click.argument("action", type=click.Choice(["open", "close"]))
@click.argument("migration", metavar="KEY=VERSION|NAME")
@click.option(
    "--with", "pairs", multiple=True, metavar="KEY=VALUE", help="Value that goes with the version (repeatable)."
)
def _pinning(action: str, migration: str, pairs: tuple[str, ...]) -> tuple[str, Edit]:
    """Open a migration to KEY=VERSION in a clone of conda-forge's pinning, or close the migration NAME there."""
    from feedstock_tools.edit.migrations import close_migration, open_migration

    if action == "close":
        return f"Close out migration for {migration}", lambda draft: close_migration(draft, migration)
    ((key, version),) = _values("pinning open", (migration,)).items()
    others, at = _values("--with", pairs), time.time()
    return f"Update pin for {key}", lambda draft: open_migration(draft, key, version, others, at)


@_edit("setting")
@click.argument("action", type=click.Choice(["set", "drop"]))
@click.argument("setting", metavar="KEY=VALUE|KEY")
def _setting(action: str, setting: str) -> tuple[str, Edit]:
    """Set or drop a KEY of conda-forge.yml, such as bot.automerge=true; the VALUE is written as it is given."""
    from feedstock_tools.edit.platforms import drop_setting, set_setting

    if action == "drop":
        return f"Drop the setting {setting}", lambda draft: drop_setting(draft, setting)
    ((key, value),) = _values("setting set", (setting,)).items()
    return f"Set {setting}", lambda draft: set_setting(draft, key, value)


@_edit("noarch")
@click.argument("kind", type=click.Choice(["python", "generic"]))
def _noarch(kind: str) -> tuple[str, Edit]:
    """Build one package for all platforms: set build.noarch."""
    from feedstock_tools.edit.keys import set_noarch

    return f"Build noarch: {kind}", _of_recipe(set_noarch, kind)


@_edit("license-file")
@click.argument("path")
def _license_file(path: str) -> tuple[str, Edit]:
    """Name the file with the license: PATH in the source."""
    from feedstock_tools.edit.keys import set_license_file

    return f"Name the license file {path}", _of_recipe(set_license_file, path)


def _by_rules(name: str, title: str, *rules: str) -> None:
    """An edit that writes anew what rules of conda-forge's linter find."""

    @_edit(name, needs_pinning=True, help=f"{title}: what `lint --fix` does for {' and '.join(rules)}.")
    def _rules(pinning: str | None) -> tuple[str, Edit]:
        from feedstock_tools.check.linting.lint import rewritten

        def change(draft: Draft) -> Draft:
            found = _pinning_for(draft.folder, pinning)
            edits = rewritten(draft, *rules, pinning=found.path if found else None)
            return draft.with_recipe(lambda recipe: recipe.changed(edits))

        return title, change


_by_rules("stdlib", "Require the standard library of C beside compilers", "stdlib")
_by_rules("python-min", "Require python_min in noarch packages", "python-bound", "python-min")


@_edit("platform")
@click.argument("action", type=click.Choice(["add"]))
@click.argument("platform")
@click.option("--native", is_flag=True, help="Build it on its own machines (default: crossed where conda-forge can).")
def _platform(action: str, platform: str, native: bool) -> tuple[str, Edit]:
    """Build for PLATFORM too, such as linux-aarch64."""
    from feedstock_tools.edit.platforms import add_platform

    return f"{action.capitalize()} {platform}", lambda draft: add_platform(draft, platform, native=native)


@_edit("provider")
@click.argument("platform")
@click.argument("service")
def _provider(platform: str, service: str) -> tuple[str, Edit]:
    """Have the CI SERVICE build PLATFORM: azure, github_actions, circle, travis, …"""
    from feedstock_tools.edit.platforms import set_provider

    return f"Build {platform} on {service}", lambda draft: set_provider(draft, platform, service)


@_edit("enable-gpu", needs_pinning=True)
@click.option(
    "--library",
    "libraries",
    multiple=True,
    metavar="NAME",
    help="Library that CUDA builds link: cublas, cudnn, … (repeatable).",
)
@click.option(
    "--of",
    "outputs",
    multiple=True,
    metavar="OUTPUT",
    help="Output that is edited (repeatable; default: all with a compiler).",
)
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    metavar="PLATFORM",
    help="This platform only, such as linux-64 (repeatable; default: all that the pinning has CUDA for).",
)
@click.option(
    "--prefer",
    type=click.Choice(["gpu", "cpu"]),
    default="gpu",
    show_default=True,
    help="Build that a solver takes where both fit.",
)
@click.option(
    "--by",
    type=click.Choice(["build_number", "track_features", "both"]),
    default="build_number",
    show_default=True,
    help="Means of that preference.",
)
@click.option(
    "--guard",
    type=click.Choice(["major", "minor", "any", "none"]),
    default="major",
    show_default=True,
    help="What CUDA builds require of the driver.",
)
@click.option("--metapackages", is_flag=True, help="Add NAME-gpu and NAME-cpu, which pin one build each.")
@click.option(
    "--architectures",
    default="common",
    show_default=True,
    metavar="PRESET|LIST",
    help="GPU architectures: a preset, or sm_80,compute_80.",
)
@click.option(
    "--configure",
    multiple=True,
    metavar="OPTION",
    help="Option of the project that turns CUDA on, such as -DUSE_CUDA=ON (repeatable).",
)
@click.option(
    "--gpu-file",
    "gpu_files",
    multiple=True,
    metavar="PATH",
    help="File of the package that holds GPU code in CUDA builds alone, such as lib/libx.so (repeatable).",
)
@click.option("--test", "tests", multiple=True, metavar="COMMAND", help="Test of CUDA builds (repeatable).")
def _enable_gpu(pinning: str | None, **wishes: Any) -> tuple[str, Edit]:
    """Build the recipe for CUDA too, beside each build for CPUs.

    Adds compiler, libraries, build strings, build numbers, the guard on the driver, GPU architectures and tests, in the
    form that the pinning's CUDA versions need.
    """
    from feedstock_tools.edit.variants.lists import CUDA, versions_in
    from feedstock_tools.enable_gpu import GpuWishes, enable_gpu

    wanted = GpuWishes(**wishes)

    def change(draft: Draft) -> Draft:
        found = _pinning_for(draft.folder, pinning)
        edited = enable_gpu(draft, wanted, found.path if found else None)
        if found is None and not any(versions_in(migration, CUDA.name) for migration in draft.migrations):
            hint = "No job could be rendered. Give conda-forge's pinning with --pinning."
            raise InputError("without a pinning no version of CUDA is known", path=draft.recipe_path, hint=hint)
        return edited

    return "Build for CUDA too", change


@_edit("to-v1")
@click.option("--anyway", is_flag=True, help="Write a refused recipe too, beside the meta.yaml; the exit code is 1.")
def _to_v1(anyway: bool) -> tuple[str, Edit]:
    """Convert the meta.yaml to a recipe.yaml, which rattler-build builds.

    What cannot be converted is listed with its line. A recipe that rattler-build or conda-smithy refuses, or that makes
    other packages in some configuration, is not written.
    """
    from feedstock_tools.to_v1 import to_v1

    return "Convert the recipe to recipe.yaml", lambda draft: to_v1(draft, keep_refused=anyway)
