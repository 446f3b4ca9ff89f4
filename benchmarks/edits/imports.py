"""Recipes of GPU feedstocks imported as specs, generated again, and compared with what they were.

    python -m benchmarks.edits.imports FOLDER --pinning PINNING [NAME …]

FOLDER holds feedstocks as NAME-feedstock. Each is imported; recipe and generated recipe are rendered in every
configuration, natively and crossed, and rerendered. The table has the outputs, the configurations compared, the
share of verbatim lines, the differences, those of tests, scripts and descriptions, and the processor time.
"""

import argparse
import statistics
import time
from pathlib import Path

from feedstock_tools.errors import FeedstockError
from feedstock_tools.importing import import_recipe

NAMES = (
    *("tensorflow", "pytorch-cpu", "xgboost", "lightgbm", "faiss-split", "jaxlib", "cupy", "onnxruntime", "opencv"),
    *("arrow-cpp", "magma", "libmagma", "bitsandbytes", "ceres-solver", "colmap", "dgl", "flash-attn", "gromacs"),
    *("kokkos", "llama.cpp", "librmm", "openmm", "petsc", "qiskit-aer", "pytorch_scatter", "torchaudio"),
    *("torchvision", "triton", "nccl", "ucx-split", "vllm", "xformers", "slepc", "cutensor"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--pinning", type=Path)
    given = parser.parse_args()
    shares, equal, alike = [], 0, 0
    for name in given.names:
        start = time.process_time()
        try:
            found = import_recipe(given.folder / f"{name}-feedstock", pinning=given.pinning)
        except FeedstockError as error:
            print(f"{name:16} cannot be imported: {str(error).splitlines()[0]}")
            continue
        shares.append(found.verbatim_lines / found.lines)
        equal += not found.differences
        alike += not found.differences and not found.text_differences
        for text in {
            f"    {each.what}: {each.written[:150]} became {each.generated[:150]}" for each in found.text_differences
        }:
            print(text)
        print(
            f"{name:16} {found.outputs:3} outputs {found.configurations:4} configurations "
            f"{found.verbatim_lines:3} of {found.lines:4} lines verbatim ({shares[-1]:4.0%}) "
            f"{len(found.differences):3} differences, "
            f"{len({each.what for each in found.text_differences}):2} of texts {time.process_time() - start:5.1f} s",
            flush=True,
        )
    print(f"{equal} of {len(given.names)} equal in every configuration, {alike} with tests, scripts and descriptions")
    if shares:
        print(f"verbatim: {statistics.median(shares):.0%} (median), {max(shares):.0%} (largest)")


if __name__ == "__main__":
    main()
