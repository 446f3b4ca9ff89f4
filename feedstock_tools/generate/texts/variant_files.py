"""recipe/conda_build_config.yaml: the spec's own keys on top of conda-forge's pinning, or all keys without one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.conditions.spec import to_selector
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import CudaFacts, PinningRow, load_cuda
from feedstock_tools.generate.spec.items import VariantValue
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.texts import resolved
from feedstock_tools.generate.texts.wording import Line, quoted
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import parse_version

_CHANNELS = {"channel_sources": "conda-forge", "channel_targets": "conda-forge main"}
_ROWS_WHY = (
    "One row for each accelerator, read across the lists that zip_keys names: what conda-forge's pinning last said for "
    "that CUDA version."
)
_SELECTORS = {"linux-64": "linux64", "osx-64": "osx and x86_64", "win-64": "win64"}


@dataclass(frozen=True, slots=True)
class Block:
    """A key of the file with the lines under it; `selector` belongs to the key's own line."""

    key: str
    lines: tuple[Line, ...]
    why: str | None = None
    selector: str | None = None

    @property
    def heading(self) -> tuple[Line, ...]:
        """The key's own line."""
        return (Line(f"{self.key}:", self.selector),)


def _python_value(version: str) -> str:
    """conda-forge's pin of a Python: with another build string since 3.13.

    >>> _python_value("3.9"), _python_value("3.14")
    ('3.9.* *_cpython', '3.14.* *_cp314')
    """
    build = "cpython" if parse_version(version) < parse_version("3.13") else f"cp{version.replace('.', '')}"
    return f"{version}.* *_{build}"


def variant_blocks(spec: Spec) -> list[Block]:
    """The keys of the file in order; none if conda-forge's pinning has everything.

    Raises:
        InputError: the spec sets a key that depends on the CUDA version, or there are no facts about a platform.
    """
    own = [_own_block(key, values, spec) for key, values in spec.variants.items()]
    if spec.pinning == "conda-forge" or not spec.automatic:
        lines = [line for group in spec.zip for line in (Line("-"), *(Line(f"  - {key}") for key in group))]
        return [*own, Block("zip_keys", tuple(lines))] if lines else own
    facts = load_cuda()
    rows = {Platform.parse(subdir): _rows(spec, Platform.parse(subdir), facts) for subdir in spec.platforms}
    keys = _keys(spec, rows)
    zipped = [key for key in keys if _platforms_where_it_varies(key, rows)]
    clash = next((key for key in spec.variants if key in zipped), None)
    if clash:
        raise InputError(f"'{clash}' depends on the CUDA version and cannot be set separately")
    blocks = [_row_block(key, rows, first=key == zipped[0]) for key in zipped] if zipped else []
    blocks += [_plain_block(key, rows) for key in keys if key not in zipped and key not in spec.variants]
    blocks += _python_block(spec)
    blocks += own
    blocks += [Block(key, (Line(f"- {value}"),)) for key, value in _CHANNELS.items()]
    return blocks + _zip_block(zipped, rows)


def _platforms_where_it_varies(key: str, rows: Mapping[Platform, Sequence[PinningRow]]) -> list[Platform]:
    """The platforms on which a key belongs to the rows; elsewhere all rows share one value.

    All facts about a platform determine this, not the versions that the spec builds for, so that one
    version more or less adds or removes its own row and changes nothing else.
    """
    pinning_rows = load_cuda().rows
    return [
        platform
        for platform, platform_rows in rows.items()
        if len(platform_rows) > 1
        and _values(platform_rows, key)
        and len(_values((row for row in pinning_rows if row.platform == platform), key)) > 1
    ]


def _having(key: str, rows: Mapping[Platform, Sequence[PinningRow]]) -> list[Platform]:
    return [platform for platform, platform_rows in rows.items() if _values(platform_rows, key)]


def _rows(spec: Spec, platform: Platform, facts: CudaFacts) -> tuple[PinningRow, ...]:
    versions = resolved.versions_on(spec, platform, facts)
    return tuple(facts.pinning_row(version, platform) for version in (None, *versions))


def _values(rows: Iterable[PinningRow], key: str) -> set[str]:
    return {row.values[key] for row in rows if key in row.values}


def _keys(spec: Spec, rows: Mapping[Platform, Sequence[PinningRow]]) -> list[str]:
    """The keys that the recipe uses and that every row of a platform has; the CUDA version first."""
    wanted = _used_keys(spec)
    pinned = dict.fromkeys(key for platform_rows in rows.values() for row in platform_rows for key in row.values)
    kept = [key for key in pinned if key in wanted and key != "cuda_compiler_version"]
    return [*(["cuda_compiler_version"] if spec.cuda else []), *kept]


def _used_keys(spec: Spec) -> frozenset[str]:
    keys = {"docker_image", "macos_machine", "MACOSX_DEPLOYMENT_TARGET", "MACOSX_SDK_VERSION"}
    for need in _all_needs(spec):
        if need.kind in ("compiler", "stdlib"):
            name = f"{need.value}_{need.kind}"
            keys |= {name, f"{name}_version"}
        else:
            keys.add(need.package.replace("-", "_"))
    return frozenset(keys)


def _all_needs(spec: Spec) -> list[resolved.Need]:
    needs = [need for section in resolved.top_level_needs(spec).values() for need in section]
    for output in resolved.resolve_outputs(spec):
        needs += [need for section in output.needs.values() for need in section]
        needs += output.test_needs
    return needs


def _row_block(key: str, rows: Mapping[Platform, Sequence[PinningRow]], *, first: bool) -> Block:
    """A zipped key: a value for each accelerator, or a single one if it is the same for all."""
    versions = {row.cuda for platform_rows in rows.values() for row in platform_rows}
    varying = _platforms_where_it_varies(key, rows)
    lines: list[Line] = []
    for version in sorted(versions, key=lambda cuda: (cuda is not None, parse_version(cuda or "0"))):
        places: dict[str, list[Platform]] = {}
        for platform, platform_rows in rows.items():
            for row in platform_rows:
                if row.cuda == version and key in row.values and (platform in varying or row.cuda is None):
                    places.setdefault(row.values[key], []).append(platform)
        lines += [Line(f"- {_scalar(value)}", _of_value(key, platforms, rows)) for value, platforms in places.items()]
    return Block(key, tuple(lines), _ROWS_WHY if first else None, _selector(_having(key, rows), rows))


def _plain_block(key: str, rows: Mapping[Platform, Sequence[PinningRow]]) -> Block:
    places: dict[str, list[Platform]] = {}
    for platform, platform_rows in rows.items():
        for value in _values(platform_rows, key):
            places.setdefault(value, []).append(platform)
    lines = tuple(Line(f"- {_scalar(value)}", _of_value(key, platforms, rows)) for value, platforms in places.items())
    return Block(key, lines, selector=_selector(_having(key, rows), rows))


def _scalar(value: str) -> str:
    return "None" if value == "None" else quoted(value)


def _python_block(spec: Spec) -> list[Block]:
    if isinstance(spec.python, str):
        return []
    return [Block("python", tuple(Line(f"- {_python_value(version)}") for version in spec.python))]


def _own_block(key: str, values: Sequence[VariantValue], spec: Spec) -> Block:
    versions = resolved.known_cuda_versions(spec) if any(value.when for value in values) else ()
    lines = tuple(
        Line(f"- {_scalar(value.value)}", to_selector(value.when, versions) if value.when else None) for value in values
    )
    selectors = {line.selector for line in lines}
    if not spec.automatic and None not in selectors and len(selectors) > 1:
        return Block(key, lines, selector=" or ".join(f"({selector})" for selector in sorted(map(str, selectors))))
    return Block(key, lines, selector=selectors.pop() if len(selectors) == 1 else None)


def _zip_block(zipped: list[str], rows: Mapping[Platform, Sequence[PinningRow]]) -> list[Block]:
    """The zipped keys, on each platform those that vary there; a single key is not a group."""
    varying = {key: _platforms_where_it_varies(key, rows) for key in zipped}
    grouped = [platform for platform in rows if sum(platform in places for places in varying.values()) > 1]
    if not grouped:
        return []
    lines = [Line("-", _selector(grouped, rows))]
    for key, places in varying.items():
        chosen = [platform for platform in places if platform in grouped]
        if chosen:
            lines.append(Line(f"  - {key}", _of_value(key, chosen, rows)))
    return [Block("zip_keys", tuple(lines), selector=_selector(grouped, rows))]


def _of_value(key: str, some: Collection[Platform], every: Collection[Platform]) -> str | None:
    """The selector of a value: conda-forge's linter takes a c_stdlib_version without one for that of macOS."""
    selector = _selector(some, every)
    if key == "c_stdlib_version" and {platform.os for platform in every} == {"linux"}:
        return f"linux and {selector}" if selector else "linux"
    return selector


def _selector(some: Collection[Platform], every: Collection[Platform]) -> str | None:
    """The shortest usual selector for some of the platforms; None for all of them."""
    if set(some) == set(every):
        return None
    words: dict[str, None] = {}
    for platform in every:
        if platform not in some:
            continue
        of_os = {other for other in every if other.os == platform.os}
        all_of_os = of_os <= set(some)
        word = platform.os if all_of_os else _SELECTORS.get(platform.subdir, f"{platform.os} and {platform.arch}")
        words[word] = None
    selector = " or ".join(f"({word})" if " " in word and len(words) > 1 else word for word in words)
    return selector.replace("linux or osx", "unix")
