"""The named variant files: one for each platform and accelerator, with the last values of conda-forge's pinning.

Each is a variant file for `conda build -m` and names its source. It has one value for each key, so nothing is
zipped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.facts.cuda import CudaFacts, PinningRow
from feedstock_tools.files.changes import Changes
from feedstock_tools.reading import read_bytes

#: Keys that rows leave out because their values never differ.
_COMMON = {"channel_sources": "conda-forge", "channel_targets": "conda-forge main"}
_MARK = "# Written by `feedstock-tools cuda variants`"
_WIDTH = 100


def variant_files(facts: CudaFacts) -> Mapping[str, str]:
    """The text of every named variant file by name, such as `linux_64_cuda11.2`; ordered by platform."""
    return {row.name: _text(row, facts) for row in facts.rows}


def _text(row: PinningRow, facts: CudaFacts) -> str:
    import yaml

    values = {**row.values, **_COMMON, "target_platform": row.platform.subdir}
    body = yaml.safe_dump({key: [value] for key, value in values.items()}, default_flow_style=False, width=1000)
    return "".join(f"{line}\n" for line in _comment(row, facts)) + body


def _comment(row: PinningRow, facts: CudaFacts) -> list[str]:
    import textwrap

    builds = "CPU builds" if row.cuda is None else f"CUDA {row.cuda}"
    if row.origin.startswith("migration "):
        path = f"recipe/migrations/{row.origin.removeprefix('migration ')}.yaml"
        origin = f"as the migration {row.origin.removeprefix('migration ')} of conda-forge's pinning last had it"
    else:
        path = "recipe/conda_build_config.yaml"
        origin = "as conda-forge's pinning last had it"
    lines = [
        f"# {builds} on {row.platform}, {origin} ({row.date}):",
        f"# {facts.pinning_repository}/blob/{row.commit}/{path}",
    ]
    if row.note:
        lines += [f"# {line}" for line in textwrap.wrap(row.note, _WIDTH - 2)]
    return [*lines, f"{_MARK} from cuda.yaml: change it there."]


def choose(names: Iterable[str], files: Collection[str]) -> tuple[str, ...]:
    """The entries of `files` that match `names` (names or globs, with or without `.yaml`); all if there are none.

    Raises:
        InputError: a name matches nothing; with the nearest names.
    """
    wanted = list(dict.fromkeys(name.removesuffix(".yaml") for name in names))
    unknown = [name for name in wanted if not any(fnmatchcase(file, name) for file in files)]
    if unknown:
        raise InputError.of([_unknown(name, files) for name in unknown])
    return tuple(file for file in files if not wanted or any(fnmatchcase(file, name) for name in wanted))


def _unknown(name: str, files: Collection[str]) -> Mistake:
    near = get_close_matches(name, files, n=3)
    hint = f"The nearest are: {', '.join(near)}." if near else "`feedstock-tools cuda variants` lists them."
    return Mistake(f"there is no variant file '{name}'", hint=hint)


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that differs from its new text: `missing`, `changed`, or `unknown` (written earlier, now obsolete)."""

    path: Path
    kind: str


def compare(folder: Path, files: Mapping[str, str], chosen: Collection[str]) -> tuple[Difference, ...]:
    """The changes that `write` would make in `folder`, and obsolete files that it once wrote.

    Args:
        files: all variant files by name.
        chosen: the names of the files to compare.
    """
    differences = []
    for name in chosen:
        path = folder / f"{name}.yaml"
        if not path.is_file():
            differences.append(Difference(path, "missing"))
        elif read_bytes(path, within=folder) != files[name].encode():
            differences.append(Difference(path, "changed"))
    if set(chosen) == set(files):
        others = (path for path in sorted(folder.glob("*.yaml")) if path.stem not in files)
        differences += [Difference(path, "unknown") for path in others if _is_ours(path, folder)]
    return tuple(differences)


def _is_ours(path: Path, folder: Path) -> bool:
    return _MARK.encode() in read_bytes(path, within=folder)


def write(folder: Path, files: Mapping[str, str], chosen: Collection[str]) -> tuple[Path, ...]:
    """Write the chosen files that differ into `folder`, all or none; return the paths of the written files.

    Raises:
        InputError: this command did not write an existing file of that name; then nothing is written.
        WorkError: the folder or a file cannot be written.
    """
    changed = [difference for difference in compare(folder, files, chosen) if difference.kind != "unknown"]
    foreign = [change.path for change in changed if change.kind == "changed" and not _is_ours(change.path, folder)]
    if foreign:
        hint = "Move it away, or name another folder with --output."
        raise InputError.of([Mistake("was not written by this command", path, hint=hint) for path in foreign])
    Changes(folder, {change.path: files[change.path.stem].encode() for change in changed}).apply()
    return tuple(change.path for change in changed)
