"""CUDA builds for real recipes that have none: `edit enable-gpu`, then everything that a reviewer would run.

    python benchmarks/edits/enable_gpu.py MIRROR [NAME...] [--peer DIR] [--keep DIR]
    python benchmarks/edits/enable_gpu.py MIRROR [NAME...] --all [--peer DIR] [--keep DIR]
    python benchmarks/edits/enable_gpu.py MIRROR [NAME...] --history [--keep DIR]

MIRROR holds bare clones as OWNER+NAME/repo, conda-forge's pinning among them. Each recipe of `CASES` is laid out at a
commit without CUDA, rerendered with the newest pinning, edited, and rerendered again. The table has the jobs before
and after, how many of them have CUDA, packages whose file names are not their own, CPU packages whose requirements
changed, and the findings of `lint` and `cuda check` that were not there before.

--peer DIR is an environment with conda-smithy and conda-build (`bin/python`, and `rerender FEEDSTOCK PINNING`). Its
rerender must then give the same files, its conda-build must render every configuration of a `meta.yaml` to the same
package names (a `recipe.yaml` is rendered by py-rattler-build in any case), and its linter must find nothing new.

--all takes the newest commit of every feedstock in MIRROR instead, with `--library cublas` and nothing else; recipes
that the edit refuses (CUDA already, no compiler, noarch) are counted by message.

--history compares with how maintainers did it, for the feedstocks of `HISTORY`: the edit of the recipe before their
commit and the recipe after it, both rerendered with the pinning of that day.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from feedstock_tools.api import (
    check,
    compare_feedstocks,
    lint_feedstock,
    open_draft,
    outputs,
    read_configurations,
    rerender,
)
from feedstock_tools.enable_gpu import GpuWishes, enable_gpu
from feedstock_tools.errors import FeedstockError, InputError

HEAD = "HEAD"


@dataclass(frozen=True)
class Case:
    """A feedstock at a commit without CUDA, what builds it, and what its CUDA builds need."""

    name: str
    commit: str
    system: str
    wishes: GpuWishes


CASES = (
    Case("amrex", HEAD, "CMake", GpuWishes(("curand", "cufft"), configure=("-DAMReX_GPU_BACKEND=CUDA",))),
    Case("hypre", HEAD, "CMake", GpuWishes(("cublas", "cusparse", "curand"), configure=("-DHYPRE_ENABLE_CUDA=ON",))),
    Case("superlu_dist", HEAD, "CMake", GpuWishes(("cublas",), configure=("-DTPL_ENABLE_CUDALIB=ON",), prefer="cpu")),
    Case("sundials", HEAD, "CMake, outputs", GpuWishes(("cusparse", "cusolver"))),
    Case("suitesparse", HEAD, "CMake, outputs", GpuWishes(("cublas",), outputs=("libcholmod", "libspqr"))),
    Case("spglib", HEAD, "scikit-build-core", GpuWishes(platforms=("linux-64",))),
    Case("elpa", HEAD, "autotools", GpuWishes(("cublas", "cusolver"), metapackages=True)),
    Case("fftw", HEAD, "autotools, CMake, outputs", GpuWishes(("cufft",))),
    Case("lz4-c", HEAD, "make, outputs", GpuWishes(by="track_features")),
    Case("scipy", HEAD, "meson-python, outputs", GpuWishes(("cublas",), outputs=("scipy",))),
    Case("polars", HEAD, "cargo, outputs", GpuWishes(("nvrtc",))),
    Case("mpi4py", HEAD, "setuptools", GpuWishes(guard="any")),
    Case("jaxlib", "8574963^", "Bazel", GpuWishes(("cudnn", "nccl"), platforms=("linux-64",))),
    Case(
        "torchvision",
        "4c3b9e2^",
        "setuptools, PyTorch",
        GpuWishes(("nvjpeg",), tests=("python -c 'import torchvision'",)),
    ),
    Case("bitsandbytes", "cb1adb5^", "make, setuptools", GpuWishes(("cublas", "cusparse"), by="both")),
    Case("xgboost", "b11f9ce^", "CMake, outputs", GpuWishes(("nccl",), configure=("-DUSE_CUDA=ON",))),
    Case("lightgbm", "44e1006^", "scikit-build-core", GpuWishes(configure=("-DUSE_CUDA=1",))),
    Case(
        "ceres-solver", "e114117^", "CMake", GpuWishes(("cublas", "cusolver", "cusparse"), configure=("-DUSE_CUDA=ON",))
    ),
    Case("libxc", "8db8f76^", "CMake, outputs", GpuWishes(platforms=("linux-64",), configure=("-DENABLE_CUDA=ON",))),
    Case("onnxruntime", "c4512e0^", "CMake, outputs", GpuWishes(("cudnn", "cublas"))),
)


#: Why the edit refuses a recipe.
REFUSED = ("builds for CUDA already", "output has a compiler", "recipe has no compiler", "is noarch")
#: Commits that brought CUDA to a recipe, and the same wishes.
HISTORY = (
    Case("ceres-solver", "e114117", "CMake", GpuWishes(("cublas", "cusolver", "cusparse"), guard="minor")),
    Case("xgboost", "b11f9ce", "CMake, outputs", GpuWishes(("cublas", "cudnn", "nccl"), guard="none")),
    Case("bitsandbytes", "cb1adb5", "make, setuptools", GpuWishes(guard="none")),
)


def every_feedstock(mirror: Path) -> list[Case]:
    """The newest commits in a mirror."""
    names = [path.parent.name.partition("+")[2] for path in sorted(mirror.glob("conda-forge+*-feedstock/repo"))]
    return [Case(name.removesuffix("-feedstock"), HEAD, "", GpuWishes(("cublas",))) for name in names]


def git(repository: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *words], capture_output=True, check=True).stdout


def laid_out(repository: Path, revision: str, folder: Path, *paths: str) -> Path:
    with tarfile.open(fileobj=BytesIO(git(repository, "archive", revision, *paths))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def rerendered(feedstock: Path, pinning: Path) -> list[str]:
    """Rerender a feedstock in place; the names of its configurations."""
    rerender(feedstock, pinning=pinning).changes().apply()
    return [each.name for each in read_configurations(feedstock)]


def findings(feedstock: Path) -> Counter[str]:
    """What `lint` and `cuda check` find, without lines and places."""
    found = [f"lint {each.rule}: {each.message}" for each in lint_feedstock(feedstock)]
    found += [f"check {each.key}: {each.message}" for each in check(feedstock, read_configurations(feedstock))]
    return Counter(found)


def shared_names(feedstock: Path) -> list[str]:
    """File names that builds with and without CUDA share although their variants differ."""
    by_path: dict[str, set[str]] = {}
    for package in outputs(feedstock, read_configurations(feedstock)):
        cuda = package.hash_input.get("cuda_compiler_version", "")
        by_path.setdefault(package.path, set()).add(cuda)
    return sorted(path for path, versions in by_path.items() if len(versions) > 1)


def changed_cpu_packages(cpu: Path, gpu: Path) -> list[str]:
    """CPU packages that differ in more than build string and number, features that lower their priority, and tests."""
    return [
        f"{package.name}: {lines}"
        for package in compare_feedstocks(cpu, gpu).packages_changed
        for lines in package.changes
        if lines.part not in {"build string", "build number", "tests", "track_features"}
    ]


RENDER = """
import json, sys
from pathlib import Path
recipe, *files = sys.argv[1:]
import yaml
from conda_build.api import render
from conda_build.config import get_or_merge_config
found = {}
for name in files:
    platform, _, arch = yaml.safe_load(Path(name).read_text())["target_platform"][0].partition("-")
    words = {"variant_config_files": [name], "ignore_system_variants": True}
    config = get_or_merge_config(None, platform=platform, arch=arch, **words)
    config.verbose = False
    metas = render(recipe, config=config, finalize=False, bypass_env_check=True)
    found[Path(name).stem] = sorted({meta.dist() for meta, _, _ in metas if not meta.skip()})
print("FOUND" + json.dumps(found))
"""
LINT = """
import json, sys
from conda_smithy.lint_recipe import main
lints, hints = main(sys.argv[1], conda_forge=False, return_hints=True)
print("FOUND" + json.dumps([*lints, *hints]))
"""


def by_peer(peer: Path, code: str, *words: str) -> object:
    """What a script prints in the peer's Python."""
    command = [str(peer / "bin" / "python"), "-W", "ignore", "-c", code, *words]
    variables = {"PATH": f"{peer}/bin:/usr/bin:/bin", "HOME": str(peer / "home")}
    variables["CONDA_SMITHY_BOT_SCHEMA_URI"] = (peer / "cf_tick_schema.json").as_uri()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if "FOUND" not in done.stdout:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "nothing")
    return json.loads(done.stdout.rpartition("FOUND")[2])


def rerendered_by_peer(peer: Path, feedstock: Path, pinning: Path) -> str:
    """Rerender a feedstock in place with the peer; the last line of its log if it fails, else ''."""
    command = [str(peer / "rerender"), str(feedstock), str(pinning)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stderr or done.stdout).strip().splitlines()[-1] if done.returncode else ""


def differences_of_peer(peer: Path, feedstock: Path, pinning: Path, cpu: Path, scratch: Path) -> Iterator[str]:
    """What the peer makes otherwise: files of a rerender, names of packages, findings of its linter."""
    copy = shutil.copytree(feedstock, scratch / "peer" / feedstock.name)
    failure = rerendered_by_peer(peer, copy, pinning)
    if failure:
        own = rerendered_by_peer(peer, shutil.copytree(cpu, scratch / "peer-cpu" / cpu.name), pinning)
        yield f"its rerender fails{', without the edit too' if own else ''}: {failure}"
        return
    ours, theirs = (
        {path.name: path.read_bytes() for path in (each / ".ci_support").glob("*.yaml")} for each in (feedstock, copy)
    )
    unequal = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if unequal:
        yield f"its rerender differs in {len(unequal)} of {len(ours)} files: {unequal[0]}"
    if (feedstock / "recipe" / "meta.yaml").is_file():
        files = [str(path) for path in sorted((copy / ".ci_support").glob("*.yaml"))]
        rendered = by_peer(peer, RENDER, str(copy / "recipe"), *files)
        named: dict[str, set[str]] = {name: set() for name in rendered}
        for package in outputs(feedstock, read_configurations(feedstock)):
            named[package.configuration].add(f"{package.name}-{package.version}-{package.build_string}")
        unequal = [name for name, found in rendered.items() if set(found) != named[name]]
        yield from (
            f"its conda-build names other packages for {name}: {sorted(set(rendered[name]) ^ named[name])[:2]}"
            for name in unequal[:1]
        )
    before, after = (Counter(by_peer(peer, LINT, str(each / "recipe"))) for each in (cpu, feedstock))
    yield from (f"its linter: {text}" for text in after - before)


def tried(case: Case, mirror: Path, pinning: Path, peer: Path | None, scratch: Path) -> list[str]:
    """One line for the table, and lines on what is not right."""
    repository = mirror / f"conda-forge+{case.name}-feedstock" / "repo"
    cpu = laid_out(repository, case.commit, scratch / "cpu" / f"{case.name}-feedstock")
    gpu = shutil.copytree(cpu, scratch / "gpu" / f"{case.name}-feedstock")
    draft = enable_gpu(open_draft(gpu), case.wishes, pinning / "conda_build_config.yaml")
    before = rerendered(cpu, pinning)
    changes = draft.changes()
    diff = list(changes.diff())
    changes.apply()
    after = rerendered(gpu, pinning)
    with_cuda = [name for name in after if "cuda_compiler_version1" in name]
    added, removed = (sum(line.startswith(sign) and not line.startswith(sign * 3) for line in diff) for sign in "+-")
    problems = [f"shared name: {name}" for name in shared_names(gpu)[:3]]
    problems += [f"CPU package: {line}" for line in changed_cpu_packages(cpu, gpu)[:3]]
    problems += [f"new: {text}" for text in findings(gpu) - findings(cpu)]
    if not with_cuda:
        problems.append("no job has CUDA")
    if peer is not None:
        problems += differences_of_peer(peer, gpu, pinning, cpu, scratch)
    cells = [f"{case.name} {case.commit}", case.system, len(before), len(after), len(with_cuda)]
    title = " | ".join(map(str, [*cells, f"+{added} -{removed}", len(draft.remarks) - 1]))
    return [f"| {title} |", *(f"    {problem}" for problem in problems)]


def against_history(case: Case, mirror: Path, scratch: Path) -> list[str]:
    """How the edit differs from the maintainers' commit, by job and package."""
    repository = mirror / f"conda-forge+{case.name}-feedstock" / "repo"
    pinnings = mirror / "conda-forge+conda-forge-pinning-feedstock" / "repo"
    date = git(repository, "show", "--no-patch", "--format=%cI", case.commit).decode().strip()
    day = git(pinnings, "rev-list", "-1", f"--before={date}", "HEAD").decode().strip()
    pinning = laid_out(pinnings, day, scratch / "history" / f"pinning-{case.name}", "recipe") / "recipe"
    theirs = laid_out(repository, case.commit, scratch / "history" / f"{case.name}-feedstock")
    ours = laid_out(repository, f"{case.commit}^", scratch / "edited" / f"{case.name}-feedstock")
    enable_gpu(open_draft(ours), case.wishes, pinning / "conda_build_config.yaml").changes().apply()
    jobs = [rerendered(each, pinning) for each in (ours, theirs)]
    found = compare_feedstocks(theirs, ours)
    lines = [f"| {case.name} {case.commit} | {date[:10]} | jobs: {len(jobs[0])} by the edit, {len(jobs[1])} by hand |"]
    lines += [f"    only by the edit: {name}" for name in found.jobs_added]
    lines += [f"    only by hand: {name}" for name in found.jobs_removed]
    counts: Counter[tuple[str, str, str]] = Counter()
    for package in found.packages_changed:
        name = package.name.partition(" (")[0]
        for part in package.changes:
            texts = (re.sub(r"\d{2,}", "…", ", ".join(each)) for each in (part.removed, part.added))
            counts[name, part.part, "  →  ".join(texts)] += len(package.jobs)
    lines += [f"    {name}, {part} in {number} jobs: {text}" for (name, part, text), number in counts.items()]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mirror", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--peer", type=Path)
    parser.add_argument("--keep", type=Path, help="keep the feedstocks here")
    parser.add_argument("--all", action="store_true", help="the newest commit of every feedstock")
    parser.add_argument("--history", action="store_true", help="compare with the commits of maintainers")
    given = parser.parse_args()
    if given.history:
        with tempfile.TemporaryDirectory() as place:
            for case in HISTORY:
                if not given.names or case.name in given.names:
                    print("\n".join(against_history(case, given.mirror, given.keep or Path(place))), flush=True)
        return 0
    unlike = tries = 0
    refused: Counter[str] = Counter()
    print("| feedstock | build system | jobs | jobs after | with CUDA | lines | notes |")
    with tempfile.TemporaryDirectory() as place:
        scratch = given.keep or Path(place)
        repository = given.mirror / "conda-forge+conda-forge-pinning-feedstock" / "repo"
        pinning = laid_out(repository, "HEAD", scratch / "pinning", "recipe") / "recipe"
        for case in every_feedstock(given.mirror) if given.all else CASES:
            if given.names and case.name not in given.names:
                continue
            try:
                lines = tried(case, given.mirror, pinning, given.peer, scratch)
            except InputError as error:
                if given.all and any(reason in str(error) for reason in REFUSED):
                    refused[next(reason for reason in REFUSED if reason in str(error))] += 1
                    continue
                lines = [f"| {case.name} {case.commit} | {case.system} |", f"    {error}"]
            except (FeedstockError, RuntimeError) as error:
                lines = [f"| {case.name} {case.commit} | {case.system} |", f"    {error}"]
            unlike += len(lines) > 1
            tries += 1
            print("\n".join(lines), flush=True)
    print(f"{tries} recipes, {unlike} with something to look at; refused: {dict(refused)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
