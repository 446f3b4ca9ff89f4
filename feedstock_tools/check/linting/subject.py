"""What the rules look at: a feedstock's files as text, and what its jobs render to; and what they report."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Literal

from feedstock_tools.check.findings import Weight
from feedstock_tools.check.renderings import Job, Renderings
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import LARGEST_SCRIPT, read_bytes, read_text
from feedstock_tools.recipe.packages import Package, name_in
from feedstock_tools.recipe.written.document import Document, WrittenFiles
from feedstock_tools.recipe.written.owners import Owner, outputs_of
from feedstock_tools.rerender.configuration import NO_LOOP, Configuration, rows_of
from feedstock_tools.rerender.source import Pinning

#: What a rule compares with: without it, its answer is unknown.
Need = Literal["files", "jobs", "pinning", "shellcheck"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: what it means, what it needs besides the recipe's files, and what conda-smithy calls it."""

    meaning: str
    needs: Need = "files"
    smithy: str = ""


OWN_RULES: Mapping[str, Rule] = {
    "ambiguous-builds": Rule(
        "nothing in the metadata keeps a solver from the CUDA build where there is no GPU", "jobs"
    ),
    "colliding-packages": Rule("two builds have one file name and different contents", "jobs"),
    "conda-smithy": Rule("conda-forge's own linter reports it"),
    "dead-selector": Rule("a selector can never be true, or holds in no job", "jobs"),
    "duplicate-requirement": Rule("a requirement is in a list twice"),
    "ignored-spec": Rule("git ignores the spec, so that clones lack it"),
    "invalid-spec": Rule("the spec has a mistake, so that nothing can be generated from it"),
    "license": Rule("the license is not an SPDX expression, or an obsolete one", smithy="R-007, R-010, R-044, R-045"),
    "license-file": Rule("the recipe names no license file", smithy="R-013"),
    "loose-metapackage": Rule(
        "a package without files does not pin its sibling to the build that it stands for", "jobs"
    ),
    "missing-file": Rule("a local source, a patch, a script, a test file or a license file does not exist"),
    "no-package": Rule("a job, or all of them, builds no package", "jobs"),
    "not-rendered": Rule("the recipe cannot be rendered for a job", "jobs"),
    "placeholder": Rule("what `init` writes where a project does not say it is still there"),
    "refused-value": Rule("conda-build refuses a name, a version, a build string or number, or a requirement", "jobs"),
    "run-exports": Rule("run exports do not fit the outputs that they name or that link to them", "pinning"),
    "stale-migration": Rule("a migration is over, or changes nothing here", "pinning"),
    "undefined-name": Rule("a template reads a name that nothing defines", "jobs"),
    "unbuilt-pin": Rule("an output pins a build of another that is not built together with it", "jobs"),
    "unused-key": Rule("nothing uses a key of a variant file", "jobs"),
}
#: The most rows of a job; more are a product of lists that no feedstock has.
_MOST_ROWS = 500
#: Characters of a recipe's folder that are searched for names.
_MOST_TEXT = 4 << 20


@dataclass(frozen=True, slots=True, order=True)
class LintFinding:
    """One finding: the file relative to the feedstock, its line and column (from 1), the rule, and what is wrong.

    A remark is on what works, but not as well as it could; `fixable` findings are mended by `--fix`.
    """

    path: str
    line: int
    rule: str
    message: str
    fixable: bool = False
    weight: Weight = "mistake"
    column: int = 1


@dataclass(frozen=True)
class Subject:
    """A feedstock to lint: its files, its jobs, and the pinning whose migrations are the current ones, if any."""

    files: WrittenFiles
    jobs: tuple[Job, ...]
    pinning: Pinning | None = None

    @property
    def recipe(self) -> Document:
        return self.files.recipe

    @cached_property
    def rows(self) -> tuple[tuple[Platform, Mapping[str, str]], ...]:
        """The platform and values of each row of each job; empty if a job has too many."""
        if any(_rows_at_most(job.configuration) > _MOST_ROWS for job in self.jobs):
            return ()
        try:
            return tuple((job.platform, row.values) for job in self.jobs for row in rows_of(job.configuration))
        except FeedstockError:
            return ()

    @cached_property
    def _built(self) -> tuple[tuple[Job, Package], ...]:
        return tuple((job, package) for job in self.jobs for package in job.packages)

    @cached_property
    def outputs(self) -> frozenset[str]:
        """The names of all packages."""
        return frozenset(package.name for _, package in self._built)

    @cached_property
    def builds(self) -> Mapping[tuple[Platform, str], Mapping[str, set[str]]]:
        """What users of a platform can install of a package: its build strings, by the CUDA that they are for."""
        found: dict[tuple[Platform, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for job, package in self._built:
            found[job.platform, package.name][cuda_of(package)].add(package.output.build_string)
        return found

    @cached_property
    def subdirs(self) -> Mapping[str, Set[str]]:
        """The platforms that a package differs by in its build strings."""
        own = ((job, package) for job, package in self._built if not package.output.noarch)
        of_string = {(package.name, package.output.build_string): job.platform.subdir for job, package in own}
        found: dict[str, set[str]] = defaultdict(set)
        for (name, _), subdir in of_string.items():
            found[name].add(subdir)
        return found

    @cached_property
    def exporting(self) -> Set[str]:
        """The packages that have run exports in some job, and those that are exported."""
        return {
            name
            for _, package in self._built
            for specs in package.run_exports.values()
            for spec in specs
            for name in (package.name, name_in(spec))
        }

    @cached_property
    def texts(self) -> tuple[str, ...] | None:
        """The text files of the recipe's folder, without patches; None if they hold too much to be a recipe's."""
        texts: list[str] = []
        folder = self.files.recipe_path.parent
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.suffix not in {".patch", ".diff"}:
                try:
                    texts.append(read_bytes(path, LARGEST_SCRIPT, within=folder).decode(errors="replace"))
                except FeedstockError:
                    continue
                if sum(map(len, texts)) > _MOST_TEXT:
                    return None
        return tuple(texts)

    @cached_property
    def _outputs(self) -> dict[str, Owner]:
        outputs = (owner for owner in outputs_of(self.recipe) if owner.kind == "output")
        return {name: output for output in outputs for name in (*output.written_names[:1], output.name)}

    def output(self, name: str) -> Owner | None:
        """The output as it is written, if its name is, or follows from the variables of the recipe."""
        return self._outputs.get(name)

    def finding(
        self,
        offset: int,
        rule: str,
        message: str,
        *,
        document: Document | None = None,
        fixable: bool = False,
        weight: Weight = "mistake",
    ) -> LintFinding:
        """A finding at a character of a document, default the recipe."""
        at = document or self.recipe
        return LintFinding(
            self.path_of(at.path), at.line_of(offset), rule, message, fixable, weight, at.column_of(offset) + 1
        )

    def refused(self, error: InputError, rule: str) -> Iterator[LintFinding]:
        """Each mistake of a file that cannot be used, at its place; without its hint, which may name this machine."""
        for mistake in error.mistakes:
            path = self.path_of(mistake.path or self.recipe.path)
            yield LintFinding(path, mistake.line or 1, rule, mistake.message, column=mistake.column or 1)

    def path_of(self, path: Path | None) -> str:
        """A path relative to the feedstock; '' for one that is not in it."""
        folder = self.files.folder
        path = path.parent.resolve() / path.name if path is not None else folder.parent
        return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else ""

    def pinned(self, key: str) -> str:
        """The first version that the pinning has for a key; '' without a pinning or a version there."""
        text = read_text(self.pinning.config, within=None) if self.pinning is not None else ""
        match = re.search(rf"^{key}:[^\n]*\n(?:\s*#[^\n]*\n)*\s*- ['\"]?([\w.]+)", text, re.MULTILINE)
        return match[1] if match else ""

    def place_of(self, name: str) -> int:
        """The character where an output is named; the top of the recipe if templates name several."""
        paths = (("outputs", "*", "name"), ("outputs", "*", "package", "name"), ("package", "name"))
        entries = (entry for keys in paths for entry in self.recipe.entries(*keys))
        found = list(entries)
        same = next((entry.start for entry in found if entry.value.text == name), None)
        only = found[0].start if len(found) == 1 else 0
        return only if same is None else same

    def place_in(self, name: str, word: str) -> int:
        """The character of the first line about `word` below the name of an output, else that of the name."""
        start = self.place_of(name)
        at = start
        for line in self.recipe.text[start:].splitlines(keepends=True):
            if word in line and not line.lstrip().startswith("#") and at > start:
                return at
            at += len(line)
        return start


def cuda_of(package: Package) -> str:
    """The CUDA version that a build differs by from others, in words."""
    if "cuda_compiler_version" not in package.output.used.own:
        return "any"
    version = package.output.variant.get("cuda_compiler_version", "None")
    return "CPU" if version in ("", "None") else f"CUDA {version}"


def has_files(output: Owner | None) -> bool:
    """Whether an output of a recipe with several has files of its own."""
    return output is None or output.fills_its_package


def read_subject(files: WrittenFiles, renderings: Renderings, pinning: Pinning | None = None) -> Subject:
    """The files of a feedstock, and its jobs as they render.

    Raises:
        InputError: conda-forge.yml or a configuration cannot be read.
    """
    if renderings.configurations:
        renderings.forge  # noqa: B018 - an invalid one is a mistake of no single job
    jobs = tuple(map(renderings.job, renderings.configurations))
    return Subject(files, jobs, pinning)


def _rows_at_most(configuration: Configuration) -> int:
    """The number of rows of a job, counted without making them; too high where keys are zipped."""
    zipped = [frozenset(group) for group in configuration.zip_keys]
    lengths = [max((len(configuration.values.get(key, ())) for key in group), default=1) for group in zipped]
    alone = configuration.values.keys() - NO_LOOP - frozenset().union(*zipped)
    return prod([*lengths, *(len(configuration.values[key]) for key in alone if configuration.values[key])])
