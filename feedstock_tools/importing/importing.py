"""An existing recipe as the spec that generates it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.files.changes import Changes
from feedstock_tools.generate.spec.reading import spec_from_text, with_time_stamps
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.generate.texts.wording import quoted
from feedstock_tools.importing.content import Content, recipe_content
from feedstock_tools.importing.inference import mask_of
from feedstock_tools.importing.output_content import COMMENT
from feedstock_tools.importing.samples import Sample, take_samples
from feedstock_tools.importing.verification import Difference, compare, with_ignored_keys, with_used_keys
from feedstock_tools.reading import SPEC_NAME
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.source import Source, read_source
from feedstock_tools.stages import stage

_WIDTH = 120
_NOT_IN_FLOW = re.compile(r"""[,\[\]{}"'#&*!|>%@`\n]|: |:$|^[\s?:-]|\s$""")
#: Keys whose lists are names, which one line holds.
_FLOWING = frozenset({"maintainers", "imports", "requires", "license_file", "migrations", "architectures"})
#: Keys before which a blank line makes the file easier to read.
_SECTIONS = frozenset({"sources", "platforms", "build", "cuda", "variants", "skip", "outputs", "about", "maintainers"})


def spec_text(content: Mapping[str, Any]) -> str:
    """The text of a spec."""
    lines: list[str] = []
    for key, value in content.items():
        if key.removeprefix(f"{COMMENT} ") in _SECTIONS and lines and not lines[-1].startswith(COMMENT):
            lines.append("")
        lines += _keyed(key, value, 0)
    spaced = [line for previous, line in zip(["", *lines], lines, strict=False) if line or previous]
    return "\n".join(spaced).rstrip() + "\n"


def _keyed(key: str, value: Any, indent: int) -> list[str]:
    blank = " " * indent
    name = f"{blank}{quoted(str(key))}:"
    if key.startswith(COMMENT):
        return [f"{blank}{COMMENT} {line}".rstrip() for line in value]
    if isinstance(value, str) and "\n" in value:
        return [
            f"{name} |{'2' if value[0] == ' ' else ''}",
            *(f"{blank}  {line}".rstrip() for line in value.splitlines()),
        ]
    if isinstance(value, Mapping) and value:
        if not any(value.values()):
            return [f"{name} {{{', '.join(value)}}}"]  # platforms, each built on itself
        short = f"{name} {_flow(value)}" if _is_short(value) else ""
        if short and len(short) <= _WIDTH and (key not in _SECTIONS or len(value) == 1):
            return [short]
        return [name, *(line for inner, child in value.items() for line in _keyed(inner, child, indent + 2))]
    if isinstance(value, list) and value:
        short = f"{name} [{', '.join(map(_in_flow, value))}]" if all(isinstance(item, str) for item in value) else ""
        if short and len(short) <= _WIDTH and (key in _FLOWING or len(value) == 1):
            return [short]
        return [name, *(line for item in value for line in _item(item, indent + 2, key == "outputs"))]
    return [f"{name} {_scalar(value)}".rstrip()]


def _item(item: Any, indent: int, spaced: bool) -> list[str]:
    blank = " " * indent
    if isinstance(item, Mapping):
        short = f"{blank}- {_flow(item)}" if _is_short(item) and "name" not in item else ""
        if short and len(short) <= _WIDTH:
            return [short]
        first, *rest = (line for key, value in item.items() for line in _keyed(key, value, indent + 2))
        lines = [f"{blank}- {first.strip()}", *rest]
        return [*lines, ""] if spaced else lines
    if isinstance(item, list):
        return [f"{blank}- [{', '.join(map(_in_flow, item))}]"]
    return [f"{blank}- {_scalar(item)}"]


def _is_short(value: Mapping[str, Any]) -> bool:
    return all(isinstance(item, str | int) and "\n" not in str(item) for item in value.values())


def _flow(value: Mapping[str, Any]) -> str:
    return f"{{{', '.join(f'{key}: {_in_flow(item)}' for key, item in value.items())}}}"


def _in_flow(value: Any) -> str:
    text = str(value)
    if '"' in text and "'" not in text and "\\" not in text and "\n" not in text:
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False) if not text or _NOT_IN_FLOW.search(text) else text


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list):
        return "[]"
    text = str(value)
    if text in ("true", "false") or re.fullmatch(r"\d+(\.\d+)*", text):
        return text
    if '"' in text and "'" not in text and "\\" not in text and json.dumps(text) == quoted(text):
        return f"'{text}'"
    return quoted(text)


@dataclass(frozen=True, slots=True)
class VerbatimBlock:
    """A block that the spec copies: the output that it belongs to (None: the recipe), its section, and its lines."""

    output: str | None
    section: str
    lines: int


@dataclass(frozen=True, slots=True)
class Imported:
    """The spec of a recipe.

    `text` is the spec, `texts` are the generated files by path. `verbatim` are the blocks that the spec copies, `lost`
    what it cannot hold, and `differences` what the generated recipe changes in the packages; `configurations` is the
    number of configurations in which both were rendered, `comments_left` the number of comment lines that only the
    recipe has. `text_differences` are the differences in the packages' tests, scripts and descriptions.
    """

    feedstock: Path
    text: str
    texts: Mapping[PurePosixPath, str]
    outputs: int
    verbatim: tuple[VerbatimBlock, ...]
    lost: tuple[str, ...]
    differences: tuple[Difference, ...]
    configurations: int
    comments_left: int = 0
    text_differences: tuple[Difference, ...] = ()

    @property
    def lines(self) -> int:
        """The lines of the spec that are not blank."""
        return sum(1 for line in self.text.splitlines() if line.strip())

    @property
    def verbatim_lines(self) -> int:
        """The lines of the spec that are copied."""
        return sum(block.lines for block in self.verbatim)

    def write(self, *, force: bool = False) -> Path:
        """Write the spec into the feedstock; gives its path.

        Raises:
            InputError: there is one already, and `force` is False.
        """
        path = self.feedstock / SPEC_NAME
        if not force:
            refuse_spec(self.feedstock)
        Changes(self.feedstock, {path: self.text.encode()}).apply()
        return path


def refuse_spec(feedstock: Path) -> None:
    """Refuse a feedstock that has a spec.

    Raises:
        InputError: the feedstock has a spec.
    """
    if (feedstock / SPEC_NAME).exists():
        raise InputError("is there already", path=feedstock / SPEC_NAME, hint="Replace it with --force.")


def import_recipe(feedstock: Path, *, pinning: Path | None = None, rules: Rules | None = None) -> Imported:
    """The spec whose generated recipe renders to what the recipe of a feedstock renders to. Nothing is written.

    Args:
        pinning: conda-forge's pinning; the recipe is read with its variants, besides the configurations that the
            feedstock has.
        rules: which versions of conda-smithy and conda-build to follow; default the newest.

    Raises:
        InputError: the recipe, its variants or the pinning are invalid; with file and line.
        BoundError: the recipe distinguishes more variants than the limit.

    >>> found = import_recipe(Path("solver-feedstock"), pinning=Path("pinning"))
    >>> found.outputs, found.differences
    (5, ())
    """
    rules = rules or Rules.newest()
    stage("reading the recipe and rendering it in each configuration")
    source, recipe = _read(feedstock, pinning, rules)
    text, texts = _generated(recipe.content, source)
    stage("comparing what the recipe and its spec make")
    comparison = compare(feedstock, texts, pinning, rules)
    for with_keys in (with_used_keys, with_ignored_keys):
        if comparison.differences and comparison.configurations:
            keyed = with_keys(recipe, comparison)
            keyed_text, keyed_texts = _generated(keyed.content, source)
            keyed_comparison = compare(feedstock, keyed_texts, pinning, rules)
            if len(keyed_comparison.differences) < len(comparison.differences):
                recipe, text, texts, comparison = keyed, keyed_text, keyed_texts, keyed_comparison
    return Imported(
        feedstock,
        text,
        texts,
        len(recipe.content["outputs"]),
        tuple(_blocks(recipe.content)),
        recipe.lost,
        comparison.differences,
        len(comparison.configurations),
        recipe.comments_left,
        comparison.texts,
    )


def contents_of(feedstocks: Sequence[Path], pinning: Path | None, rules: Rules) -> list[Mapping[str, Any]]:
    """The contents of the specs of a recipe in two states: what each says of the settings that either builds."""
    read = [_sampled(feedstock, pinning, rules) for feedstock in feedstocks]
    common = sorted(frozenset.intersection(*(samples[0].looping for _, samples in read)))

    def place(sample: Sample) -> tuple[object, ...]:
        values = (sample.variant.get(key) for key in common)
        return (sample.setting.platform, sample.setting.build_platform, *values)

    built = {place(sample) for _, samples in read for sample in samples if not sample.tree.skip}
    return [
        recipe_content(
            source,
            samples,
            _feedstock_name(source, samples),
            mask_of(index for index, sample in enumerate(samples) if place(sample) in built),
        ).content
        for source, samples in read
    ]


def _read(feedstock: Path, pinning: Path | None, rules: Rules) -> tuple[Source, Content]:
    source, samples = _sampled(feedstock, pinning, rules)
    return source, recipe_content(source, samples, _feedstock_name(source, samples))


def _sampled(feedstock: Path, pinning: Path | None, rules: Rules) -> tuple[Source, Sequence[Sample]]:
    source = read_source(feedstock, pinning, rules)
    samples = take_samples(source)
    if not any(sample.built for sample in samples):
        raise InputError("the recipe builds nothing in any configuration", path=source.recipe)
    return source, samples


def _feedstock_name(source: Source, samples: Sequence[Sample]) -> str:
    """The feedstock's name: the one that the recipe states, else that of the folder."""
    name = samples[0].tree.extra.get("feedstock-name")
    if isinstance(name, str) and name:
        return name
    return source.forge.folder.resolve().name.removesuffix("-feedstock").lower()


def _generated(content: Mapping[str, Any], source: Source) -> tuple[str, Mapping[PurePosixPath, str]]:
    text = spec_text(content)
    try:
        spec = spec_from_text(text, source.forge.folder / SPEC_NAME, source.recipe.parent)
        return text, render(with_time_stamps(spec, source.forge.folder, None))
    except InputError as error:
        raise InputError(f"a spec cannot hold the recipe: {error.mistakes[0].message}", path=source.recipe) from error


def _blocks(content: Mapping[str, Any]) -> list[VerbatimBlock]:
    owners = [(None, content), *((output["name"], output) for output in content["outputs"])]
    return [
        VerbatimBlock(name, block["section"], 2 + len((block.get("v0") or block.get("v1") or "").splitlines()))
        for name, owner in owners
        for block in owner.get("verbatim", ())
    ]
