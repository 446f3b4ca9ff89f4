"""What a project says about itself: CMakeLists.txt, pyproject.toml, setup.py, PKG-INFO and the text of its license.

Nothing of the project is run: names, versions and requirements are read where they stand as literals.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email import message_from_string
from email.message import Message
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.generate.cmake_lists import CMakeLists, read_cmake_lists
from feedstock_tools.generate.package_names import OF_CMAKE, PackageNames
from feedstock_tools.generate.setup_script import SetupScript, read_setup_script
from feedstock_tools.generate.spec.review_checks import license_mistake
from feedstock_tools.reading import is_below, is_file, open_file, read_text, read_up_to
from feedstock_tools.versions import normalized

_LARGEST = 1024 * 1024
_FREQUENT_NAMES = PackageNames()
_PACKAGE = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
#: Characters that no line of a file has.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]+")
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*+"
_NAMED = rf"({_NAME})\s*+(?:\[[^\]]*+\]\s*+)?+"
_REQUIREMENT = re.compile(rf"{_NAMED}\(?([^;()]*+)\)?\s*+(;.*+)?")
#: A requirement by an address, without a marker (PEP 508: a space ends the address).
_BY_ADDRESS = re.compile(rf"{_NAMED}@\s*+\S++")


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_list_of_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


#: Classifiers of a license → its identifier, where a classifier means one license alone.
_CLASSIFIERS = {
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "License :: OSI Approved :: University of Illinois/NCSA Open Source License": "NCSA",
    "License :: OSI Approved :: GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "License :: OSI Approved :: GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "License :: OSI Approved :: GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "License :: OSI Approved :: GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0-or-later",
}
#: Common names of licenses in free text, without what says nothing → identifiers.
_FREE_TEXTS = {
    **dict.fromkeys(("mit", "expat"), "MIT"),
    **dict.fromkeys(("apache 2.0", "apache 2", "apache2", "apache2.0", "asl 2.0"), "Apache-2.0"),
    **dict.fromkeys(("bsd 3 clause", "3 clause bsd", "modified bsd", "new bsd", "bsd3"), "BSD-3-Clause"),
    **dict.fromkeys(("bsd 2 clause", "2 clause bsd", "simplified bsd"), "BSD-2-Clause"),
    **dict.fromkeys(("mpl 2.0", "mozilla public 2.0", "mozilla public 2.0 mpl 2.0"), "MPL-2.0"),
    "isc": "ISC",
}
_SAYS_NOTHING = re.compile(r"\b(the|license|licence|licensed|software|version|v(?=[0-9]))\b|[^a-z0-9.]+")
#: The keys of a pyproject.toml that are read here: what each must be, an example, and whether a value is that.
_TYPES: Mapping[str, Mapping[str, tuple[str, str, Callable[[Any], bool]]]] = {
    "build-system": {
        "requires": ("a list of strings", '["setuptools"]', _is_list_of_strings),
        "build-backend": ("a string", '"setuptools.build_meta"', _is_string),
    },
    "project": {
        "name": ("a string", '"demo"', _is_string),
        "version": ("a string", '"1.0"', _is_string),
        "description": ("a string", '"Demonstrates"', _is_string),
        "requires-python": ("a string", '">=3.11"', _is_string),
        "license": ("a string or a table", '"MIT"', lambda value: isinstance(value, str | dict)),
        "classifiers": ("a list of strings", '["Programming Language :: Python"]', _is_list_of_strings),
        "dependencies": ("a list of strings", '["numpy >=2"]', _is_list_of_strings),
        "scripts": (
            "a table of strings",
            '{demo = "demo:main"}',
            lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
        ),
        "urls": ("a table", '{Homepage = "https://example.org"}', lambda value: isinstance(value, dict)),
    },
}
#: Build requirements of projects that compile, each with its languages.
_COMPILED = {
    **dict.fromkeys(("scikit-build-core", "scikit-build", "meson-python", "pybind11", "nanobind"), ("c", "cxx")),
    **dict.fromkeys(("cython", "cffi"), ("c",)),
    **dict.fromkeys(("maturin", "setuptools-rust"), ("c", "rust")),
}
#: Those whose projects name their languages in a file of the build system.
_BY_ITS_FILE = frozenset({"scikit-build-core", "scikit-build", "meson-python"})
#: Providers of scikit-build-core for values of the metadata → the projects that they come from.
_PROVIDERS = {
    "scikit_build_core.metadata.fancy_pypi_readme": "hatch-fancy-pypi-readme",
    "scikit_build_core.metadata.setuptools_scm": "setuptools-scm",
}
#: The variable from which setuptools-scm, and what stands on it, takes a version in place of git's.
_SETUPTOOLS_SCM = "SETUPTOOLS_SCM_PRETEND_VERSION"
#: Languages as Meson names them → as recipes do; Cython compiles to C.
_OF_MESON = {"c": "c", "cython": "c", "cpp": "cxx", "cuda": "cuda", "fortran": "fortran"}
#: The labels under which projects name their repository.
_REPOSITORY = ("repository", "source", "sourcecode", "code", "github", "gitlab")
_DOCUMENTATION = ("documentation", "docs")
#: Endings of sources, each with its languages.
_SUFFIXES = (
    ({".c", ".pyx"}, ("c",)),
    ({".cc", ".cpp", ".cxx"}, ("cxx",)),
    ({".f", ".f90", ".F90"}, ("fortran",)),
    ({".rs"}, ("rust",)),
)
#: What `dependency()` names in a meson.build that no package of its own is needed for.
_OF_MESON_ALONE = frozenset({"threads", "openmp", "dl", "numpy", "cuda", "Accelerate", "appleframeworks", "python3"})
_OF_CXX = re.compile(rb"^#\s*distutils\s*:\s*language\s*=\s*c\+\+", re.MULTILINE)
_MOST_MODULES, _BEGINNING = 500, 4096
_PLACES = ("*.*", "src/**/*.*", "python/**/*.*", "*/*.*")


@dataclass(frozen=True, slots=True)
class Project:
    """A project as far as its files tell; None and empty where they do not.

    `languages` are those that it compiles, as recipes name compilers. `build` and `run` are requirements as conda
    writes them; `by_address` names those that have an address in place of a version. `module` is the module that Python
    imports. `python` are the Pythons that it runs with: `>=3.10`. `libraries` and `programs` are what CMake installs
    under the names of its targets; `entry_points` commands of Python, `name = module:function`. `only_gpu`: it does not
    build without a CUDA compiler. `kernels`: CMake compiles CUDA code, rather than linking CUDA's libraries alone.
    `cuda_switches` are options of CMake that are off and turn
    CUDA on. `headers_alone`: CMake installs headers and no library. `packages` are those that its build looks for, as
    its files name them; `linked` packages of conda-forge that its build cannot do without, each with its name in CMake;
    `parts` folders in it with a pyproject.toml. `for_torch`: it compiles extensions of PyTorch;
    `environment` are variables that turn CUDA on in its setup.py, `asked` others that may, `force_build` those that
    make it compile at all. `runs_cmake`, `packs_libraries`: as `SetupScript` has them. `fetches`: it may fetch files as
    it builds.
    `version_of_git`: its build takes the version from git, unless this variable has one ("" if none can); it is
    `since_tag` commits after the tag of `version`.
    `unnamed_cython`: its modules in Cython are compiled by what it does not name. `marked_build` and `marked_run` are
    further requirements, each with its marker. `guessed` are packages whose names the mapping of the day `names_of`
    does not have. `license` is None where its files leave several `possible_licenses`; `license_of_crate` is that of a
    Cargo.toml if it is another. `abi` is the oldest Python of the stable ABI that a Rust project asks for: `abi3-py39`.
    """

    kind: Literal["cmake", "python"]
    name: str
    version: str | None
    summary: str | None
    homepage: str | None
    license: str | None
    license_files: tuple[str, ...]
    languages: tuple[str, ...]
    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    module: str | None = None
    python: str | None = None
    libraries: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    only_gpu: bool = False
    kernels: bool = False
    repository: str | None = None
    documentation: str | None = None
    cuda_switches: tuple[str, ...] = ()
    headers_alone: bool = False
    packages: tuple[str, ...] = ()
    linked: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    by_address: tuple[str, ...] = ()
    possible_licenses: tuple[str, ...] = ()
    license_of_crate: str | None = None
    abi: str | None = None
    for_torch: bool = False
    environment: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    force_build: tuple[str, ...] = ()
    runs_cmake: bool = False
    packs_libraries: bool = False
    fetches: bool = False
    version_of_git: str | None = None
    since_tag: int = 0
    unnamed_cython: bool = False
    marked_build: tuple[tuple[str, str], ...] = ()
    marked_run: tuple[tuple[str, str], ...] = ()
    guessed: tuple[str, ...] = ()
    names_of: str | None = None


def read_project(folder: Path, names: PackageNames = _FREQUENT_NAMES) -> Project:
    """The project in a folder: a Python project by its pyproject.toml or setup.py, else one of CMake.

    Raises:
        InputError: the folder has none of these files, or one that cannot be read.
    """
    if any(is_file(folder / name) for name in ("PKG-INFO", "setup.py")) or _is_python(folder):
        return _python_project(folder, names)
    if is_file(folder / "CMakeLists.txt"):
        return _cmake_project(folder)
    hint = "Name a folder with a CMakeLists.txt, pyproject.toml or setup.py, or the address of such a git repository."
    raise InputError("there is no project that `init` can read", path=folder, hint=hint)


def with_tag(project: Project, tag: tuple[str, int] | None) -> Project:
    """A project with the version of a tag, and the commits since, if its build takes the version from git."""
    found = _OF_TAG.fullmatch(tag[0]) if tag and project.version_of_git is not None else None
    return replace(project, version=found[1], since_tag=tag[1]) if found and tag else project


_OF_TAG = re.compile(r"(?:[\w.]+[-/])?[vV]?([0-9]+(?:\.[0-9]+)*(?:\.?(?:a|b|rc|post)[0-9]+)?)")


def _is_python(folder: Path) -> bool:
    """Whether a pyproject.toml builds something, rather than holding the settings of tools alone."""
    path = folder / "pyproject.toml"
    if not is_file(path):
        return False
    return not is_file(folder / "CMakeLists.txt") or not {"project", "build-system"}.isdisjoint(_toml(path, folder))


def _cmake_project(folder: Path) -> Project:
    lists = read_cmake_lists(folder)
    linked = _linked(lists)
    licenses = licenses_of_text(folder)
    parts = (path.parent.name for path in folder.glob("*/pyproject.toml"))
    return Project(
        kind="cmake",
        name=_name_of_cmake(lists),
        version=lists.version,
        summary=_line(lists.summary),
        homepage=_line(lists.homepage),
        license=licenses[0] if len(licenses) == 1 else None,
        possible_licenses=licenses,
        license_files=license_files(folder),
        languages=lists.languages,
        headers_alone=lists.headers_alone,
        only_gpu=lists.only_gpu,
        kernels=lists.kernels,
        libraries=lists.libraries,
        programs=lists.programs,
        cuda_switches=lists.cuda_switches,
        packages=tuple(name for name in lists.packages if name not in linked.values()),
        linked=linked,
        fetches=lists.fetches,
        parts=tuple(sorted(name for name in parts if not _CONTROL.search(name))),
    )


def _name_of_cmake(lists: CMakeLists) -> str:
    """The package of a project of CMake."""
    if lists.name is None:
        message = (
            f"the name in project({lists.written_name} …) is not a literal, and no set() before it gives it one value"
        )
        hint = "Write the name, such as project(demo VERSION 1.0.0 LANGUAGES CXX)."
        raise InputError(message, path=lists.path, line=lists.line, hint=hint)
    name = _package_name(re.sub(r"\s+", "-", lists.name))
    if not _PACKAGE.fullmatch(name):
        hint = "Letters, digits, '-', '_' and '.' can be in it."
        raise InputError(
            f"project() has the name {lists.name[:100]!r}, which no package can have",
            path=lists.path,
            line=lists.line,
            hint=hint,
        )
    return name


def _checked_name(folder: Path, about: Mapping[str, Any], name: object) -> str:
    """The name of a Python project.

    Raises:
        InputError: it has none, or one that no project can have.
    """
    path = folder / "pyproject.toml"
    if not name:
        raise InputError("[project] has no name", path=path, hint='Add it: name = "demo"')
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        hint = "It must begin with a letter or a digit; '-', '_' and '.' can be in it, too."
        place = path if "name" in about else folder / "PKG-INFO"
        raise InputError(f"{str(name)[:100]!r} is not a project's name", path=place, hint=hint)
    return name


def _python_project(folder: Path, names: PackageNames) -> Project:
    path = folder / "pyproject.toml"
    document = _toml(path, folder) if is_file(path) else {}
    if mistakes := list(_mistakes(document, path)):
        raise InputError.of(mistakes)
    about = document.get("project", {})
    info = _information(folder)
    setup_path = folder / "setup.py"
    script = read_setup_script(setup_path) if is_file(setup_path) else SetupScript()
    if not about:
        about = _about_of(script)
    name = _checked_name(
        folder, about, about.get("name") or info["Name"] or (script.arguments and folder.resolve().name)
    )
    system = document.get("build-system", {})
    requires = list(system.get("requires", ["setuptools"]))
    stated = {normalized(name) for name in _named(requires)}
    requires += [each for each in (*_providers(document), *script.projects) if each not in stated]
    build, marked_build, build_by_address = _requirements(requires, names)
    programs = (_package_name(name),) if _below(document, "tool", "maturin", "bindings") == "bin" else ()
    module = _module(folder, name, document, is_program=bool(programs))
    cargo = _toml(folder / "Cargo.toml", folder) if is_file(folder / "Cargo.toml") else {}
    crate = package if isinstance(package := _below(cargo, "package"), dict) else {}
    version = about.get("version") or info["Version"] or _version_beside(folder, document, crate, module)
    of_git = None if about.get("version") or info["Version"] else _version_of_git(document, script, stated)
    summary = about.get("description") or info["Summary"]
    needed = about.get("dependencies") if "dependencies" in about else info.get_all("Requires-Dist") or []
    run, marked_run, run_by_address = _requirements(needed, names)
    python = about.get("requires-python") or info["Requires-Python"]
    addresses = _addresses(about, info, crate)
    cmake = _cmake_of(folder, document, build, runs_cmake=script.runs_cmake)
    languages = _compiled_languages(
        folder, build, script, cmake, has_extensions=bool(_below(document, "tool", "setuptools", "ext-modules"))
    )
    if script.packs_libraries and not languages:
        languages = ("c",)
    linked = _linked(cmake, build)
    stated_license, of_crate = _stated_license(about, info), _license_of_crate(crate)
    licenses = (own,) if (own := stated_license or of_crate) else licenses_of_text(folder)
    return Project(
        kind="python",
        name=_package_name(name),
        version=version or None,
        version_of_git=of_git,
        summary=_line(summary),
        homepage=_labelled(addresses, ("homepage", *_REPOSITORY, *_DOCUMENTATION, *addresses))
        or _line(cmake.homepage if cmake else None),
        repository=_labelled(addresses, _REPOSITORY),
        documentation=_labelled(addresses, _DOCUMENTATION),
        license=licenses[0] if len(licenses) == 1 else None,
        possible_licenses=licenses,
        license_of_crate=of_crate if stated_license and of_crate != stated_license else None,
        abi=_stable_abi(cargo),
        license_files=_stated_license_files(folder, about, info) or license_files(folder),
        languages=languages,
        only_gpu=cmake.only_gpu if cmake and not script.runs_cmake else script.only_gpu,
        kernels=cmake.kernels if cmake else "cuda" in script.languages,
        for_torch=script.for_torch,
        environment=script.switches if "cuda" in script.languages else (),
        asked=script.asked if "cuda" in script.languages else (),
        force_build=script.force_build,
        runs_cmake=script.runs_cmake,
        packs_libraries=script.packs_libraries,
        fetches=script.fetches or (cmake is not None and cmake.fetches),
        packages=_looked_for(folder, (*build, *(need for need, _ in marked_build)), script, cmake, linked.values()),
        linked=linked,
        programs=programs,
        entry_points=tuple(_entry_points(about.get("scripts", {}))),
        marked_build=marked_build,
        marked_run=marked_run,
        cuda_switches=cmake.cuda_switches if cmake and "cuda" in languages else (),
        build=build,
        unnamed_cython=not script.languages
        and "cython" not in {need.split(" ")[0] for need in build}
        and _has_cython(folder),
        run=run,
        by_address=tuple(dict.fromkeys((*build_by_address, *run_by_address))),
        guessed=tuple(names.package(each) for each in _named(requires, needed) if names.is_guess(each)),
        names_of=names.date,
        module=module,
        python=re.sub(r"\s", "", _line(python) or "") or None,
    )


def _entry_points(scripts: Mapping[str, str]) -> Iterator[str]:
    """The commands as a recipe has them, without the extras that they need."""
    for name, target in scripts.items():
        function = target.partition("[")[0].strip()
        if re.fullmatch(r"[\w.-]+", name.strip()) and re.fullmatch(r"[\w.]+:[\w.]+", function):
            yield f"{name.strip()} = {function}"


def _about_of(script: SetupScript) -> dict[str, Any]:
    """The arguments of `setup()` as the keys of [project], those of the right type."""
    keys = {
        "name": "name",
        "version": "version",
        "description": "description",
        "python_requires": "requires-python",
        "license": "license",
        "classifiers": "classifiers",
        "install_requires": "dependencies",
    }
    found = {key: script.arguments[name] for name, key in keys.items() if name in script.arguments}
    about = {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}
    if isinstance(url := script.arguments.get("url"), str):
        about["urls"] = {"Homepage": url}
    if isinstance(groups := script.arguments.get("entry_points"), dict):
        listed = groups.get("console_scripts")
        lines: Any = listed.splitlines() if isinstance(listed, str) else listed
        pairs = [line.partition("=")[::2] for line in lines] if _is_list_of_strings(lines) else []
        about["scripts"] = dict(pairs)
    return {key: value for key, value in about.items() if _TYPES["project"][key][2](value)}


def _mistakes(document: Mapping[str, Any], path: Path) -> Iterator[Mistake]:
    """Keys of a pyproject.toml that are read here and have values of another type (PEP 518, PEP 621)."""
    for section, keys in _TYPES.items():
        table = document.get(section, {})
        if not isinstance(table, dict):
            yield Mistake(f"'{section}' must be a table", path, hint=f"Write [{section}] above its keys.")
            continue
        for key, (expected, example, is_valid) in keys.items():
            if key in table and not is_valid(table[key]):
                yield Mistake(f"'{key}' in [{section}] must be {expected}", path, hint=f"Such as: {key} = {example}")


def _toml(path: Path, folder: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(read_text(path, _LARGEST, within=folder))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {error}", path=path) from error


def _information(folder: Path) -> Message:
    """The metadata of a source archive (Core metadata specifications); empty without."""
    path = folder / "PKG-INFO"
    return message_from_string(read_text(path, _LARGEST, within=folder) if is_file(path) else "")


def _addresses(about: Mapping[str, Any], info: Message, crate: Mapping[str, Any]) -> dict[str, str]:
    """The project's addresses on the web by their labels, in lower case and without spaces; those of the Rust package
    beside it count as maturin takes them."""
    listed = [text.partition(",")[::2] for text in info.get_all("Project-URL", [])]
    of_crate = {label: crate.get(label) for label in ("homepage", "repository", "documentation")}
    found = {**of_crate, **dict(listed), "Home-page": info["Home-page"], **about.get("urls", {})}
    return {
        re.sub(r"[\W_]", "", label).lower(): url.strip()
        for label, url in found.items()
        if isinstance(url, str) and url.strip().startswith(("http://", "https://")) and not _CONTROL.search(url)
    }


def _labelled(addresses: Mapping[str, str], labels: tuple[str, ...]) -> str | None:
    return next((addresses[label] for label in labels if label in addresses), None)


def _stated_license(about: Mapping[str, Any], info: Message) -> str | None:
    """The SPDX expression that a project states, or the license of its classifier."""
    entry = about.get("license")
    stated = (entry.get("text") if isinstance(entry, dict) else entry, info["License-Expression"], info["License"])
    texts = [text for text in stated if isinstance(text, str) and len(text) < _LONGEST_NAME_OF_LICENSE]
    known = (text if license_mistake(text) is None else _FREE_TEXTS.get(_without_empty_words(text)) for text in texts)
    valid = (text for text in known if text)
    classifiers = [*about.get("classifiers", []), *info.get_all("Classifier", [])]
    return next(valid, None) or next((_CLASSIFIERS[text] for text in classifiers if text in _CLASSIFIERS), None)


def _stable_abi(cargo: Mapping[str, Any]) -> str | None:
    """The feature of pyo3 with which a crate is compiled for the stable ABI: `abi3`, or with a Python `abi3-py39`."""
    features = _below(cargo, "dependencies", "pyo3", "features")
    found = [each for each in features if _STABLE_ABI.fullmatch(each)] if _is_list_of_strings(features) else []
    return max(found, key=len, default=None)


_STABLE_ABI = re.compile(r"abi3(-py3\d{1,2})?")


def _license_of_crate(crate: Mapping[str, Any]) -> str | None:
    """The SPDX expression of the Rust package beside a Python project."""
    stated = crate.get("license")
    return stated if isinstance(stated, str) and license_mistake(stated) is None else None


_LONGEST_NAME_OF_LICENSE = 200


def _without_empty_words(text: str) -> str:
    """The words of a license's name that tell which it is.

    >>> _without_empty_words("The MIT License (MIT)"), _without_empty_words("Apache License, Version 2.0")
    ('mit', 'apache 2.0')
    """
    return " ".join(dict.fromkeys(_SAYS_NOTHING.sub(" ", text.lower()).split()))


def _stated_license_files(folder: Path, about: Mapping[str, Any], info: Message) -> tuple[str, ...]:
    """The files of licenses and notices that the project lists, without patterns and those that are not there."""
    stated = about.get("license-files", [])
    listed = [*info.get_all("License-File", []), *(stated if _is_list_of_strings(stated) else ())]
    files = (name for name in dict.fromkeys(listed) if _A_LICENSE.search(name) and not _CONTROL.search(name))
    return tuple(name for name in files if is_below(folder / name, folder) and is_file(folder / name))


def _cmake_of(
    folder: Path, document: Mapping[str, Any], build: tuple[str, ...], *, runs_cmake: bool
) -> CMakeLists | None:
    """The CMakeLists.txt that a Python project is built with: at its top, or of a setup.py the only one below it."""
    if _builds_with_cmake(folder, build, document.get("build-system", {}).get("build-backend", "")):
        settings = _below(document, "tool", "scikit-build", "cmake", "define")
        return read_cmake_lists(folder, settings if isinstance(settings, dict) else ())
    places = [folder, *folder.glob("*/")] if runs_cmake else []
    found = [place for place in places if is_file(place / "CMakeLists.txt")]
    try:
        return read_cmake_lists(found[0]) if found[:1] == [folder] or len(found) == 1 else None
    except InputError:
        return None


def _linked(cmake: CMakeLists | None, build: tuple[str, ...] = ()) -> dict[str, str]:
    """The packages of what CMake must find, each with its name in CMake; none that a project requires already."""
    known = {need.split(" ")[0] for need in build}
    named = {package: name for name in (cmake.required if cmake else ()) for package in OF_CMAKE.get(name, ())}
    return {package: name for package, name in named.items() if package not in known}


def _looked_for(
    folder: Path, build: tuple[str, ...], script: SetupScript, cmake: CMakeLists | None, linked: Collection[str]
) -> tuple[str, ...]:
    """What the build of a Python project looks for beyond its requirements."""
    found = {*script.links, *(cmake.packages if cmake else ()), *_meson_dependencies(folder)}
    known = {normalized(need.split(" ")[0]) for need in build}
    return tuple(sorted(name for name in found.difference(linked) if normalized(name) not in known))


def _builds_with_cmake(folder: Path, build: tuple[str, ...], backend: str) -> bool:
    with_cmake = "scikit_build_core" in backend or any(need.startswith("scikit-build") for need in build)
    return with_cmake and is_file(folder / "CMakeLists.txt")


def _compiled_languages(
    folder: Path, build: tuple[str, ...], script: SetupScript, cmake: CMakeLists | None, *, has_extensions: bool
) -> tuple[str, ...]:
    """The languages that a Python project compiles, as far as its files tell."""
    tools = {name for need in build if (name := need.split(" ")[0]) in _COMPILED}
    meson = _meson_languages(folder) if "meson-python" in tools else ()
    stated = cmake.languages if cmake else meson
    of_tools = [_COMPILED[name] for name in tools - (_BY_ITS_FILE if stated else frozenset())]
    compiles = not stated and (of_tools or script.languages or has_extensions or _has_cython(folder))
    suffixes = {path.suffix for place in _PLACES for path in folder.glob(place)} if compiles else set()
    of_files = [languages for of_language, languages in _SUFFIXES if suffixes & of_language]
    of_cython = ("c", "cxx") if compiles and _has_cython_of_cxx(folder) else ()
    every = (stated, *of_tools, *of_files, of_cython, script.languages)
    named = {language for languages in every for language in languages}
    return tuple(language for language in ("c", "cxx", "fortran", "cuda", "rust") if language in named)


#: Keys of a pyproject.toml by which the version comes from git, a value if not any, and the variable that replaces it.
_OF_GIT = (
    (("hatch", "version", "source"), "vcs", _SETUPTOOLS_SCM),
    (("pdm", "version", "source"), "scm", "PDM_BUILD_SCM_VERSION"),
    (("poetry-dynamic-versioning",), None, "POETRY_DYNAMIC_VERSIONING_BYPASS"),
    (("setuptools_scm",), None, _SETUPTOOLS_SCM),
    (("versioningit",), None, ""),
)


def _version_of_git(document: Mapping[str, Any], script: SetupScript, required: Collection[str]) -> str | None:
    """The variable that has the version in place of git, "" if there is none; None if git has no part in it."""
    tools = document.get("tool", {})
    for keys, value, variable in _OF_GIT:
        if (found := _below(tools, *keys)) is not None and value in (None, found):
            return variable
    by_itself = "setuptools-scm" in required and _below(tools, "setuptools", "dynamic", "version") is None
    is_dynamic = "version" in (_below(document, "project", "dynamic") or ())
    if _providers(document).count("setuptools-scm") or script.arguments.get("use_scm_version"):
        return _SETUPTOOLS_SCM
    return _SETUPTOOLS_SCM if by_itself and is_dynamic else None


def _below(document: Mapping[str, Any], *keys: str) -> Any:
    """A value below some keys of a pyproject.toml; None where there are others."""
    found: Any = document
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _providers(document: Mapping[str, Any]) -> list[str]:
    """The projects that scikit-build-core asks for values of the metadata, which it adds to what is required."""
    fields = _below(document, "tool", "scikit-build", "metadata")
    named = [_below(fields, field, "provider") for field in fields] if isinstance(fields, dict) else []
    return [project for provider, project in _PROVIDERS.items() if provider in named]


def _has_cython(folder: Path) -> bool:
    return any(True for place in _PLACES for _ in folder.glob(place.replace("*.*", "*.pyx")))


def _has_cython_of_cxx(folder: Path) -> bool:
    """Whether a module in Cython says in its first lines that it becomes C++."""
    files = (path for place in _PLACES for path in folder.glob(place.replace("*.*", "*.pyx")) if is_file(path))
    for path in islice(files, _MOST_MODULES):
        with suppress(InputError, OSError), open_file(path, within=folder) as file:
            if _OF_CXX.search(read_up_to(file, _BEGINNING)):
                return True
    return False


def _meson_languages(folder: Path) -> tuple[str, ...]:
    """The languages of the meson.build of a folder; what it says only when it runs is not among them."""
    calls = re.findall(r"\b(?:project|add_languages)\s*\(([^()]*)", _meson_text(folder))
    words = {word for call in calls for word in re.findall(r"'(\w+)'(?!\s*:)", call)}
    return tuple(language for word, language in _OF_MESON.items() if word in words)


def _meson_dependencies(folder: Path) -> set[str]:
    """The packages that the meson.build of a folder looks for."""
    named = re.findall(r"(?<![\w.])dependency\s*\(\s*\[?\s*'([A-Za-z][\w.+-]{0,60})'", _meson_text(folder))
    return set(named) - _OF_MESON_ALONE


def _meson_text(folder: Path) -> str:
    path = folder / "meson.build"
    return re.sub(r"#.*", "", read_text(path, _LARGEST, within=folder)) if is_file(path) else ""


def _requirements(
    values: Sequence[str], names: PackageNames
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Requirements of Python's packaging as conda writes them.

    Returns:
        Those without a marker, those with one, and the names of those by address, which conda cannot have. Extras have
        no meaning to conda.

    >>> written = ["numpy>=1.20,<3", "tomli; python_version < '3.11'", "torch @ https://example.org/torch.whl"]
    >>> _requirements(written, PackageNames())
    (('numpy >=1.20,<3',), (('tomli', "python_version < '3.11'"),), ('pytorch',))
    """
    found, marked, by_address = [], [], []
    for value in values:
        if match := _BY_ADDRESS.fullmatch(value.strip()):
            by_address.append(names.package(match[1]))
        elif match := _REQUIREMENT.fullmatch(value.strip()):
            version = re.sub(r"\s+", "", match[2])
            need, marker = f"{names.package(match[1])} {version}".strip(), (match[3] or "").strip("; \t")
            if marker:
                marked.append((need, marker))
            elif need not in found:
                found.append(need)
    return tuple(found), tuple(marked), tuple(by_address)


def _named(*lists: Sequence[str]) -> set[str]:
    """The names in lists of requirements."""
    return {match[0] for values in lists for value in values if (match := re.match(_NAME, value.strip()))}


def _line(text: str | None) -> str | None:
    """A text as one line without control characters; None if it has nothing else."""
    return _CONTROL.sub(" ", text).strip() or None if text else None


def _package_name(name: str) -> str:
    """The name of a package as conda-forge writes it."""
    return name.lower().replace("_", "-").replace("+", "-")


def _module(folder: Path, name: str, document: Mapping[str, Any], *, is_program: bool) -> str | None:
    """The module that a project of this name installs: the one of its name, else the only one, else as its name says.

    None for a program without a module.

    setuptools lists them in source archives; without a list, folders that are not installed as a rule do not count.
    """
    usual = re.sub(r"[-.]", "_", name.lower())
    parents = (folder / "src", folder / "python", folder)
    lists = [path for place in ("", "*/") for path in sorted(folder.glob(f"{place}*.egg-info/top_level.txt"))]
    listed = [line for path in lists[:1] for line in read_text(path, _LARGEST, within=folder).split()]
    packages = [line for line in listed if line.isidentifier()] or [
        path.parent.name for parent in parents for path in sorted(parent.glob("*/__init__.py"))
    ]
    others = [each for each in packages if each.lower() not in _NOT_INSTALLED and not each.startswith("_")]
    named = [package for package in packages if package.lower() == usual]
    stated = _below(document, "tool", "maturin", "module-name")
    if isinstance(stated, str) and (top := stated.partition(".")[0]).isidentifier():
        return top
    by_name = None if is_program else usual
    return named[0] if named else others[0] if len(others) == 1 and not is_program else by_name


_A_VERSION = re.compile(r"[0-9][A-Za-z0-9.!+]{0,60}")
_ASSIGNED = re.compile(r"""^__version__\s*(?::\s*str\s*)?=\s*["']([^"'\n]+)["']""", re.MULTILINE)


def _version_beside(
    folder: Path, document: Mapping[str, Any], crate: Mapping[str, Any], module: str | None
) -> str | None:
    """The version in a file of a project: one that its settings name, its Cargo.toml, or a module's `__version__`."""
    tools = document.get("tool", {})
    files = _below(tools, "setuptools", "dynamic", "version", "file")
    for name in [files] if isinstance(files, str) else files if _is_list_of_strings(files) else []:
        if is_below(folder / name, folder) and is_file(folder / name):
            return _as_version(read_text(folder / name, _LARGEST, within=folder).strip())
    if "version" in crate:
        return _as_version(crate["version"])
    named = _below(tools, "hatch", "version", "path")
    places = [f"{top}{module}/{file}" for top in ("", "src/", "python/") for file in ("__init__.py", "_version.py")]
    for name in [*([named] if isinstance(named, str) else []), *(places if module else [])]:
        if is_below(folder / name, folder) and is_file(folder / name):
            match = _ASSIGNED.search(read_text(folder / name, _LARGEST, within=folder))
            if match and _as_version(match[1]):
                return match[1]
    return None


def _as_version(text: object) -> str | None:
    return text if isinstance(text, str) and _A_VERSION.fullmatch(text) else None


#: Names of packages that serve a project itself.
_NOT_INSTALLED = frozenset(
    {"test", "tests", "testing", "doc", "docs", "example", "examples", "demo", "demos", "benchmark", "benchmarks"}
    | {"tools", "util", "utils", "scripts", "ci", "packaging", "build_tools", "_build_utils"}
)


_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING", "COPYING.txt")
#: Other names of such files: one for each license of several, or with another ending.
_OTHER_FILES = re.compile(r"(LICEN[CS]E|COPYING)[-._]\w[\w.-]{0,40}", re.IGNORECASE)
#: A file of licenses or notices, by its path.
_A_LICENSE = re.compile("LICEN[CS]E|COPYING|COPYRIGHT|NOTICE", re.IGNORECASE)
#: Files in which projects say under which license they are.
_NOTICES = ("README", "README.md", "README.rst", "README.txt", "CMakeLists.txt", "setup.py")
_MIT = (
    r"Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
    r"documentation files \(the .{1,3}Software.{1,3}\), to deal in the Software without restriction"
)
_BSD = r"Redistribution and use in source and binary forms"
#: Words of a license's text, words that only other licenses add → its identifier, the more particular text first.
_LICENSES: tuple[tuple[tuple[str, ...], str | None, str], ...] = (
    ((r"LLVM Exceptions to the Apache 2\.0 License",), None, "Apache-2.0 WITH LLVM-exception"),
    ((r"Apache License\s+Version 2\.0",), None, "Apache-2.0"),
    ((r"covered by this license \(the .{1,3}Software.{1,3}\) to use, reproduce, display",), None, "BSL-1.0"),
    ((r"to deal with the Software without restriction",), None, "NCSA"),
    ((_MIT,), r"for Good, not Evil|Except as contained in this notice", "MIT"),
    ((_BSD, r"Neither the name of"), r"advertising materials|NO EXPRESS OR IMPLIED LICENSES", "BSD-3-Clause"),
    ((_BSD,), r"endorse or promote|advertising|written permission|NO EXPRESS OR IMPLIED LICENSES", "BSD-2-Clause"),
    ((r"Mozilla Public License Version 2\.0",), None, "MPL-2.0"),
)
#: The same for licenses whose texts do not say whether later versions may be used too; with the version's number.
_OF_VERSIONS = (
    (r"GNU AFFERO GENERAL PUBLIC LICENSE Version 3", "AGPL-3.0", "3"),
    (r"GNU LESSER GENERAL PUBLIC LICENSE Version 3", "LGPL-3.0", "3"),
    (r"GNU LESSER GENERAL PUBLIC LICENSE Version 2\.1", "LGPL-2.1", "2.1"),
    (r"GNU GENERAL PUBLIC LICENSE Version 3", "GPL-3.0", "3"),
    (r"GNU GENERAL PUBLIC LICENSE Version 2", "GPL-2.0", "2"),
)


def license_files(folder: Path) -> tuple[str, ...]:
    """The file with the license, under a usual name, else all with such a name and an ending; with their notices."""
    usual = next((name for name in _FILES if is_file(folder / name)), None)
    others = (path.name for path in sorted(folder.iterdir()) if is_file(path) and _OTHER_FILES.fullmatch(path.name))
    notices = (path.name for path in sorted(folder.glob("NOTICE*")) if is_file(path) and not _CONTROL.search(path.name))
    found = (usual,) if usual else tuple(others)
    return (*found, *notices) if found else ()


def licenses_of_text(folder: Path) -> tuple[str, ...]:
    """The license whose words the license file has; several where files leave open which, none if it is unknown.

    The texts of the GNU licenses are the same for `-only` and `-or-later`: the project's own notices decide.
    """
    name = next(iter(license_files(folder)), None)
    text = re.sub(r"\s+", " ", read_text(folder / name, _LARGEST, within=folder)) if name else ""
    for words, others, identifier in _LICENSES:
        if all(_has(text, one) for one in words):
            return () if others and _has(text, others) else (identifier,)
    for title, family, version in _OF_VERSIONS:
        if _has(text, title):
            return _granted(folder, family, version)
    return ()


def _has(text: str, words: str) -> bool:
    return re.search(words, text, re.IGNORECASE) is not None


def _granted(folder: Path, family: str, version: str) -> tuple[str, ...]:
    """The one of the two identifiers that the project's notices name, else both."""
    only, later = both = (f"{family}-only", f"{family}-or-later")
    notices = tuple(_notices(folder))
    says_only = any(only in text for text in notices)
    says_later = any(later in text or _allows_later(text, version) for text in notices)
    return both if says_only == says_later else (later,) if says_later else (only,)


def _allows_later(text: str, version: str) -> bool:
    """Whether a text has the words that the GNU licenses propose: "version 3 of the License, or (at your option)"."""
    words = re.compile(r"at your option\W{1,3}any later version", re.IGNORECASE)
    begin = f"version {version} of the "
    return any(begin in text[max(0, at.start() - 80) : at.start()].lower() for at in words.finditer(text))


def _notices(folder: Path) -> Iterator[str]:
    """The texts with notices, without the marks of comments; a file that cannot be read has none."""
    for name in _NOTICES:
        if is_file(folder / name):
            try:
                text = read_text(folder / name, _LARGEST, within=folder)
            except InputError:
                continue
            yield re.sub(r"[\s#*]+", " ", text)
