"""A first `feedstock.yaml` for a project, with comments on what a maintainer decides next."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

from feedstock_tools.generate.project import Project
from feedstock_tools.generate.spec.review_checks import NO_VERSION, PLACEHOLDERS
from feedstock_tools.generate.texts.wording import quoted
from feedstock_tools.wording import counted

#: The file with the licenses of a Rust project's crates.
_OF_CRATES = "THIRDPARTY.yml"
#: The minor version of the oldest Python in conda-forge's pinning, and of the newest.
_OLDEST, _NEWEST = 10, 14
#: What conda-forge's pinning has of the packages that projects of PyPI are built with, if none was fetched.
_PINNED = frozenset({"numpy", "petsc4py", "pyqt", "pytorch", "slepc4py", "tensorflow", "vtk"})
#: Those of a spec without a pinning.
_OWN = range(11, 14)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the sources are: the keys of an entry of `sources`, such as `path` or `git` and `rev`."""

    keys: Mapping[str, str]
    homepage: str | None = None
    repository: str | None = None


def first_spec(
    project: Project,
    origin: Origin,
    maintainer: str | None,
    *,
    self_contained: bool,
    pinned: Collection[str] = _PINNED,
) -> str:
    """The text of the spec. It generates as it is; what the project does not say has a comment.

    Args:
        maintainer: a name on GitHub; None if it is not known.
        self_contained: whether it takes its versions from the facts that ship with this program.
        pinned: the keys of conda-forge's pinning.
    """
    parts = (
        _head(project, self_contained),
        _sources(origin),
        _output(project, self_contained, frozenset() if self_contained else pinned),
        _about(project, origin),
    )
    last = (
        f"maintainers: [{quoted(maintainer)}]"
        if maintainer
        else f"maintainers: [{PLACEHOLDERS['maintainers']}]  # your name on GitHub"
    )
    return "".join(f"{line}\n" for part in parts for line in part) + f"{last}\n"


def _head(project: Project, self_contained: bool) -> Iterator[str]:
    yield "# `feedstock-tools generate` makes the recipe from this file; `generate --schema` prints all its keys."
    yield f"name: {project.name}"
    since = f"  # the last tag, {counted(project.since_tag, 'commit')} before" if project.since_tag else ""
    yield f"version: {quoted(project.version or PLACEHOLDERS['version'])}" + (
        since if project.version else f"  {NO_VERSION}"
    )
    if self_contained:
        yield "# With the versions that feedstock-tools knows; `conda-forge` follows the pinning of the day."
        yield "pinning: self-contained"
    yield ""
    yield "# linux-aarch64: {build_on: linux-64} cross-compiles; osx-64, osx-arm64 and win-64 are the other usual ones."
    yield "platforms:"
    yield "  linux-64:"
    yield ""
    if _is_pure(project):
        yield from _oldest_python(project, self_contained)
    elif project.kind == "python" and self_contained:
        yield f"python: [{', '.join(f'3.{minor}' for minor in _OWN)}]"
        if "numpy" in project.build:
            yield "# As in conda-forge's pinning; without it, builders take numpy 1.26 where no version is required."
            yield 'variants: {numpy: ["2"]}'
        yield ""
    if "cuda" in project.languages:
        if not self_contained:
            yield "# Without `versions`, those of conda-forge's pinning; a list selects from them."
        yield "cuda:" if self_contained or project.kernels else "cuda: {}"
        if self_contained:
            yield "  versions: [12.9, 13.0]"
        if project.kernels:
            yield "  architectures: common"
            variable, style = ("TORCH_CUDA_ARCH_LIST", "torch") if project.for_torch else ("CUDAARCHS", "cmake")
            yield f"  # Passes the architectures to {'PyTorch' if project.for_torch else 'CMake'}."
            yield f"  script: {{file: cuda_architectures.sh, variable: {variable}, style: {style}}}"
        yield ""


def _oldest_python(project: Project, self_contained: bool) -> Iterator[str]:
    """The keys of a package that is built once, with the oldest Python."""
    oldest = _oldest(project, own=self_contained)
    if self_contained:
        yield "# The Python of this machine, for builds here; conda-forge builds with its oldest."
        yield f"python: [{oldest}]"
    if oldest:
        yield f'variants: {{python_min: ["{oldest}"]}}'
        yield ""


def _sources(origin: Origin) -> Iterator[str]:
    if "url" not in origin.keys:
        yield "# For conda-forge, name the archive of a release: url with {version}, and its sha256."
    elif "{version}" not in origin.keys["url"]:
        yield "# This address changes with each release; prefer one with {version}, such as the project's own."
    yield "sources:"
    for at, (key, value) in enumerate(origin.keys.items()):
        yield f"  {'- ' if at == 0 else '  '}{key}: {quoted(value)}"
    yield ""


def _output(project: Project, self_contained: bool, pinned: Collection[str]) -> Iterator[str]:
    if _is_pure(project):
        yield "# No compiled code is seen in the project, so that it is built once, with the oldest Python."
    if project.python is not None:
        yield f"# The project asks for Python {project.python}."
    if project.abi:
        yield f"# Its Cargo.toml asks for the stable ABI ({project.abi}), with which a build serves later Pythons too:"
        yield "# conda-forge has `python-abi3` and `is_abi3` for that, which a spec cannot say."
    yield "outputs:"
    yield f"  - name: {project.name}"
    yield f"    kind: {'python' if project.kind == 'python' else 'library'}"
    if _is_pure(project):
        yield "    noarch: python"
    if project.headers_alone:
        yield "    # CMake installs headers and no library, so that one package serves all platforms."
        yield "    noarch: generic"
    yield from _script(project)
    if _is_pure(project) and project.entry_points:
        yield "    # pip makes no commands for Windows in a package that is built on Linux."
        yield f"    entry_points: [{', '.join(map(quoted, project.entry_points))}]"
    yield from _skip(project)
    if project.kernels:
        yield "    # GPU builds must have code for each architecture."
        yield "    kernels: true"
    yield from _requirements(project, self_contained, pinned)
    yield from _test(project)
    if project.kind == "cmake" and not project.headers_alone:
        yield "    # Packages that link it must run with this minor version; x is enough if its ABI is that stable."
        yield "    run_exports:"
        yield f"      - {{pin: {project.name}, max: x.x}}"
    yield from _parts(project)
    yield ""


def _requirements(project: Project, self_contained: bool, pinned: Collection[str]) -> Iterator[str]:
    needs = dict(_needs(project, self_contained, pinned))
    if needs:
        yield "    requirements:"
    if project.packages:
        yield f"      # The build looks for {', '.join(project.packages)}: name the packages with them in `host`."
    for left in _left_out(project, self_contained=self_contained):
        yield f"      # Left out: {left}"
    if project.names_of:
        yield f"      # PyPI's names are translated by a mapping of conda-forge's of {project.names_of}."
    if project.by_address:
        names = ", ".join(project.by_address)
        yield f"      # The project names {names} by address, which a recipe cannot: add packages of a channel."
    for section, entries in needs.items():
        yield f"      {section}:"
        yield from (f"        - {entry}{_guess(entry, project)}" for entry in entries)


def _guess(entry: str, project: Project) -> str:
    guessed = entry.strip("'\"").partition(" ")[0] in project.guessed
    return "  # a guess: the mapping of PyPI's names does not have it" if guessed else ""


def _marked(project: Project, pairs: Iterable[tuple[str, str]], *, self_contained: bool) -> Iterator[str]:
    """The requirements with a marker whose condition a recipe can have."""
    for need, marker in pairs:
        condition = _condition(project, marker, self_contained=self_contained)
        if condition == "":
            yield quoted(need)
        elif condition not in (None, "never") and _is_pure(project):
            yield f"{quoted(need)}  # it needs this with {condition} alone, but the package serves every Python"
        elif condition not in (None, "never"):
            yield f'{{package: "{need}", when: {condition}}}'


def _left_out(project: Project, *, self_contained: bool) -> Iterator[str]:
    """The requirements whose marker no condition of a recipe says."""
    for need, marker in (*project.marked_build, *project.marked_run):
        if _condition(project, marker, self_contained=self_contained) is None:
            yield f"{need}; {re.sub('[^ -~]+', ' ', marker)[:_LONGEST_MARKER]}"


_LONGEST_MARKER = 200
_COMPARISON = re.compile(r"(\w+)\s*(==|!=|<=|>=|<|>)\s*['\"]([^'\"]*)['\"]")
#: Variables of markers and their values → conditions; none where conda's Python always has the value.
_OF_MARKERS = {
    **dict.fromkeys((("sys_platform", "win32"), ("platform_system", "Windows"), ("os_name", "nt")), "win"),
    **dict.fromkeys((("sys_platform", "darwin"), ("platform_system", "Darwin")), "osx"),
    **dict.fromkeys((("sys_platform", "linux"), ("platform_system", "Linux")), "linux"),
    **dict.fromkeys((("platform_python_implementation", "CPython"), ("implementation_name", "cpython")), ""),
    ("os_name", "posix"): "unix",
    ("platform_machine", "x86_64"): "x86_64",
    ("platform_machine", "aarch64"): "aarch64",
}


def _condition(project: Project, marker: str, *, self_contained: bool) -> str | None:
    """A marker as a condition of a spec: "" where it holds for all Pythons, "never", and None where it cannot be said.

    A package that is built once can have conditions on Python alone, which are left out.

    >>> project = Project("python", "a", "1", None, None, None, (), ("c",))
    >>> _condition(project, "python_version < '3.12' and sys_platform == 'win32'", self_contained=False)
    'python < 3.12 and win'
    >>> _condition(project, "extra == 'x'", self_contained=False)
    'never'
    """
    is_once = _is_pure(project)
    oldest = int((_oldest(project, own=self_contained and is_once) or f"3.{_OLDEST}").partition(".")[2])
    pythons = range(max(oldest, _OWN[0]), _OWN[-1] + 1) if self_contained else range(oldest, _NEWEST + 1)
    said = []
    for part in marker.split(" and "):
        found = _COMPARISON.fullmatch(part.strip("() \t"))
        said.append(_compared(range(oldest, _ENDLESS) if is_once else pythons, *found.groups()) if found else None)
    if "never" in said:
        return "never"
    conditions = [each for each in said if each]
    differs = any(not each.startswith("python ") for each in conditions)
    return None if None in said or (differs and is_once) else " and ".join(conditions)


_ENDLESS = 1000


def _compared(pythons: range, variable: str, operator: str, value: str) -> str | None:
    """One comparison of a marker as a condition, for the Pythons that are built; None for those to come."""
    if variable == "extra":
        return "never"
    if variable in ("python_version", "python_full_version") and (found := re.fullmatch(r"3\.(\d{1,3})", value)):
        number = int(found[1])
        holds = {minor for minor in pythons if _ORDER[operator](minor, number)}
        if holds == set(pythons):
            return ""
        return f"python {operator} {value}" if holds else "never" if number <= pythons[0] else None
    if variable in ("platform_python_implementation", "implementation_name") and value.lower() == "pypy":
        return {"!=": "", "==": "never"}.get(operator)
    word = _OF_MARKERS.get((variable, value))
    if word is None or operator not in ("==", "!="):
        return None
    return word if operator == "==" else f"not {word}" if word else "never"


#: The comparisons of markers.
_ORDER = {"<": lt, "<=": le, "==": eq, "!=": ne, ">=": ge, ">": gt}


def _parts(project: Project) -> Iterator[str]:
    """What to do about folders with projects of their own, such as the Python package of a library."""
    for part in project.parts:
        yield f"  # {part}/ has a pyproject.toml. 'feedstock-tools init' with that folder writes an output to add here,"
        yield f"  # with 'folder: {part}' in its script, and 'pins: [{project.name}]' if it needs the library."


def _script(project: Project) -> Iterator[str]:
    """The script; where CMake leaves CUDA out unless an option is set, GPU builds set it."""
    if project.fetches:
        yield "    # It may fetch files as it builds: a recipe names all that it builds from in `sources`."
    if project.packs_libraries:
        yield "    # A guess: its setup.py names no extension and packs libraries, which it makes itself."
    values = [f'{name}: [{{value: "1", when: cuda}}]' for name in project.environment]
    if project.version_of_git:
        yield "    # Its build asks git for the version, which is not in a recipe's sources, unless this says it."
        values.append(f'{project.version_of_git}: "{{version}}"')
    elif project.version_of_git is not None:
        yield "    # Its build asks git for the version: see that the package has this one."
    if "cuda" in project.languages and len(project.cuda_switches) == 1:
        yield f"    # {project.cuda_switches[0]} is off by default, so that GPU builds would not use the GPU."
        options = f", cuda_options: [-D{project.cuda_switches[0]}=ON]"
        yield f"    script: {{template: {_template(project)}{options}{_environment(values)}}}"
        return
    if project.cuda_switches:
        names = ", ".join(project.cuda_switches)
        yield f"    # Off by default are {names}: `cuda_options: [-D…=ON]` sets what GPU builds need."
    if "rust" in project.languages:
        yield "    # conda-forge wants the licenses of the crates that are linked in."
        yield "    script:"
        if project.version_of_git:
            yield f"      - export {project.version_of_git}=$PKG_VERSION"
        yield f"      - cargo-bundle-licenses --format yaml --output {_OF_CRATES}"
        yield "      - $PYTHON -m pip install . -vv --no-deps --no-build-isolation"
        return
    if project.environment:
        yield "    # Its setup.py looks for a GPU unless told; the machine that builds has none."
    if project.asked:
        names = ", ".join(project.asked)
        yield f"    # Its setup.py reads {names}, which nothing sets: add what GPU builds need to `environment`."
    if project.force_build:
        yield "    # Without it, setup.py takes a wheel that the project built, where it finds one."
        values += [f'{name}: "TRUE"' for name in project.force_build]
    yield f"    script: {{template: {_template(project)}{_environment(values)}}}"


def _environment(values: Sequence[str]) -> str:
    return f", environment: {{{', '.join(values)}}}" if values else ""


def _template(project: Project) -> str:
    if project.kind == "cmake":
        return "cmake"
    backends = _names(project.build)
    return next((backend for backend in ("scikit-build-core", "setuptools") if backend in backends), "pip")


def _skip(project: Project) -> Iterator[str]:
    oldest = _oldest(project)
    conditions = ["cpu"] if project.only_gpu else []
    conditions += [f"python < {oldest}"] if oldest and not _is_pure(project) else []
    if project.only_gpu:
        yield "    # It does not compile without CUDA; without this line CPU builds are made too."
    if conditions:
        yield f"    skip: [{', '.join(conditions)}]"


def _oldest(project: Project, *, own: bool = False) -> str | None:
    """The oldest Python of a project's packages, if it is newer than the oldest of conda-forge; `own`: made here."""
    found = re.match(r">=(3\.\d{1,4})(?!\d)", project.python or "")
    minor = max(int(found[1].partition(".")[2]) if found else 0, sys.version_info[1] if own else 0)
    return f"3.{minor}" if minor > _OLDEST else None


def _is_pure(project: Project) -> bool:
    return project.kind == "python" and not project.languages


def _names(needs: Iterable[str]) -> set[str]:
    return {need.split(" ")[0] for need in needs}


def _test(project: Project) -> Iterator[str]:
    yield "    test:"
    if project.kind == "python":
        if project.module:
            yield f"      imports: [{project.module}]"
        yield "      pip_check: true"
        if project.programs:
            yield f"      commands: [{', '.join(f'{program} --help' for program in project.programs)}]"
        if _is_pure(project):
            yield '      requires: ["python {python_min}.*"]'
        return
    yield "      # Add what users rely on, such as a program that runs."
    yield "      commands:"
    for program in project.programs:
        yield f"        - test -x $PREFIX/bin/{program}"
    for library in project.libraries:
        yield f"        - test -f $PREFIX/lib/lib{library}.so"
    if project.headers_alone:
        yield '        - test -n "$(ls "$PREFIX/include")"'
        return
    if not project.programs and not project.libraries:
        yield '        - test -n "$(ls "$PREFIX")"'


def _needs(project: Project, self_contained: bool, pinned: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    with_torch = {"pytorch"} if project.for_torch else set[str]()
    linked = [f"{package}  # a guess: CMake looks for {name}" for package, name in project.linked.items()]
    tools = [f"compiler: {language}" for language in project.languages]
    if project.languages:
        tools.append("stdlib: c")
    builds_with_cmake = project.kind == "cmake" or any(
        requirement.startswith("scikit-build-core") for requirement in project.build
    )
    if builds_with_cmake:
        tools += ["cmake", "ninja"]
    elif project.runs_cmake:
        tools += ["cmake", "make"]
    elif project.for_torch:
        tools.append("ninja")  # with it, PyTorch compiles several files at once
    if project.kind == "python" and tools:
        across = ['"cross-python_{target_platform}"', "python"]
        across += [name for name in ("numpy", "pytorch") if name in with_torch | _names(project.build)]
        tools = [
            *(f"{{package: {name}, when: cross}}" for name in across),
            *_torch_builds(project, "cross and "),
            *tools,
        ]
    if "rust" in project.languages:
        tools.append("cargo-bundle-licenses")
    if tools:
        yield "build", tools
    if project.kind == "cmake" and (host := [*linked, *_cuda_host(project)]):
        yield "host", host
    if project.kind == "python":
        # What packages are built with has the version of the pinning; its run exports have the bounds that follow.
        build = [name if (name := need.split(" ")[0]).replace("-", "_") in pinned else need for need in project.build]
        host = [*map(quoted, build), *_marked(project, project.marked_build, self_contained=self_contained)]
        run = [*map(quoted, project.run), *_marked(project, project.marked_run, self_contained=self_contained)]
        if _is_pure(project):
            yield "host", ["python {python_min}.*", "pip", *host]
            yield "run", ["python >={python_min}", *run]
            return
        torch = [*with_torch.difference(_names(build)), *_torch_builds(project)]
        cython = ["cython  # a guess: it has .pyx files and names no Cython"] if project.unnamed_cython else []
        yield "host", ["python", "pip", *host, *cython, *torch, *linked, *_cuda_host(project)]
        yield "run", ["python", *run, *with_torch.difference(_names(project.run)), *_torch_builds(project)]


def _torch_builds(project: Project, also: str = "") -> Iterator[str]:
    """The choice of PyTorch's builds: those with CUDA in GPU builds, as conda-forge's extensions of PyTorch have it."""
    if "cuda" in project.languages and (project.for_torch or "pytorch" in _names(project.build)):
        for kind in ("cuda", *([] if project.only_gpu else ["cpu"])):
            yield f'{{package: "pytorch * {kind}*", when: {also}{kind}}}'


#: The libraries whose headers PyTorch's own headers for CUDA include.
_FOR_TORCH = ("libcublas-dev", "libcusolver-dev", "libcusparse-dev")


def _cuda_host(project: Project) -> Iterator[str]:
    if "cuda" in project.languages:
        for name in ("cuda-cudart-dev", *(_FOR_TORCH if project.for_torch else ())):
            yield f"{{package: {name}, when: cuda >= 12}}"


def _about(project: Project, origin: Origin) -> Iterator[str]:
    homepage = project.homepage or origin.homepage
    yield "about:"
    yield f"  homepage: {quoted(homepage or PLACEHOLDERS['homepage'])}" + ("" if homepage else "  # the project's page")
    choice = " or ".join(project.possible_licenses)
    hint = f"{choice}: the license's text does not say which" if choice else "an SPDX expression"
    if project.license_of_crate:
        yield f"  # Its Cargo.toml says {project.license_of_crate}."
    yield f"  license: {quoted(project.license or PLACEHOLDERS['license'])}" + (
        "" if project.license else f"  # {hint}"
    )
    files = [
        *map(quoted, project.license_files or ("LICENSE",)),
        *([_OF_CRATES] if "rust" in project.languages else []),
    ]
    listed = files[0] if len(files) == 1 else f"[{', '.join(files)}]"
    none = "  # the sources have none under a usual name: add the project's own beside the recipe"
    yield f"  license_file: {listed}" + ("" if project.license_files else none)
    for key, address in (
        ("documentation", project.documentation),
        ("repository", project.repository or origin.repository),
    ):
        if address is not None:
            yield f"  {key}: {quoted(address)}"
    summary = quoted(project.summary or PLACEHOLDERS["summary"].format(name=project.name))
    yield f"  summary: {summary}" + ("" if project.summary else "  # the project describes itself nowhere that is read")
    yield ""
