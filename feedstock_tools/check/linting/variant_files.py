"""Rules about files beside the recipe: keys that nothing uses, migrations that are over, a spec that has mistakes, that
git ignores or whose placeholders nobody replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from feedstock_tools.check.linting.subject import LintFinding, Subject
from feedstock_tools.check.renderings import Job
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.git import left_out
from feedstock_tools.generate.spec.review_checks import NO_VERSION, PLACEHOLDERS
from feedstock_tools.reading import CI_SUPPORT, GENERATED, SPEC_NAME
from feedstock_tools.recipe.written.document import Document, read_document
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.source import migrations_of
from feedstock_tools.versions import parse_version

#: Keys that say where and how a job runs, and those that some version of conda-smithy keeps in any case.
_KEPT = frozenset(
    {
        *("BUILD", "cdt_arch", "cdt_name", "c_stdlib", "c_stdlib_version", "github_actions_labels", "macos_machine"),
        *("pin_run_as_build", "zip_keys", "ignore_version", "ignore_build_only_deps", "extend_keys", "target_platform"),
        *("python_min", "channel_sources", "channel_targets", "docker_image", "build_number_decrement"),
        *("CONDA_BUILD_SYSROOT", "MACOSX_DEPLOYMENT_TARGET", "MACOSX_SDK_VERSION", "VERBOSE_AT", "VERBOSE_CM"),
    }
)
#: What selectors call a key.
_SHORT = {"python": "py", "numpy": "np"}
#: Keys that functions read: some versions of conda-smithy keep more of them than a recipe uses.
_LANGUAGE = re.compile(r"\w+_(?:compiler|stdlib)(?:_version)?")
_WORDS = re.compile(r"[A-Za-z_]\w*")


def unused_keys(subject: Subject) -> Iterator[LintFinding]:
    """Keys in `.ci_support` that neither recipe nor scripts use: the recipe changed, and was not rerendered."""
    by_key: dict[str, list[Job]] = {}
    rules = Rules.newest()
    words = cache(lambda: _words_of_recipe(subject))
    for job in subject.jobs:
        if not job.packages:
            continue
        used = set(_KEPT | rules.always_kept)
        for package in job.packages:
            used |= package.output.used.own | package.output.used.top_level
        used |= set(rules.used_with_mpi if "mpi" in used else ())
        for group in job.configuration.zip_keys:
            if used & set(group):
                used |= set(group)
        for key in job.configuration.values.keys() - used:
            if not _LANGUAGE.fullmatch(key) and not _is_named(key, words()):
                by_key.setdefault(key, []).append(job)
    for key, jobs in sorted(by_key.items()):
        folder = subject.files.folder
        document = read_document(folder / CI_SUPPORT / f"{jobs[0].name}.yaml", within=folder)
        entry = next(document.entries(key), None)
        more = f" (and in {len(jobs) - 1} more)" if len(jobs) > 1 else ""
        message = f"nothing uses {key}{more}: rerender the feedstock"
        yield subject.finding(entry.start if entry else 0, "unused-key", message, document=document)


def ignored_spec(subject: Subject) -> Iterator[LintFinding]:
    """A spec, or the record of what it generated, that git ignores: conda-smithy's `.gitignore` hides both."""
    folder = subject.files.folder
    paths = [path for name in (SPEC_NAME, GENERATED) if (path := folder / name).is_file()]
    for name in left_out(folder, paths) if paths else ():
        message = "git ignores this file, so that clones lack it: `feedstock-tools generate --commit` adds it"
        yield LintFinding(name, 1, "ignored-spec", message)


def invalid_spec(subject: Subject) -> Iterator[LintFinding]:
    """Mistakes for which `generate` and `build` refuse the spec; what its local sources lack is a missing file."""
    folder = subject.files.folder
    file = folder / SPEC_NAME
    if not file.is_file():
        return
    from feedstock_tools.generate.spec.reading import read_spec, require_licenses, require_local_sources

    try:
        spec = read_spec(folder)
    except InputError as error:
        yield from subject.refused(error, "invalid-spec")
        return
    for require in (require_local_sources, require_licenses):
        try:
            require(spec, file)
        except InputError as error:
            yield from subject.refused(error, "missing-file")


#: Key of `PLACEHOLDERS` → what to write, and its places in specs and recipes.
_TO_WRITE: Mapping[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "homepage": ("the project's page", (("about", "homepage"), ("about", "home"))),
    "license": ("its SPDX expression", (("about", "license"),)),
    "summary": ("what the package is for", (("about", "summary"),)),
    "maintainers": ("names on GitHub", (("maintainers",), ("extra", "recipe-maintainers"))),
    "version": ("the project's version", (("version",),)),
}


def placeholders(subject: Subject) -> Iterator[LintFinding]:
    """What `init` wrote in place of what a project does not say, in the spec, or in a recipe without one."""
    folder = subject.files.folder
    document = subject.recipe
    if (folder / SPEC_NAME).is_file():
        document = read_document(folder / SPEC_NAME, within=folder)
        try:
            _ = document.root
        except InputError:  # which `invalid_spec` reports
            return
    for key, (what, places) in _TO_WRITE.items():
        pattern = re.escape(PLACEHOLDERS[key]).replace(re.escape("{name}"), r"\S+")
        for entry in (entry for place in places for entry in document.entries(*place)):
            for leaf in entry.value.leaves:
                if re.fullmatch(pattern, leaf.text) and (
                    key != "version" or document.comment_after(entry) == NO_VERSION
                ):
                    message = f"'{leaf.text}' is a placeholder: write {what}"
                    yield subject.finding(leaf.start, "placeholder", message, document=document)


def _is_named(key: str, words: frozenset[str] | None) -> bool:
    """Whether the recipe's files name a key, or may do so."""
    if words is None or _SHORT.get(key) in words:
        return True
    return key in words or key.replace("_", "-") in words or (key.startswith("cdt_") and "cdt" in words)


def _words_of_recipe(subject: Subject) -> frozenset[str] | None:
    """All words in the text files of the recipe's folder; None if it holds too much text to be a recipe's."""
    words: set[str] = set()
    for text in subject.texts or ():
        words |= set(_WORDS.findall(text)) | set(re.findall(r"[A-Za-z_][\w-]*", text))
    return None if subject.texts is None else frozenset(words)


def stale_migrations(subject: Subject) -> Iterator[LintFinding]:
    """Migrations in `.ci_support/migrations` that the pinning no longer has, or that no job follows."""
    finished: frozenset[Path] = frozenset()
    if subject.pinning is not None:
        finished = frozenset(migrations_of(subject.files.folder, subject.pinning, Rules.newest()).finished)
    values: dict[str, set[str]] = {}
    for job in subject.jobs:
        for key, listed in job.configuration.values.items():
            values.setdefault(key, set()).update(listed)
    for document in subject.files.migrations:
        if document.path in finished:
            message = "the pinning no longer has this migration: it is over, and a rerender removes it"
            yield subject.finding(0, "stale-migration", message, document=document)
        elif values and (wrong := _why_without_effect(document, values)):
            yield subject.finding(*wrong, document=document)


def _why_without_effect(document: Document, values: dict[str, set[str]]) -> tuple[int, str, str] | None:
    """Why no job follows a migration: nothing uses its keys, or all jobs have other values."""
    root = document.root
    if root is None:
        return None
    settings = next(document.entries("__migrator"), None)
    operation = settings.value.members.get("operation") if settings else None
    if operation is not None and operation.text != "key_add":
        return None
    entries = [entry for entry in root.entries if not entry.key.startswith("__") and entry.key not in _NOT_KEYS]
    used = [entry for entry in entries if entry.key in values]
    if entries and not used:
        names = ", ".join(entry.key for entry in entries[:3])
        return entries[0].start, "stale-migration", f"nothing here uses what this migration changes ({names})"
    for entry in used:
        wanted = {item.text for item in entry.value.items if item.kind == "scalar"} or {entry.value.text}
        if not _are_older(wanted, values[entry.key]):
            return None
    if not used:
        return None
    first = used[0]
    newer = ", ".join(sorted(values[first.key])[:3])
    message = f"all jobs have a newer {first.key} than this migration brings: {newer}"
    return first.start, "stale-migration", message


def _are_older(wanted: set[str], current: set[str]) -> bool:
    """Whether all values of a migration are versions before those that jobs have."""
    try:
        newest = max(parse_version(text.split(" ")[0].removesuffix(".*")) for text in wanted)
        oldest = min(parse_version(text.split(" ")[0].removesuffix(".*")) for text in current)
    except ValueError:
        return False
    return newest < oldest


_NOT_KEYS = frozenset({"migrator_ts", "zip_keys", "pin_run_as_build"})
