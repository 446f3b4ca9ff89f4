"""CUDA builds for real recipes that have none: `edit enable-gpu`, then everything that a reviewer would run.

    python -m benchmarks.edits.enable_gpu MIRROR [NAME...] [--keep DIR]

MIRROR holds bare clones as OWNER+NAME/repo, conda-forge's pinning among them. Each recipe of `CASES` is laid out at a
commit without CUDA, rerendered with the newest pinning, edited, and rerendered again. The table has the jobs before
and after, how many of them have CUDA, whether these would compile for CUDA by their commands, packages whose file names
are not their own, CPU packages whose requirements changed, and the findings of `lint` and `cuda check` that were not
there before.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.histories import PINNING, options, unpack
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
from feedstock_tools.errors import FeedstockError

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


def rerendered(feedstock: Path, pinning: Path) -> list[str]:
    """Rerender a feedstock in place; the names of its configurations."""
    rerender(feedstock, pinning=pinning).changes().apply()
    return [each.name for each in read_configurations(feedstock)]


def findings(feedstock: Path) -> tuple[Counter[str], str]:
    """What `lint` and `cuda check` find, without lines and places; and whether CUDA rows would compile for CUDA."""
    checked = check(feedstock, read_configurations(feedstock))
    found = [f"lint {each.rule}: {each.message}" for each in lint_feedstock(feedstock).findings]
    found += [f"check {each.key}: {each.message}" for each in checked.findings]
    by_commands = next(each for each in checked.checks if each.name == "commands for CUDA")
    return Counter(found), str(by_commands.verdict)


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


def tried(case: Case, mirror: Path, pinning: Path, scratch: Path) -> list[str]:
    """One line for the table, and lines on what is not right."""
    repository = mirror / f"conda-forge+{case.name}-feedstock" / "repo"
    cpu = unpack(repository, case.commit, scratch / "cpu" / f"{case.name}-feedstock")
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
    found, compiles = findings(gpu)
    problems += [f"new: {text}" for text in found - findings(cpu)[0]]
    if not with_cuda:
        problems.append("no job has CUDA")
    cells = [f"{case.name} {case.commit}", case.system, len(before), len(after), len(with_cuda), compiles]
    title = " | ".join(map(str, [*cells, f"+{added} -{removed}", len(draft.remarks) - 1]))
    return [f"| {title} |", *(f"    {problem}" for problem in problems)]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path, help="keep the feedstocks here")
    given = parser.parse_args()
    unlike = tries = 0
    print("| feedstock | build system | jobs | jobs after | with CUDA | compile for CUDA | lines | notes |")
    with tempfile.TemporaryDirectory() as place:
        scratch = given.keep or Path(place)
        pinning = unpack(given.mirror / PINNING / "repo", "HEAD", scratch / "pinning", "recipe") / "recipe"
        for case in CASES:
            if given.names and case.name not in given.names:
                continue
            try:
                lines = tried(case, given.mirror, pinning, scratch)
            except (FeedstockError, RuntimeError) as error:
                lines = [f"| {case.name} {case.commit} | {case.system} |", f"    {error}"]
            unlike += len(lines) > 1
            tries += 1
            print("\n".join(lines), flush=True)
    print(f"{tries} recipes, {unlike} with something to look at")
    return 0


if __name__ == "__main__":
    sys.exit(main())
