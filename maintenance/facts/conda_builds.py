"""For which GPUs conda-forge builds frameworks: the lists of architectures in their recipes and scripts.

Of each minor version the last commit of the feedstock's main branch counts. A list is read for each platform and CUDA
in `.ci_support` there, with the values that the scripts find (`feedstock_tools.check.script_lists`); builds for
Jetson's own system are left out. tests/facts/recorded/conda_builds has a table for each framework, and
`variants/wheels.yaml` has it as `conda`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.histories import unpack
from feedstock_tools.check.renderings import Renderings
from feedstock_tools.check.script_lists import ScriptList, cuda_rows, lists_in_scripts, script_values
from feedstock_tools.errors import FeedstockError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.gpu_code.architecture_lists import VARIABLES
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import CI_SUPPORT
from feedstock_tools.rerender.configuration import Configuration, read_configurations
from feedstock_tools.versions import minor_of, parse_version
from maintenance.facts.records import Entry, Release, git, read_new, read_table, write_table

TABLES = "conda_builds"
RECIPE = "recipe"


@dataclass(frozen=True, slots=True)
class Feedstock:
    """The feedstock of a framework.

    Attributes:
        name: without `-feedstock`.
        variable: the variable with its own list, where scripts have others for libraries in it.
        in_recipe: the recipe itself has the list, so that each configuration must be rendered.
    """

    name: str
    variable: str | None = None
    in_recipe: bool = False


FEEDSTOCKS: Mapping[str, Feedstock] = {
    "pytorch": Feedstock("pytorch-cpu", "TORCH_CUDA_ARCH_LIST"),
    "tensorflow": Feedstock("tensorflow"),
    "jaxlib": Feedstock("jaxlib"),
    "cupy": Feedstock("cupy"),
    "faiss": Feedstock("faiss-split"),
    "torchvision": Feedstock("torchvision", "TORCH_CUDA_ARCH_LIST"),
    "torchaudio": Feedstock("torchaudio", "TORCH_CUDA_ARCH_LIST"),
    "flash-attn": Feedstock("flash-attn", "TORCH_CUDA_ARCH_LIST", in_recipe=True),
    "xformers": Feedstock("xformers", "TORCH_CUDA_ARCH_LIST"),
    "bitsandbytes": Feedstock("bitsandbytes"),
    "onnxruntime": Feedstock("onnxruntime"),
    "xgboost": Feedstock("xgboost"),
    "lightgbm": Feedstock("lightgbm"),
}
_VERSION = re.compile(r"""(?:set\s+version\s*=|^\s*version\s*:)\s*["']?(\d+(?:\.\d+)+)""", re.MULTILINE)
_NONE = "no list was found in its recipe and scripts"


def update(mirror: Path, again: bool) -> int:
    """Read what is new in the clones `conda-forge+<name>-feedstock/repo` of a folder; return how much differs or could
    not be read."""
    wrong = 0
    for framework, feedstock in FEEDSTOCKS.items():
        clone = mirror / f"conda-forge+{feedstock.name}-feedstock" / "repo"
        table = read_table(f"{TABLES}/{framework}")
        if clone.is_dir():
            commits = last_commits(clone)
            write = partial(write_table, f"{TABLES}/{framework}", table)
            new = (
                Release(version, partial(_read, feedstock, clone, commit), complete=partial(_is_of, commit))
                for version, commit in commits.items()
            )
            wrong += read_new(new, table, again, write)
            kept = {version: table[version] for version in sorted(commits, key=parse_version) if version in table}
            write_table(f"{TABLES}/{framework}", kept)
    return wrong


def _is_of(commit: str, entry: Entry) -> bool:
    return bool(entry["commit"] == commit)


def last_commits(clone: Path) -> dict[str, str]:
    """The last version of each minor version that a feedstock's main branch had, each with its last commit."""
    found: dict[str, tuple[str, str]] = {}
    for commit in git(clone, "log", "--first-parent", "--format=%H").split():
        words = ("grep", "-h", "-E", "version", commit, "--", "recipe/meta.yaml", "recipe/recipe.yaml")
        grep = subprocess.run(["git", "-C", str(clone), *words], check=False, capture_output=True, text=True)
        if match := _VERSION.search(grep.stdout):
            found.setdefault(minor_of(match[1]), (match[1], commit))
    return dict(found.values())


def _read(feedstock: Feedstock, clone: Path, commit: str, _before: Entry | None) -> Entry:
    """What the state of a commit says of its builds with CUDA: by CUDA and platform the list with its place, or why
    it is not known."""
    builds: dict[str, dict[str, Entry]] = {}
    with temporary_folder() as folder:
        there = git(clone, "ls-tree", "--name-only", commit).split()
        if CI_SUPPORT not in there:
            return {"commit": commit, "builds": {}}
        wanted = [name for name in (RECIPE, CI_SUPPORT, "conda-forge.yml") if name in there]
        unpack(clone, commit, folder, *wanted)
        recipe = folder / RECIPE / "recipe.yaml"
        if recipe.is_file():  # older releases of rattler-build took `==1.2.*`
            recipe.write_text(re.sub(r"==(?=\d[\d.]*\.\*)", "", recipe.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            renderings = Renderings(folder)
            for configuration, cuda, values in _rows(folder):
                packages = renderings.packages(configuration) if feedstock.in_recipe else ()
                if feedstock.in_recipe and not packages:
                    continue  # the recipe skips it
                lists = [*lists_in_scripts(folder / RECIPE, folder, values, packages)]
                entry = _entry(feedstock, lists) if lists else _all_major(folder, cuda, configuration.platform)
                of_cuda = builds.setdefault(cuda, {})
                subdir = configuration.platform.subdir
                if of_cuda.setdefault(subdir, entry) != entry:
                    of_cuda[subdir] = {"unread": "its configurations have different lists"}
        except FeedstockError as error:
            raise ValueError(f"{commit[:8]}: {error}") from error
    return {"commit": commit, "builds": dict(sorted(builds.items(), key=lambda item: parse_version(item[0])))}


def _rows(folder: Path) -> Iterator[tuple[Configuration, str, Mapping[str, tuple[str, ...]]]]:
    """The configurations with CUDA but those for Jetson, each with its CUDA, and the values that scripts find."""
    for configuration in read_configurations(folder):
        for values in cuda_rows(configuration):
            (cuda,) = values["cuda_compiler_version"]
            if re.fullmatch(r"\d+\.\d+", cuda) and values.get("arm_variant_type") != ("tegra",):
                yield configuration, cuda, script_values(values, configuration.platform.subdir)


def _entry(feedstock: Feedstock, lists: list[ScriptList]) -> Entry:
    own = [each for each in lists if feedstock.variable is None or each.name == feedstock.variable]
    found = {each.architectures() for each in own if each.name in VARIABLES or feedstock.variable or each.is_command}
    if len(found) != 1 or () in found:
        return {"unread": "its scripts have several lists" if found else _NONE}
    first = own[0]
    names = " ".join(map(str, sorted(found.pop(), key=lambda each: (each.ptx, each.number, each.suffix))))
    return {"code": names, "path": first.path, "line": first.line}


def _all_major(folder: Path, cuda: str, platform: Platform) -> Entry:
    """What CMake's `all-major` in a script is: machine code for each `sm_*0` of the toolkit and for its first, and PTX
    of the last (NVCC's documentation, "--gpu-architecture"; CMake's, CUDA_ARCHITECTURES)."""
    for path in sorted((folder / RECIPE).glob("*.bat" if platform.os == "win" else "*.sh")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if "CMAKE_CUDA_ARCHITECTURES=all-major" in line:
                known = sorted(int(name) for name in load_cuda().toolkit(cuda).architectures if name.isdigit())
                listed = [each for each in known if each % 10 == 0 or each == known[0]]
                code = " ".join([*(f"sm_{each}" for each in listed), f"compute_{listed[-1]}"])
                return {"code": code, "path": path.relative_to(folder).as_posix(), "line": number}
    return {"unread": _NONE}


def builds_of(framework: str) -> Iterator[Entry]:
    """What `variants/wheels.yaml` has of a framework's builds: for each version and CUDA the code by platform.

    Versions without any list that was found are left out.
    """
    for version, read in read_table(f"{TABLES}/{framework}").items():
        if not any("code" in each for platforms in read["builds"].values() for each in platforms.values()):
            continue
        for cuda, platforms in read["builds"].items():
            entry = {"version": version, "built": cuda, "platforms": list(platforms), "commit": read["commit"][:10]}
            for what in ("code", "unread"):
                if found := {subdir: each[what] for subdir, each in platforms.items() if what in each}:
                    entry[what] = found
            yield entry
