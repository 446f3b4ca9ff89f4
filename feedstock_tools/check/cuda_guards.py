"""Whether a build's requirement on `__cuda` keeps it off machines that cannot run it, and off no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from feedstock_tools.channel.specs import admits
from feedstock_tools.check.findings import Complaint
from feedstock_tools.check.renderings import Built
from feedstock_tools.facts import CudaFacts, Toolkit
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.versions import parse_version

#: A build string that only GPU builds have, as in `pytorch * cuda*`.
_GPU_BUILD = re.compile(r"(?:^|[\s=*_])(?:cuda|gpu)[\w.]*\*?")
_LAST_NUMBER = re.compile(r"_(\d+)(?:_[a-z]\w*)?$")


def wrong_guards(outputs: Iterable[Built], facts: CudaFacts) -> Iterator[Complaint]:
    """The guards of one configuration's outputs that admit drivers too old for the build, or refuse those it is for.

    A guard without a version is fine: `cuda-version` and `cudatoolkit`, which such builds depend on, require the
    driver. So is a guard by minor version, which code that drivers compile needs.
    """
    mistakes: dict[Complaint, None] = {}
    for built in outputs:
        output = built.output
        toolkit = _toolkit(output, facts)
        if toolkit is None:
            continue
        major = parse_version(toolkit.version).major
        least = f"{major}.0" if major >= 11 else toolkit.version
        older = [version for version in facts.toolkits if parse_version(version) < parse_version(least)]
        for spec in _guards(output):
            wanted = spec.partition(" ")[2].strip().split(" ")[0]
            if wanted and any(admits(wanted, old) for old in older):
                message = f"{output.name} is built with CUDA {toolkit.version}, which needs a driver for CUDA {least}"
                mistakes[Complaint("__cuda", f"{message}, but its '{spec}' allows older ones")] = None
            elif wanted and not admits(wanted, toolkit.version):
                message = (
                    f"{output.name} is built with CUDA {toolkit.version}, which runs with a driver for CUDA {least}"
                )
                mistakes[Complaint("__cuda", f"{message}, but its '{spec}' refuses even {toolkit.version}")] = None
    yield from mistakes


def missing_guards(outputs: Sequence[tuple[str, Built]], facts: CudaFacts) -> Iterator[tuple[str, Complaint]]:
    """GPU builds that machines without a GPU get too, by configuration: solvers prefer them to the CPU builds.

    They do if nothing requires `__cuda`: not the build, nor another output of the feedstock or a GPU build that it
    depends on, and the build number is higher than that of the CPU build. A recipe that raises it only in the build
    string meant to. With equal numbers, it is left to time stamps. A package for all platforms whose CPU build requires
    the same holds no GPU code.

    Args:
        outputs: all outputs of the feedstock, each with the name of its configuration.
    """
    lowest: dict[tuple[str, str | None], int] = {}
    of_cpus: set[tuple[str, ...]] = set()
    for _, built in outputs:
        output = built.output
        if output.variant.get("cuda_compiler_version") == "None":
            key = (output.name, output.variant.get("target_platform"))
            lowest[key] = min(lowest.get(key, output.build_number), output.build_number)
            of_cpus.add((output.name, *output.requirements.get("run", ())))
    names = {built.output.name for _, built in outputs}
    for configuration, built in outputs:
        output = built.output
        of_cpu = lowest.get((output.name, output.variant.get("target_platform")))
        if of_cpu is None or _toolkit(output, facts) is None or "cuda_compiler_version" not in output.used.own:
            continue
        if output.noarch and (output.name, *output.requirements.get("run", ())) in of_cpus:
            continue
        if built.track_features or _guards(output) or _is_guarded_by_others(output, names):
            continue
        message = (
            f"nothing keeps the CUDA build of {output.name} off machines without a GPU: it does not require __cuda"
        )
        written = _LAST_NUMBER.search(output.build_string)
        if output.build_number > of_cpu:
            yield configuration, Complaint("__cuda", f"{message}, and its build number is above the CPU build's")
        elif written and int(written[1]) > output.build_number:
            inside = f"its build number is the CPU build's, though its build string ends in {written[1]}"
            yield configuration, Complaint("__cuda", f"{message}, and {inside}")
        elif output.build_number == of_cpu:
            inside = "its build number is the CPU build's, so solvers take the newer file"
            yield configuration, Complaint("__cuda", f"{message}, and {inside}", weight="remark")


def _toolkit(output: RenderedOutput, facts: CudaFacts) -> Toolkit | None:
    return facts.toolkits.get(".".join(output.variant.get("cuda_compiler_version", "").split(".")[:2]))


def _guards(output: RenderedOutput) -> list[str]:
    sections = (*output.requirements.get("run", ()), *output.requirements.get("run_constrained", ()))
    return [spec.strip() for spec in sections if spec.split()[:1] == ["__cuda"]]


def _is_guarded_by_others(output: RenderedOutput, siblings: Iterable[str]) -> bool:
    for spec in output.requirements.get("run", ()):
        name, _, rest = spec.strip().partition(" ")
        if (name != output.name and name in siblings) or _GPU_BUILD.search(rest):
            return True
    return False
