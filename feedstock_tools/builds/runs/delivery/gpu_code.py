"""After a build: checking that its package has GPU code for every architecture of the feedstock's spec."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from feedstock_tools.errors import WorkError
from feedstock_tools.gpu_code.architecture import Architecture, parse_architectures
from feedstock_tools.gpu_code.code import architecture_names, gpu_code, lacking


def check_gpu_code(package: Path, feedstock: Path, output: str, cuda: str | None) -> None:
    """Read the architectures out of the binaries of a package, and compare them with `cuda: architectures` of the spec.

    An output whose spec has `kernels: true` must have every one of them; one with `false` is not checked; any other
    only if it has GPU code at all. Feedstocks without a spec and CPU builds are not checked.

    Args:
        feedstock: its folder.
        output: the name of the package.
        cuda: the CUDA version that it was built with; None for a CPU build.

    Raises:
        WorkError: an architecture is missing; with all missing and all present ones.
    """
    spec = feedstock / "feedstock.yaml"
    if cuda is None or not spec.is_file():
        return
    architectures, kernels = _promises(spec, spec.stat().st_mtime_ns)
    promised = architectures.get(cuda, ())
    wanted = kernels.get(output)
    if not promised or wanted is False:
        return
    codes_of_files = gpu_code(package)
    missing = lacking(promised, codes_of_files)
    if missing and (codes_of_files or wanted):
        present = architecture_names(code for codes in codes_of_files.values() for code in codes)
        raise WorkError(
            f"{package.name} has no GPU code for {', '.join(map(str, missing))}, which the spec promises",
            hint=f"In it, for CUDA {cuda}: {', '.join(present) or 'no GPU code at all'}."
            " Check that the build script passes on all of them. `kernels: false` leaves an output unchecked.",
        )


@cache
def _promises(spec: Path, changed: int) -> tuple[Mapping[str, tuple[Architecture, ...]], Mapping[str, bool | None]]:
    """Architectures by CUDA version, and `kernels` by output; `changed` is the time that the file was changed."""
    from feedstock_tools.generate.spec.cross_checks import output_names
    from feedstock_tools.generate.spec.reading import read_spec
    from feedstock_tools.generate.texts.cuda.facts import architectures_by_version

    content = read_spec(spec)
    chosen = architectures_by_version(content)
    kernels = {name: output.kernels for output in content.outputs for name in output_names(output.name)}
    return {version: parse_architectures(names) for version, names in chosen.items()}, kernels
