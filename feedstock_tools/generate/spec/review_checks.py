"""What a reviewer of conda-forge or its linter would send back: licenses, version constraints, compilers, tests,
commands of the wrong system, libraries that a platform lacks, GPU builds without anything of CUDA."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from feedstock_tools.conditions.spec import ConditionError, Setting, holds, parse
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.generate.spec.content import Finding, as_list, as_mapping, entries, names_cuda, outputs_of, owners
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text
from feedstock_tools.wording import nearest
from feedstock_tools.yaml_reading.nodes import Location

#: What `init` writes where a project does not say it, which a reviewer would send back.
PLACEHOLDERS = {
    "homepage": "https://example.org",
    "license": "LicenseRef-Unknown",
    "summary": "The package {name}",
    "maintainers": "someone",
    "version": "0.1.0",
}
#: The comment of a version that is a placeholder: others are of that version.
NO_VERSION = "# the project has none that can be read"

#: The languages whose compilers conda-forge's pinning has.
_COMPILERS = ("c", "cxx", "cuda", "fortran", "go", "rust", "m2w64_c", "m2w64_cxx", "m2w64_fortran", "nim", "dmd", "hip")
_STDLIBS = ("c", "m2w64_c")
_ADDRESSES = ("homepage", "documentation", "repository", "license_url")
_OTHER_NAMES = {"c++": "cxx", "cpp": "cxx", "g++": "cxx", "nvcc": "cuda"}
#: The languages whose compilers conda-forge's linter wants `stdlib('c')` beside.
_NEED_STDLIB = frozenset({"c", "cxx", "cuda", "fortran", "rust", "m2w64_c", "m2w64_cxx", "m2w64_fortran"})
_VERSION = r"[0-9A-Za-z_{}][0-9A-Za-z_.+!*{}-]*"
_CONSTRAINT = re.compile(rf"\(*(>=|<=|==|!=|~=|=|>|<)?{_VERSION}\)*([,|]\(*(>=|<=|==|!=|~=|=|>|<)?{_VERSION}\)*)*")
_UNIX_WORDS = "cp|mv|rm|ln|ls|cat|sed|grep|awk|test|touch|chmod|which|export|install|./configure|make|mkdir -p|bash|sh"
_UNIX = re.compile(rf"(?:{_UNIX_WORDS.replace('.', chr(92) + '.')})(?=\s|$)|.*\$\{{?[A-Z]")
_TOKEN = re.compile(r"\s*(\(|\)|[A-Za-z0-9.+:-]+)")


def check_for_review(content: dict[str, Any]) -> Iterator[Finding]:
    """All findings of this kind in the content of a spec."""
    yield from _check_license(content)
    if content.get("format", "v1") == "v1":
        yield from _check_addresses(content)
    yield from _check_requirements(content)
    yield from _check_duplicates(content)
    yield from _check_commands(content)
    yield from _check_libraries(content)
    yield from _check_gpu_builds(content)
    if content.get("pinning", "conda-forge") == "conda-forge":
        yield from _check_for_linter(content)


def _check_license(content: dict[str, Any]) -> Iterator[Finding]:
    text = as_mapping(content.get("about")).get("license")
    if isinstance(text, str) and (found := license_mistake(text)):
        yield Finding(("about", "license"), *found)


def _check_addresses(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for what rattler-build does not read as an address."""
    for place, owner in (((), content), *outputs_of(content)):
        for key, text in as_mapping(owner.get("about")).items():
            if key in _ADDRESSES and isinstance(text, str) and not re.match(r"[a-z+.-]+:|.*[{]", text):
                yield Finding((*place, "about", key), f"'{text}' is not an address", "Such as: https://example.org")


@cache
def _spdx() -> Mapping[str, frozenset[str]]:
    """The identifiers of licenses and of exceptions, which follow `WITH`, in the SPDX License List."""
    listed = json.loads(read_text(Path(__file__).with_name("spdx.json"), within=None))
    return {kind: frozenset([*listed[kind], *listed[f"newer {kind}"]]) for kind in ("licenses", "exceptions")}


def license_mistake(text: str) -> tuple[str, str] | None:
    """What is wrong with an SPDX expression, and what to do (SPDX 2.3, annex D); None if it is right."""
    licenses, exceptions = _spdx()["licenses"], _spdx()["exceptions"]
    joined = "-".join(text.split())
    if " " in text and joined in licenses:
        return f"'{text}' is not an SPDX expression", f"Did you mean '{joined}'?"
    words = _TOKEN.findall(text)
    if "".join(words) != re.sub(r"\s", "", text) or not words:
        return f"'{text}' is not an SPDX expression", "Such as: Apache-2.0 OR MIT"
    expects_license, depth, before = True, 0, ""
    for word in words:
        if word == "(" and expects_license:
            depth += 1
        elif word == ")" and not expects_license and depth:
            depth -= 1
        elif before == "WITH":
            if word not in exceptions:
                return f"'{word}' is not an exception of the SPDX license list", _near_license(word, exceptions)
            expects_license = False
        elif word in ("AND", "OR", "WITH") and not expects_license:
            expects_license = True
        elif expects_license and word not in ("AND", "OR", "WITH", "(", ")"):
            is_license = word.startswith("LicenseRef-") or word.removesuffix("+") in licenses
            if not is_license:
                return f"'{word}' is not in the SPDX license list", _near_license(word, licenses)
            expects_license = False
        else:
            return f"'{word}' in '{text}' is unexpected", "Join licenses with AND or OR: Apache-2.0 OR MIT"
        before = word
    if expects_license or depth:
        return f"'{text}' is an incomplete SPDX expression", "Such as: Apache-2.0 OR MIT"
    return None


def obsolete_license(text: str) -> str:
    """What to write for a license that SPDX has replaced by two others; '' if there is none.

    >>> obsolete_license("LGPL-3.0")
    "'LGPL-3.0' is obsolete: write 'LGPL-3.0-only' or 'LGPL-3.0-or-later'"
    """
    for word in _TOKEN.findall(text):
        name = word.removesuffix("+")
        if f"{name}-only" in _spdx()["licenses"]:
            return f"'{word}' is obsolete: write '{name}-only' or '{name}-or-later'"
    return ""


def _near_license(word: str, licenses: frozenset[str]) -> str:
    by_lower = {name.lower(): name for name in sorted(licenses)}
    near = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.5)
    return f"Did you mean '{by_lower[near[0]]}'?" if near else "https://spdx.org/licenses has the list."


def _check_requirements(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for constraints that no solver reads, and for compilers that conda-forge does not have."""
    own = as_mapping(content.get("variants"))
    for location, entry in entries(content):
        package = entry.get("package")
        place = (*location, "package")
        if isinstance(package, str) and (found := _constraint_mistake(package)):
            yield Finding(place, *found)
        for kind, languages in (("compiler", _COMPILERS), ("stdlib", _STDLIBS)):
            language = entry.get(kind)
            if isinstance(language, str) and language not in languages and f"{language}_{kind}" not in own:
                meant = _OTHER_NAMES.get(language, language)
                hint = nearest(meant, languages, f"Known languages: {', '.join(languages)}.")
                yield Finding((*location, kind), f"conda-forge has no {kind} '{language}'", hint)


def _constraint_mistake(text: str) -> tuple[str, str] | None:
    """What is wrong with the version of a requirement, and what to do; None if it is right.

    >>> _constraint_mistake("numpy >=1.0<2")[0]
    "'>=1.0<2' is not a version constraint"
    >>> _constraint_mistake("click >=8 <9")[1]
    'Join constraints with commas: click >=8,<9'
    >>> _constraint_mistake("pytorch * cuda*")  # any version, of these builds
    """
    name, rest = re.fullmatch(r"([A-Za-z0-9_.{}-]*)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]  # always
    if not rest.strip():
        return None
    joined = re.sub(r"([<>=!~])\s+", r"\1", rest.strip())
    joined = re.sub(r"\s*([,|])\s*", r"\1", joined)
    version = joined.split(" ")[0]
    if re.fullmatch(rf"=={{0,1}}{_VERSION}=\S+", version):
        return None
    build = joined.removeprefix(version).strip()
    if not (version == "*" or _CONSTRAINT.fullmatch(version)) or " " in build or build[:1] in tuple("<>=!~"):
        tidy = re.sub(r"(?<=[^,|<>=!~ ])\s*(?=>=|<=|==|!=|~=|[<>])", ",", joined)
        return f"'{rest.strip()}' is not a version constraint", f"Join constraints with commas: {name} {tidy}"
    if rest.strip() != joined or not rest.startswith(" "):
        return f"'{text}' has its spaces in other places than conda-forge's linter asks for", f"Write: {name} {joined}"
    return None


def _check_duplicates(content: dict[str, Any]) -> Iterator[Finding]:
    cuda = as_mapping(content.get("cuda"))
    lists: dict[Location, Any] = {("cuda", key): cuda.get(key) for key in ("versions", "platforms", "libraries")}
    for location, values in {**lists, ("python",): content.get("python")}.items():
        for at, value in enumerate(values if isinstance(values, list) else ()):
            if value in values[:at]:
                yield Finding((*location, at), f"{value} is there twice", "Remove one of them.")


def _check_commands(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for commands of a shell that builds for Windows would run."""
    windows = [name for name in as_mapping(content.get("platforms")) if str(name).startswith("win")]
    if not windows:
        return
    platform = Platform.parse(windows[0]) if windows[0] in ("win-64", "win-arm64") else Platform.parse("win-64")
    for location, owner in owners(content):
        if any(_runs_on(platform, skip) for skip in as_list(owner.get("skip"))):
            continue
        script = owner.get("script")
        commands = script if isinstance(script, list) else as_mapping(script).get("commands")
        for at, command in enumerate(as_list(commands)):
            place = (*location, "script", at) if isinstance(script, list) else (*location, "script", "commands", at)
            if isinstance(command, str) and _UNIX.match(command):
                hint = "Write files for both: script: {unix: build.sh, win: build.bat}"
                yield Finding(place, f"'{command}' does not run on Windows", hint)
        for at, item in enumerate(as_list(as_mapping(owner.get("test")).get("commands"))):
            command = item.get("command") if isinstance(item, dict) else item
            everywhere = not isinstance(item, dict) or item.get("when") is None or _runs_on(platform, item)
            if isinstance(command, str) and _UNIX.match(command) and everywhere:
                hint = "Add `when: unix`, and a command for Windows with `when: win`."
                yield Finding((*location, "test", "commands", at), f"'{command}' does not run on Windows", hint)


def _runs_on(platform: Platform, item: Any) -> bool:
    """Whether a condition, or an entry with one, holds for CPU builds of a platform, whatever the Python."""
    text = item.get("when") if isinstance(item, dict) else item
    try:
        return isinstance(text, str) and holds(parse(text), Setting(platform, platform))
    except ConditionError:
        return False


def _check_libraries(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for libraries of CUDA that conda-forge never built for a platform with GPU builds."""
    cuda = as_mapping(content.get("cuda"))
    facts = load_cuda()
    for at, name in enumerate(as_list(cuda.get("libraries"))):
        library = facts.libraries.get(name) if isinstance(name, str) else None
        if library is None:
            continue
        built = {subdir for release in library.releases for places in release.cuda.values() for subdir in places}
        for subdir in _gpu_platforms(content, cuda):
            if subdir not in built:
                hint = f"Remove it, and require it as {{package: {name}, when: cuda and not {subdir}}}."
                yield Finding(("cuda", "libraries", at), f"conda-forge has no {name} for {subdir}", hint)


def _gpu_platforms(content: Mapping[str, Any], cuda: Mapping[str, Any]) -> list[str]:
    facts = load_cuda()
    named = [str(name) for name in as_list(cuda.get("platforms")) or as_mapping(content.get("platforms"))]
    with_cuda = {row.platform.subdir for row in facts.rows if row.cuda is not None}
    return [name for name in named if name in with_cuda]


def _check_gpu_builds(content: dict[str, Any]) -> Iterator[Finding]:
    """A finding for GPU builds in which nothing differs from the CPU build."""
    cuda = content.get("cuda")
    if not isinstance(cuda, dict) or cuda.get("script"):
        return
    for _, entry in entries(content):
        named = f"{entry.get('package', '')}"
        cuda_package = re.match(r"cuda-|cudatoolkit|cudnn|nccl|cutensor|libcu(blas|dnn|fft|rand|solver|sparse)", named)
        if entry.get("compiler") == "cuda" or cuda_package or "{cuda" in named or names_cuda(entry.get("when")):
            return
        if entry.get("use") == "cuda-libraries" and cuda.get("libraries"):
            return
    hint = "Add `compiler: cuda` to the build requirements, or remove the section `cuda`."
    yield Finding(("cuda",), "no output compiles or links anything of CUDA, so GPU builds would be CPU builds", hint)


def check_stdlib(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for compilers without `stdlib('c')`, which brings the requirement on glibc."""
    groups = as_mapping(content.get("groups"))
    for location, owner in owners(content):
        listed = as_list(as_mapping(owner.get("requirements")).get("build"))
        used = [str(item["use"]) for item in listed if isinstance(item, dict) and "use" in item]
        seen: set[str] = set()
        while used:
            group = used.pop()
            if group not in seen:
                seen.add(group)
                items = as_list(groups.get(group))
                listed = [*listed, *items]
                used += [str(item["use"]) for item in items if isinstance(item, dict) and "use" in item]
        named = [item for item in listed if isinstance(item, dict)]
        compilers = [item["compiler"] for item in named if item.get("compiler") in _NEED_STDLIB]
        if compilers and not any(item.get("stdlib") for item in named):
            place = (*location, "requirements", "build")
            hint = "Add it: stdlib: c"
            yield Finding(place, f"`compiler: {compilers[0]}` needs `stdlib: c` beside it on conda-forge", hint)


def _check_for_linter(content: dict[str, Any]) -> Iterator[Finding]:
    """Findings for what conda-forge's linter asks of every recipe: the text of the license, and tests."""
    about = content.get("about")
    if isinstance(about, dict) and not about.get("license_file"):
        hint = "Name the file with the license's text: license_file: LICENSE"
        yield Finding(("about",), "'license_file' is missing, which conda-forge asks for", hint)
    for location, output in outputs_of(content):
        if output.get("kind") in ("library", "python") and not output.get("test"):
            example = "imports: [module]" if output["kind"] == "python" else "commands: [program --version]"
            yield Finding(location, f"'{output.get('name')}' has no test", f"Such as: test: {{{example}}}")
