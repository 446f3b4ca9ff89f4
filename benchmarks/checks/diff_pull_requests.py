"""Pull requests of real feedstocks: does `diff` find what their descriptions say?

    python benchmarks/checks/diff_pull_requests.py MIRROR [--only FEEDSTOCK] [--show]

MIRROR holds bare clones as OWNER+NAME/repo. Each row below is a commit of a main line, what its message says changed,
and the lines that the text of `diff COMMIT~1 COMMIT` must have for it: patterns that were written down from the message
alone, before the differences were seen, but for four, marked below. `--show` prints the differences themselves.
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.check.differences import compare_feedstocks
from feedstock_tools.errors import FeedstockError
from feedstock_tools.feedstock.git import checked_out
from feedstock_tools.report.checks.differences import differences_text


@dataclass(frozen=True, slots=True)
class Request:
    """A pull request: its commit, what it says, and patterns that must occur in the differences, or must not."""

    feedstock: str
    commit: str
    says: str
    patterns: tuple[str, ...]
    absent: tuple[str, ...] = ()


def added(part: str, what: str) -> str:
    """The pattern of a line that a part of a package gets."""
    return rf"^  {part}:\n(?:  [-+] .*\n)*?  \+ {what}"


def removed(part: str, what: str) -> str:
    """The pattern of a line that a part of a package loses."""
    return rf"^  {part}:\n(?:  [-+] .*\n)*?  - {what}"


REQUESTS = (
    Request("cupy", "95b2a2d", "cuda-version becomes a run requirement", (added("run", "cuda-version"),)),
    Request("cupy", "197bc44", "support of cusparselt goes", (removed(r"\w+", "cusparselt"),)),
    Request("magma", "b2856dc", "cuda-version is pinned in host", (added("host", "cuda-version"),)),
    Request("magma", "509c0dc", "Windows is built for CUDA 12", (r"^  \+ win_64.*12\.0", r"win-64 with .*CUDA 12")),
    Request(
        "kokkos",
        "620c598",
        "the CUDA variant requires __cuda",
        (added("run", "__cuda"), r"^  kokkos on linux-64.* with no GPU: CPU instead of"),
    ),
    Request("kokkos", "5fb6332", "a build string; Windows is built for CPU", ("build string:", r"^  \+ win_64")),
    Request("lightgbm", "be07a46", "the build string names the CUDA version", (r"\+ .*cuda1\d",)),
    Request("lightgbm", "8c07431", "library and Python package become two outputs", (r"^  \+ liblightgbm in",)),
    Request("lightgbm", "fcca307", "constraints for optional requirements", (added("run_constrained", r"\w"),)),
    Request("onnxruntime", "64f9877", "run exports for onnxruntime-cpp", (added("run_exports", "weak: onnxruntime"),)),
    Request("onnxruntime", "3a41d08", "the build string names the CUDA version", (added("build string", ".*cuda1"),)),
    Request("onnxruntime", "02416dd", "Windows is built for CUDA", (r"^  \+ win_64_.*cuda",)),
    Request(
        "cudnn",
        "3ebab93",
        "lib and dev packages of their own",
        (r"^  \+ (.*, )?libcudnn(,| in)", r"^  \+ (.*, )?libcudnn-dev(,| in)"),
    ),
    # Changed: they stand where conda-build ignores them, which `lint` reports; the next one moves them.
    Request("cudnn", "7fa65f0", "missing run exports", (), (added("run_exports", r"\w"),)),
    Request("cudnn", "6082666", "run exports move to where they count", (added("run_exports", r"\w"),)),
    Request("jaxlib", "9bc9f0e", "a missing run requirement on cuda-cupti", (added("run", "cuda-cupti"),)),
    Request("jaxlib", "044e3f9", "cuda-nvcc at run time with CUDA 12", (added("run", "cuda-nvcc"),)),
    # Changed: the plugins are wheels that the build script puts into the package.
    Request("jaxlib", "25f5103", "plugins of CUDA are built too, with CUDA 12.6", (r"12\.6", r"^  build\.sh$")),
    Request("petsc", "2655b7a", "the CUDA build is exported", (added("run_exports", r"\w+: petsc .*cuda"),)),
    Request("petsc", "bb8c118", "redundant pins at run time go", (removed("run", r"\w"),)),
    Request("petsc", "b2018d4", "stricter requirements on MPI", (r"mpich|openmpi",)),
    Request("slepc", "217c600", "CUDA builds", (r"^  \+ linux_64.*cuda",)),
    # Changed: in the recipe it is a run export that is ignored, and a constraint.
    Request("ucx-split", "157e34c", "libcudart is optional", (added("ignored run exports", "from cuda-cudart-dev"),)),
    Request("ucx-split", "39bcc05", "libnl and libnuma go", (r"  - libnl", r"  - libnuma")),
    Request("ucx-split", "3a288c1", "the pin of rdma-core goes", (r"  - rdma-core .",)),
    Request("ucx-split", "16941ea", "no build for CUDA 11.2", (r"^  - linux_64.*11\.2",)),
    # Changed: the recipe has a pin_compatible with these bounds.
    Request("nccl", "ffab3d2", "the toolkit is limited to 12.2 and newer, below 13", (r"12\.2a0 to x",)),
    Request("nccl", "3e1ff81", "one build for all minor versions of CUDA 12", (r"cuda-version",)),
    Request("libmagma", "bc7e3f2", "mkl is prohibited", (added(r"\w+", "nomkl"),)),
    Request("xgboost", "21bfb2f", "pins of builds are written with *", (r"\+ libxgboost \* ",)),
    Request("ceres-solver", "d724060", "a requirement on eigen-abi-devel", (r"\+ eigen-abi-devel",)),
    Request("bitsandbytes", "9a485f5", "build strings tell CPU from CUDA", (added("build string", "cuda"),)),
    Request("faiss-split", "a2fa190", "constraints for compatible packages", (added("run_constrained", r"\w"),)),
    Request(
        "tensorflow",
        "393c877",
        "CUDA 12.9",
        (
            r"^  \+ linux_64.*12\.9|-> 12\.9",
            r"^  tensorflow on linux-64 with driver .*: CUDA 12\.9 instead of CUDA 12\.8",
        ),
    ),
    Request("openmm", "39f13dd", "CUDA 12.9", (r"12\.9", r"CUDA 12\.9 instead of")),
)


def found(mirror: Path, request: Request) -> tuple[str, float]:
    """The text of the differences, and the processor time of the comparison."""
    repository = mirror / f"conda-forge+{request.feedstock}-feedstock" / "repo"
    with checked_out(repository, f"{request.commit}~1") as before, checked_out(repository, request.commit) as after:
        start = time.process_time()
        try:
            text = differences_text(compare_feedstocks(before, after))
        except FeedstockError as error:
            text = f"error: {error}\n"
    return text, time.process_time() - start


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args(words)
    requests = [request for request in REQUESTS if given.only in (None, request.feedstock)]
    number = 0
    for request in requests:
        text, seconds = found(given.mirror, request)
        missing = [pattern for pattern in request.patterns if not re.search(pattern, text, re.MULTILINE)]
        missing += [pattern for pattern in request.absent if re.search(pattern, text, re.MULTILINE)]
        number += not missing
        verdict = "found" if not missing else "NOT"
        print(f"{verdict:5} {seconds:5.1f} s {request.feedstock} {request.commit}: {request.says}")
        for pattern in missing:
            print(f"        not as expected: {pattern!r}")
        if given.show:
            print("".join(f"    {line}\n" for line in text.splitlines()))
    print(f"{number} of {len(requests)} found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
