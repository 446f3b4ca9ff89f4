"""Whether a build's requirement on `__cuda` keeps it off machines that cannot run it, and off no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from feedstock_tools.channel.specs import admits
from feedstock_tools.check.findings import Finding
from feedstock_tools.check.renderings import Job
from feedstock_tools.facts.cuda import CudaFacts, Toolkit
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.packages import Package
from feedstock_tools.recipe.requirements import spec_name
from feedstock_tools.versions import parse_version

#: A build string that only GPU builds have, as in `pytorch * cuda*`.
_GPU_BUILD = re.compile(r"(?:^|[\s=*_])(?:cuda|gpu)[\w.]*\*?")
#: From this CUDA on, conda-forge's own guards are by major version.
_BY_MAJOR = 12
_LAST_NUMBER = re.compile(r"_(\d+)(?:_[a-z]\w*)?$")


def wrong_guards(job: Job, facts: CudaFacts) -> Iterator[Finding]:
    """The guards of a job's packages that admit drivers too old for the build, or refuse those it is for.

    A guard without a version is fine: `cuda-version` and `cudatoolkit`, which such builds depend on, require the
    driver. A guard by minor version is a remark from CUDA 12 on: drivers of the whole major version run machine code,
    and only code that the driver compiles needs it. Before, it decides which of several builds a solver takes.
    """
    for output in (package.output for package in job.packages):
        toolkit = _toolkit(output, facts)
        if toolkit is None:
            continue
        major = parse_version(toolkit.version).major
        least = f"{major}.0" if major >= 11 else toolkit.version
        older = [version for version in facts.toolkits if parse_version(version) < parse_version(least)]
        built = f"{output.name} is built with CUDA {toolkit.version}, which"
        for spec in _guards(output):
            wanted = spec.removeprefix("__cuda").strip().split(" ")[0]
            if wanted and any(admits(wanted, old) for old in older):
                message = f"{built} needs a driver for CUDA {least}, but its '{spec}' allows older ones"
                yield Finding(job.name, "__cuda", message)
            elif wanted and not admits(wanted, toolkit.version):
                message = f"{built} runs with a driver for CUDA {least}, but its '{spec}' refuses even"
                yield Finding(job.name, "__cuda", f"{message} {toolkit.version}")
            elif major >= _BY_MAJOR and wanted and not admits(wanted, least):
                drivers = facts.toolkits[least].least_driver if least in facts.toolkits else None
                from_on = f" ({drivers.linux} or later on Linux)" if drivers and drivers.linux else ""
                message = (
                    f"{built} runs with every driver for CUDA {major}{from_on}, but its '{spec}' refuses older ones"
                )
                reason = f"only PTX, and code that NVRTC of {toolkit.version} generates, need the newer driver"
                yield Finding(job.name, "__cuda", f"{message}: {reason}", weight="remark")


def missing_guards(jobs: Sequence[Job], facts: CudaFacts) -> Iterator[tuple[Package, Finding]]:
    """GPU builds that machines without a GPU get too: solvers prefer them to the CPU builds.

    They do if nothing requires `__cuda`: not the build, nor another output of the feedstock or a GPU build that it
    depends on, and the build number is higher than that of the CPU build. A recipe that raises it only in the build
    string meant to. With equal numbers, it is left to time stamps. A package for all platforms whose CPU build requires
    the same holds no GPU code.

    Args:
        jobs: all of a feedstock.
    """
    built = [(job.name, package) for job in jobs for package in job.packages]
    lowest: dict[tuple[str, str | None], int] = {}
    of_cpus: set[tuple[str, ...]] = set()
    for output in (package.output for _, package in built):
        if output.variant.get("cuda_compiler_version") == "None":
            key = (output.name, output.variant.get("target_platform"))
            lowest[key] = min(lowest.get(key, output.build_number), output.build_number)
            of_cpus.add((output.name, *output.requirements.get("run", ())))
    names = {package.name for _, package in built}
    for configuration, package in built:
        output = package.output
        of_cpu = lowest.get((output.name, output.variant.get("target_platform")))
        if of_cpu is None or _toolkit(output, facts) is None or "cuda_compiler_version" not in output.used.own:
            continue
        if output.noarch and (output.name, *output.requirements.get("run", ())) in of_cpus:
            continue
        if package.track_features or _guards(output) or _is_guarded_by_others(output, names):
            continue
        message = (
            f"nothing keeps the CUDA build of {output.name} off machines without a GPU: it does not require __cuda"
        )
        written = _LAST_NUMBER.search(output.build_string)
        if output.build_number > of_cpu:
            message = f"{message}, and its build number is above the CPU build's"
            yield package, Finding(configuration, "__cuda", message)
        elif written and int(written[1]) > output.build_number:
            inside = f"its build number is the CPU build's, though its build string ends in {written[1]}"
            yield package, Finding(configuration, "__cuda", f"{message}, and {inside}")
        elif output.build_number == of_cpu:
            inside = "its build number is the CPU build's, so solvers take the newer file"
            yield package, Finding(configuration, "__cuda", f"{message}, and {inside}", weight="remark")


def _toolkit(output: RenderedOutput, facts: CudaFacts) -> Toolkit | None:
    return facts.toolkits.get(".".join(output.variant.get("cuda_compiler_version", "").split(".")[:2]))


def _guards(output: RenderedOutput) -> list[str]:
    sections = (*output.requirements.get("run", ()), *output.requirements.get("run_constrained", ()))
    return [spec.strip() for spec in sections if spec_name(spec) == "__cuda"]


def _is_guarded_by_others(output: RenderedOutput, siblings: Iterable[str]) -> bool:
    for spec in output.requirements.get("run", ()):
        name, _, rest = spec.strip().partition(" ")
        if (name != output.name and name in siblings) or _GPU_BUILD.search(rest):
            return True
    return False
