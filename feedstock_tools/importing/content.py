"""A recipe, seen in many settings, as the content of a spec."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.conditions.spec import Setting, to_spec
from feedstock_tools.conditions.tree import Name, VersionTest
from feedstock_tools.generate.spec.checks import files_of
from feedstock_tools.generate.spec.items import TIME_STAMP, USE_LOCAL
from feedstock_tools.generate.spec.reading import STUBS
from feedstock_tools.generate.texts.rendering import architectures_from, assignments_of
from feedstock_tools.importing.comments import Comments
from feedstock_tools.importing.inference import NEVER, Conditions, Merger, mask_of, merged_order
from feedstock_tools.importing.output_content import (
    COMMENT,
    InexpressibleError,
    Remainder,
    Seen,
    Writer,
    about_of,
    conditional,
    explained,
    ignored,
    literal,
    output_content,
    requirements_of,
    script_of,
    text_of,
)
from feedstock_tools.importing.samples import Sample
from feedstock_tools.importing.trees import RecipeTree, unmarked
from feedstock_tools.importing.written import WrittenConditions
from feedstock_tools.reading import LARGEST_SCRIPT, read_text
from feedstock_tools.recipe.written.document import Document
from feedstock_tools.rerender.source import Source
from feedstock_tools.variants.files import load

#: Key of a spec → the keys of a recipe whose comments stand above it.
_ROOTS = {
    "sources": ("source",),
    "build": ("build", "requirements", "cache", "skip"),
    "about": ("about",),
    "maintainers": ("extra",),
}
_SOURCE = {"git_url": "git", "git_rev": "rev", "fn": "file_name"}


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a spec, what of the recipe it cannot express, and how many comment lines have no place in it."""

    content: dict[str, Any]
    lost: tuple[str, ...]
    comments_left: int


def recipe_content(source: Source, samples: Sequence[Sample], name: str, among: int = 0) -> Content:
    """The content of the spec of a feedstock called `name`, with what it says of the settings `among`, built or not."""
    written = WrittenConditions(Document(source.recipe, source.text))
    conditions = Conditions(samples, written.all, source.recipe)
    built = mask_of(index for index, sample in enumerate(samples) if not sample.tree.skip)
    return _Importer(source, samples, name, Merger(conditions, built | among, written), built).content()


class _Importer:
    def __init__(self, source: Source, samples: Sequence[Sample], name: str, merger: Merger, built: int) -> None:
        self.source, self.samples, self.name, self.merger, self.built = source, samples, name, merger, built
        self.trees: Mapping[int, RecipeTree] = {
            index: sample.tree for index, sample in enumerate(samples) if merger.among >> index & 1
        }
        self.first = self.trees[min(self.trees)]
        self.writer = Writer("v1" if source.v1 is not None else "v0")
        self.comments = Comments(Document(source.recipe, source.text))
        self.remainder = Remainder("the recipe", self.writer, self.comments)
        self.lost: list[str] = []

    def content(self) -> Content:
        first = self.first
        outputs = self._outputs()
        content: dict[str, Any] = {
            "name": self.name,
            "version": first.version,
            "format": self.writer.recipe_format,
            "automatic": "false",
        }
        if first.name != f"{self.name}-split" or first.alone:
            content["recipe_name"] = first.name
        content["values"] = {}
        content["sources"] = self._sources()
        content["platforms"] = self._platforms()
        if "cuda_compiler" in self.source.text or "'cuda'" in self.source.text or '"cuda"' in self.source.text:
            content["cuda"] = _architectures(self.source.recipe.parent)
        content["migrations"] = _migrations(self.source.forge.folder, self.source.migrations.finished)
        variants, zipped, lost = variant_content(self.source)
        content["variants"] = variants
        content["zip"] = zipped
        build = self._build()
        content["build"] = build if build != {"number": "0"} else {}
        content["skip"] = self._skip()
        content["outputs"] = outputs
        about = about_of(first.about, self.remainder, first.version)
        content["about"] = {"homepage": "", "license": "", "summary": "", **about}
        maintainers = first.extra.get("recipe-maintainers") or ["conda-forge"]
        content["maintainers"] = list(maintainers) if isinstance(maintainers, list) else [str(maintainers)]
        self._more_extra()
        content["verbatim"] = self.remainder.verbatim
        content["conda_forge"] = _plain(self.source.forge.settings)
        content_text = repr(content)
        values = {name: value for tree in self.trees.values() for name, value in tree.values.items()}
        used = (name for name in values if re.search(rf"\{{{name}\}}|\{{ {name} \}}", content_text))
        content["values"] = {name: values[name] for name in used}
        kept = {key: value for key, value in content.items() if value or key == "cuda"}
        return Content(self._commented(kept), (*self.remainder.lost, *self.lost, *lost), self.comments.left)

    def _commented(self, content: dict[str, Any]) -> dict[str, Any]:
        """The content with the comments that no entry has above the keys that they are about, the others first."""
        by_key = {key: self.comments.take_rest("", *roots) for key, roots in _ROOTS.items() if key in content}
        commented: dict[str, Any] = {COMMENT: rest} if (rest := self.comments.take_rest(None)) else {}
        for key, value in content.items():
            commented |= {f"{COMMENT} {key}": by_key[key]} if by_key.get(key) else {}
            commented[key] = value
        return commented

    def _outputs(self) -> list[dict[str, Any]]:
        names = merged_order([[output.name for output in tree.outputs] for tree in self.trees.values()])
        outputs = []
        for name in names:
            trees = {
                index: output for index, tree in self.trees.items() for output in tree.outputs if output.name == name
            }
            if all(tree.skip for tree in trees.values()):
                self.lost.append(f"the output {name} is built nowhere")
                continue
            owner = "" if self.first.alone else name
            remainder = Remainder(f"output {name}", self.writer, self.comments, owner)
            outputs.append(output_content(name, self.samples, trees, self.merger, remainder, alone=self.first.alone))
            self.lost += remainder.lost
        return outputs

    def _sources(self) -> list[Any]:
        version = self.first.version
        keyed: dict[int, list[str]] = {}
        patches: dict[str, dict[int, list[str]]] = {}
        for index, tree in self.trees.items():
            for item in tree.sources:
                source_keys = {key: value for key, value in item.items() if key != "patches"}
                if "sha256" in source_keys:
                    source_keys["sha256"] = unmarked(str(source_keys["sha256"]), tree.values)
                key = json.dumps(source_keys, default=str)
                keyed.setdefault(index, []).append(key)
                own_patches = item.get("patches") or []
                patches.setdefault(key, {})[index] = [
                    str(patch) for patch in (own_patches if isinstance(own_patches, list) else [own_patches])
                ]
        items = []
        for key, condition in self.merger.entries({index: keyed.get(index, []) for index in self.trees}):
            try:
                source = {
                    _SOURCE.get(name, name): _source_value(value, version) for name, value in json.loads(key).items()
                }
            except InexpressibleError as error:
                self.lost.append(f"source: {error}")
                continue
            unknown = set(source) - {"url", "sha256", "git", "rev", "path", "folder", "file_name"}
            self.lost += [f"source: the key {name}" for name in sorted(unknown)]
            source = {name: value for name, value in source.items() if name not in unknown}
            among = mask_of(patches[key])
            listed = self.merger.within(among).entries(patches[key])
            held = self.remainder.held(
                "patches", listed, lambda entry: conditional("file", text_of(entry[0]), entry[1])
            )
            source["patches"] = self._by_pattern(self.remainder.explained("patches", "file", held))
            if condition is not None:
                source["when"] = to_spec(condition)
            items.append({name: value for name, value in source.items() if value})
        return items

    def _by_pattern(self, patches: list[Any]) -> list[Any]:
        """One pattern for patches that are all of their folder, in the order of their names."""
        names = {str(patch).rpartition("/")[0] for patch in patches}
        pattern = f"{names.pop()}/*.patch" if len(names) == 1 else ""
        whole = len(patches) > 1 and not pattern.startswith("/") and pattern
        return [pattern] if whole and list(files_of(self.source.recipe.parent, pattern)) == patches else patches

    def _platforms(self) -> dict[str, Any]:
        built = {sample.setting.platform for index, sample in enumerate(self.samples) if index in self.trees}
        platforms: dict[str, Any] = {}
        for rendering in self.source.forge.renderings:
            platform, builder = rendering.platform, rendering.build_platform
            if platform in built:
                platforms[platform.subdir] = {"build_on": builder.subdir} if builder != platform else None
        return platforms

    def _build(self) -> dict[str, Any]:
        numbers = {index: tree.number for index, tree in self.trees.items()}
        base = min(numbers.values())
        build: dict[str, Any] = {"number": str(base)}
        if offsets := self._offsets({index: number - base for index, number in numbers.items()}):
            build["offsets"] = offsets
        if not self.first.alone:
            seen = Seen(
                self.samples, {index: tree.top for index, tree in self.trees.items()}, self.merger, self.remainder
            )
            content = {
                "script": self._top_script(seen),
                "requirements": requirements_of(seen),
                "ignore_run_exports": ignored(seen),
            }
            build |= {key: value for key, value in content.items() if value}
            seen.copy("build", lambda top: top.more_build)
        return build

    def _top_script(self, seen: Seen) -> Any:
        if self.source.v1 is not None:
            return script_of(seen)
        folder = self.source.recipe.parent
        names = {"unix": "build.sh", "win": "bld.bat"}
        existing = {system: name for system, name in names.items() if (folder / name).is_file()}
        return existing["unix"] if list(existing) == ["unix"] else existing

    def _offsets(self, differences: Mapping[int, int]) -> list[dict[str, str]]:
        """Amounts that add up to the build numbers: by single keys if possible, else one for each sum."""
        if not any(differences.values()):
            return []
        keys = sorted(frozenset().union(*(self.samples[index].looping for index in differences)))
        remaining = dict(differences)
        offsets: list[tuple[int, int]] = []
        for key in ["cuda_compiler_version", *(key for key in keys if key != "cuda_compiler_version")]:
            by_value: dict[str | None, int] = {}
            for index, amount in remaining.items():
                value = self.samples[index].variant.get(key)
                by_value[value] = min(amount, by_value.get(value, amount))
            for amount in sorted({amount for amount in by_value.values() if amount}):
                mask = mask_of(index for index in remaining if by_value[self.samples[index].variant.get(key)] == amount)
                offsets.append((amount, mask))
            remaining = {
                index: amount - by_value[self.samples[index].variant.get(key)] for index, amount in remaining.items()
            }
        if any(remaining.values()):
            offsets = [
                (amount, mask_of(index for index, other in differences.items() if other == amount))
                for amount in sorted(set(differences.values()) - {0})
            ]
        return [self._offset(amount, mask) for amount, mask in offsets]

    def _offset(self, amount: int, mask: int) -> dict[str, str]:
        condition = self.merger.condition(mask)
        always = VersionTest("python", ">=", "2") if condition is None or isinstance(condition, str) else condition
        return {"by": str(amount), "when": to_spec(always)}

    def _skip(self) -> list[Any]:
        """The skips of the recipe: its own conditions as far as they fit, and one for the remaining settings."""
        conditions = self.merger.conditions
        skipped = conditions.everywhere & ~self.built
        remaining, chosen = skipped, []
        options = [(conditions.mask(condition), condition) for condition in self.merger.written.all]
        options += [(mask, Name(word)) for word in ("win", "osx", "linux") if (mask := conditions.mask(Name(word)))]
        inside = [(mask, condition) for mask, condition in options if mask and not mask & ~skipped]
        for mask, condition in sorted(inside, key=lambda option: -option[0].bit_count()):
            if mask & remaining:
                chosen.append(condition)
                remaining &= ~mask
        if remaining:
            remainder = conditions.of(remaining, conditions.everywhere & ~(skipped & ~remaining))
            if remainder is not None and remainder != NEVER:
                chosen.append(remainder)
        explained_skips = [
            explained("when", to_spec(condition), self.comments.take_condition("", "skip", condition))
            for condition in chosen
        ]
        return self.remainder.headed("skip", "when", explained_skips)

    def _more_extra(self) -> None:
        more = {
            key: value for key, value in self.first.extra.items() if key not in ("recipe-maintainers", "feedstock-name")
        }
        single = Merger(self.merger.conditions, 1 << min(self.trees), self.merger.written)
        self.remainder.copy("extra", self.writer.mapping(single, {min(self.trees): more}))


def _migrations(feedstock: Path, finished: Collection[Path]) -> list[str] | dict[str, Any]:
    """The migrations of a feedstock that a spec can have: those of conda-forge by name, its own with their texts.

    Those that are over, which the next rerender removes, are left out.
    """
    found: dict[str, Any] = {}
    for path in sorted({*(feedstock / STUBS).glob("*.yaml")} - {*finished}):
        text = read_text(path, within=feedstock)
        if re.fullmatch(r"\w[\w.-]*", path.stem, re.ASCII) and TIME_STAMP.search(text):
            found[path.stem] = {"verbatim": migration_text(text)} if USE_LOCAL.search(text) else {}
    return found if any(found.values()) else list(found)


def migration_text(text: str) -> str:
    """The text of a migration without blanks at the ends of lines, as a spec has it."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def _architectures(recipe: Path) -> dict[str, Any]:
    """The GPU architectures that a script of the recipe folder assigns to a variable, if it is one list in one form."""
    found: dict[str, set[tuple[str, str]]] = {}
    texts = {path.name: read_text(path, LARGEST_SCRIPT, within=recipe) for path in sorted(recipe.glob("*.sh"))}
    for name, text in texts.items():
        for variable in re.findall(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)\+?=", text, re.MULTILINE):
            found.setdefault(variable, set()).update((name, each["list"]) for each in assignments_of(variable, text))
    for variable, lists in found.items():
        (name, text), *others = lists or {("", "")}
        listed = None if others else architectures_from(text)
        if listed is not None:
            style, names = listed
            return {"architectures": list(names), "script": {"edits": name, "variable": variable, "style": style}}
    return {}


def _source_value(value: Any, version: str) -> Any:
    if isinstance(value, list):
        values = [literal(str(item), version) for item in value]
        return values[0] if len(values) == 1 else values
    return literal(str(value), version)


def _plain(value: Any) -> Any:
    """Settings with booleans and numbers as they are written."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


_CONFIG = "conda_build_config.yaml"
#: A platform alone tells nothing about a recipe.
_NOTHING = RecipeTree("", "", 0)


def variant_content(source: Source) -> tuple[dict[str, Any], list[Any], list[str]]:
    """Keys with their values by platform, the groups of zipped keys, and what a spec cannot hold."""
    path = source.recipe.with_name(_CONFIG)
    lost = [f"{source.conditional.name} stays as it is"] if source.conditional else []
    if not path.is_file():
        return {}, [], lost
    renderings = list({rendering.platform: rendering for rendering in source.forge.renderings}.values())
    configs = [
        load(
            path,
            rendering.platform,
            environ=rendering.environ,
            rules=source.rules.conda_build,
            within=source.forge.folder,
        )
        for rendering in renderings
    ]
    samples = [
        Sample(Setting(rendering.platform, rendering.platform), {}, _NOTHING, frozenset()) for rendering in renderings
    ]
    merger = Merger(Conditions(samples, (), path), (1 << len(samples)) - 1, WrittenConditions())
    variants: dict[str, Any] = {}
    for key in merged_order([list(config.values) for config in configs]):
        entries = merger.entries({index: config.values.get(key, ()) for index, config in enumerate(configs)})
        values = [conditional("value", text, condition) for text, condition in entries]
        variants[key] = values[0] if len(values) == 1 and isinstance(values[0], str) else values
    zipped = merged_order([[*config.zip_keys] for config in configs])
    for config in configs:
        if config.zip_keys not in ((), tuple(zipped)):
            lost.append(f"{_CONFIG}: groups of zip_keys that differ by platform")
        lost += [f"{_CONFIG}: {key}" for key in (*config.pin_run_as_build, *config.mappings)]
    return variants, [list(group) for group in zipped], list(dict.fromkeys(lost))
