"""The rules of conda-forge's own linter for recipes, as ours: each with the identifier that conda-smithy gives it.

(conda_smithy/lint_recipe.py and linter/ of 2026.8.5.) What a rule reports as a mistake fails a pull request there, a
remark is a hint. `linter.skip` in conda-forge.yml turns off those that conda-smithy lets it turn off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from feedstock_tools.check.findings import Weight
from feedstock_tools.check.linting.reading import PYTHON_MIN, Reading, is_empty, items_of
from feedstock_tools.check.linting.subject import Need, Rule
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit, selector_in
from feedstock_tools.recipe.written.owners import Owner
from feedstock_tools.recipe.written.variables import expand
from feedstock_tools.versions import InvalidVersionError, parse_version


class Found(NamedTuple):
    """What a rule found: a part as it is read, or a character of the recipe or of `document`; what `--fix` changes."""

    at: Part | Entry | int | None
    message: str
    edits: tuple[TextEdit, ...] = ()
    weight: Weight | None = None
    document: Document | None = None


def words(text: str) -> frozenset[str]:
    """The words of a text, for tables of many."""
    return frozenset(text.split())


_Finder = Callable[[Reading], Iterator[Found]]


@dataclass(frozen=True, slots=True)
class SmithyRule:
    """A rule of conda-forge's linter: in one format alone if `format` says so, and what turns it off."""

    rule: Rule
    weight: Weight
    format: str
    skip: str


SMITHY_RULES: dict[str, SmithyRule] = {}
#: The name of a rule → what finds its mistakes.
FINDERS: dict[str, _Finder] = {}


def rule(
    name: str,
    smithy: str,
    meaning: str,
    weight: Weight = "mistake",
    *,
    only: str = "",
    skip: str = "",
    needs: Need = "files",
) -> Callable[[_Finder], _Finder]:
    """Make a function a rule: its name, conda-smithy's identifiers, and what it finds."""

    def named(find: _Finder) -> _Finder:
        SMITHY_RULES[name] = SmithyRule(Rule(meaning, needs, smithy), weight, only, skip)
        FINDERS[name] = find
        return find

    return named


_ORDER = ("package", "source", "build", "requirements", "test", "app", "outputs", "about", "extra")
_ORDER_V1 = ("schema_version", "context", "package", "source", "build", "requirements", "tests", "about", "extra")
_ORDER_OUTPUTS_V1 = ("schema_version", "context", "recipe", "source", "build", "outputs", "about", "extra")
#: The keys of each section that conda-build knows (conda_build/metadata.py, FIELDS), and those of conda-forge.
_KEYS: Mapping[str, frozenset[str]] = {
    section: words(keys)
    for section, keys in {
        "package": "name version",
        "source": "fn url md5 sha1 sha224 sha256 sha384 sha512 content_sha256 content_sha384 content_sha512 "
        "content_hash_skip path path_via_symlink git_url git_tag git_branch git_rev git_depth hg_url hg_tag svn_url "
        "svn_rev svn_ignore_externals svn_username svn_password folder no_hoist patches",
        "build": "number string entry_points osx_is_app disable_pip features track_features preserve_egg_dir no_link "
        "binary_relocation script noarch noarch_python python_version_independent has_prefix_files "
        "binary_has_prefix_files ignore_prefix_files detect_binary_files_with_prefix skip_compile_pyc rpaths "
        "rpaths_patcher script_env always_include_files skip msvc_compiler pin_depends include_recipe preferred_env "
        "preferred_env_executable_paths run_exports ignore_run_exports ignore_run_exports_from requires_features "
        "provides_features force_use_keys force_ignore_keys merge_build_host pre-link post-link pre-unlink "
        "missing_dso_whitelist missing_dso_allowlist runpath_whitelist runpath_allowlist error_overdepending "
        "error_overlinking overlinking_ignore_patterns python_site_packages_path",
        "outputs": "name version number entry_points script script_interpreter build requirements test about extra "
        "files type run_exports target",
        "requirements": "build host run conflicts run_constrained",
        "app": "entry icon summary type cli_opts own_environment",
        "test": "requires commands files imports source_files downstreams",
        "about": "home dev_url doc_url doc_source_url license_url license summary description license_family "
        "identifiers tags keywords license_file prelink_message readme",
        "extra": "recipe-maintainers feedstock-name",
    }.items()
}
_FAMILIES = words("AGPL LGPL GPL3 GPL2 GPL BSD MIT APACHE PSF CC MOZILLA PUBLICDOMAIN PROPRIETARY OTHER NONE")


@rule("unknown-section", "R-000", "a section of the recipe is unknown")
def _unknown_section(reading: Reading) -> Iterator[Found]:
    known = {*_ORDER_V1, *_ORDER_OUTPUTS_V1} if reading.is_v1 else set(_ORDER)
    for entry in _sections(reading):
        if entry.key not in known:
            yield Found(entry, f"a recipe has no section '{entry.key}'")


@rule("section-order", "R-001", "the sections of the recipe are in an unusual order")
def _section_order(reading: Reading) -> Iterator[Found]:
    keys = list(dict.fromkeys(entry.key for entry in _sections(reading)))
    order = _ORDER if not reading.is_v1 else _ORDER_OUTPUTS_V1 if "outputs" in keys else _ORDER_V1
    known = [key for key in keys if key in order]
    if known != (expected := sorted(known, key=order.index)):
        wrong = next(key for key, right in zip(known, expected, strict=True) if key != right)
        yield Found(
            next(reading.document.entries(wrong)), f"expected the sections in this order: {', '.join(expected)}"
        )


@rule("section-kind", "", "a section of the recipe is not what it must be, a mapping or a list", only="meta.yaml")
def _section_kind(reading: Reading) -> Iterator[Found]:
    for entry in _sections(reading):
        wanted = {"source": {"mapping", "sequence"}, "outputs": {"sequence"}}.get(entry.key, {"mapping"})
        if entry.key in _KEYS and entry.value.kind not in wanted and not is_empty(entry.value):
            yield Found(entry, f"'{entry.key}' must be a {' or a '.join(sorted(wanted)).replace('sequence', 'list')}")


@rule("unknown-key", "R-018", "conda-build does not know a key of a section", only="meta.yaml")
def _unknown_key(reading: Reading) -> Iterator[Found]:
    for section in _sections(reading):
        if section.key in _KEYS:
            for part in section.value.items or (section.value,):
                for entry in part.entries:
                    if entry.key not in _KEYS[section.key]:
                        yield Found(entry, f"'{section.key}' has no key '{entry.key}'")


@rule("about-item", "R-002", "the homepage, the license or the summary is missing")
def _about_item(reading: Reading) -> Iterator[Found]:
    for key in ("homepage" if reading.is_v1 else "home", "license", "summary"):
        if reading.first("about", key) is None:
            yield Found(reading.section_place("about"), f"'about' lacks '{key}'")


@rule("maintainers", "R-003, R-004", "the recipe names no maintainers, or not as a list")
def _maintainers(reading: Reading) -> Iterator[Found]:
    named = reading.first("extra", "recipe-maintainers")
    if named is None:
        yield Found(reading.section_place("extra"), "the recipe names no maintainers (extra.recipe-maintainers)")
    elif named.kind != "sequence":
        yield Found(named, "'recipe-maintainers' must be a list")


@rule("feedstock-name", "R-039", "extra.feedstock-name ends with -feedstock")
def _feedstock_name(reading: Reading) -> Iterator[Found]:
    named = reading.first("extra", "feedstock-name")
    if named is not None and named.text.endswith("-feedstock"):
        place = reading.written(named)
        end = place[0] + named.source.rindex("-feedstock") if place else 0
        edits = (TextEdit(end, end + len("-feedstock"), ""),) if place else ()
        yield Found(named, "the name of a feedstock is given without '-feedstock'", edits)


@rule("tests", "R-005", "the recipe has no test")
def _tests(reading: Reading) -> Iterator[Found]:
    if not _is_tested(reading) and not any(map(_has_tests, reading.outputs)):
        yield Found(0, "the recipe has no test")


@rule("output-tests", "R-006", "an output has no test, while others do", "remark")
def _output_tests(reading: Reading) -> Iterator[Found]:
    if not _is_tested(reading) and any(map(_has_tests, reading.outputs)):
        for output in reading.outputs:
            if not _has_tests(output):
                yield Found(output.part, f"the output '{output.name or '?'}' has no test")


@rule("build-number", "R-008", "the recipe has no build number")
def _build_number(reading: Reading) -> Iterator[Found]:
    if reading.first("build", "number") is None:
        yield Found(reading.section_place("build"), "the recipe has no build number (build.number)")


@rule("requirements-order", "R-009", "the requirements are not in the order build, host, run")
def _requirements_order(reading: Reading) -> Iterator[Found]:
    section = reading.first("requirements")
    entries = [entry for entry in section.entries if entry.key in {"build", "host", "run"}] if section else []
    keys = list(dict.fromkeys(entry.key for entry in entries))
    if keys != sorted(keys):
        yield Found(entries[0], f"expected the requirements in the order build, host, run, not {', '.join(keys)}")


@rule("last-line", "R-011, R-012", "the recipe does not end with exactly one line break")
def _last_line(reading: Reading) -> Iterator[Found]:
    text, newline = reading.recipe.text, reading.recipe.newline
    kept = len(text.rstrip("\r\n"))
    if text[kept:] != newline and text[kept:].count("\n") != 1:
        yield Found(kept, "a recipe ends with one line break", (TextEdit(kept, len(text), newline),))


@rule("license-family", "", "conda-build does not know the family of the license", only="meta.yaml")
def _license_family(reading: Reading) -> Iterator[Found]:
    family = reading.first("about", "license_family")
    if family is None:
        return
    text = family.text.upper().strip()
    for long, short in (("GENERAL PUBLIC LICENSE", "GPL"), ("LESSER *", "L"), ("AFFERO *", "A")):
        text = re.sub(long, short, text)
    if re.sub(r"[\W_]+", "", text) not in _FAMILIES:
        yield Found(family, f"'{family.text}' is not a family of licenses; they are {', '.join(sorted(_FAMILIES))}")


@rule("package-name", "R-014", "the name of the package has other than lower case letters, digits, '_', '-' and '.'")
def _package_name(reading: Reading) -> Iterator[Found]:
    at = next((part for key in ("package", "recipe") if (part := reading.first(key, "name"))), None)
    name = _expanded(reading, at)
    if not re.fullmatch(r"[a-z0-9_\-.]+", name) and "{{" not in name:
        yield Found(at or reading.section_place("package"), "a name has lower case letters, digits, '_', '-' and '.'")


@rule("package-version", "R-015, R-016", "the version is missing or not one that conda knows")
def _package_version(reading: Reading) -> Iterator[Found]:
    at = next((part for key in ("package", "recipe") if (part := reading.first(key, "version"))), None)
    version = _expanded(reading, at)
    if not version:
        yield Found(at or reading.section_place("package"), "the recipe has no version")
        return
    try:
        if "{{" not in version:
            parse_version(version)
    except InvalidVersionError as error:
        yield Found(at, error.mistakes[0].message)


@rule("legacy-requirement", "R-017, R0-006", "a requirement that conda-forge gave up: `numpy x.x`, `toolchain`")
def _legacy_requirement(reading: Reading) -> Iterator[Found]:
    for leaf in leaves_in(reading.owners[:1], "build"):
        if leaf.text == "numpy x.x":
            yield Found(leaf, "the pinning has a version for numpy: require `numpy`")
        if leaf.text == "toolchain" and not reading.is_v1:
            yield Found(leaf, "require compilers by their function: `{{ compiler('c') }}`")


@rule("source-hash", "R-019", "a downloaded source has no hash")
def _source_hash(reading: Reading) -> Iterator[Found]:
    for source in _sources(reading):
        url = next((entry for entry in source.entries if entry.key == "url"), None)
        if url is not None and not {"sha256", "sha1", "md5"} & source.members.keys():
            yield Found(url, "a source with a url needs its sha256")


@rule("noarch-value", "R-020", "`noarch` is neither python nor generic")
def _noarch_value(reading: Reading) -> Iterator[Found]:
    value = reading.first("build", "noarch")
    if value is not None and value.text not in {"python", "generic"}:
        yield Found(value, f"noarch is 'python' or 'generic', not '{value.text}'")


_OPERATORS = frozenset({"!=", "=", "==", ">", "<", "<=", ">="})


@rule("pin-spaces", "R-021, R-022", "a requirement is not written as name, one space, version")
def _pin_spaces(reading: Reading) -> Iterator[Found]:
    section = reading.first("requirements")
    for leaf in [leaf for entry in (section.entries if section else ()) for leaf in _deep(entry)]:
        text = leaf.text if reading.is_v1 else leaf.text.partition("#")[0]
        words = text.split()
        if "{{" in text or not words:
            continue
        right = ""
        operator = re.search("[><=]", words[0])
        if len(words) > 2 and words[1] in _OPERATORS:
            right = f"{words[0]} {''.join(words[1:])}"
        elif operator:
            right = f"{words[0][: operator.start()]} {words[0][operator.start() :]}{''.join(words[1:])}"
        if right:
            yield Found(leaf, f"write '{right}' for '{leaf.text}'", _rewritten(reading, leaf, leaf.text, right))


@rule("language-pins", "R-023, R-024", "Python or R is in host and not in run, or has a version in builds for each")
def _language_pins(reading: Reading) -> Iterator[Found]:
    if reading.outputs or not reading.owners or reading.first("build", "noarch") is not None:
        return
    for language in ("python", "r-base"):
        host, run = (
            [leaf for leaf in leaves_in(reading.owners[:1], section) if leaf.text.partition(" ")[0] == language]
            for section in ("host", "run")
        )
        if host and not run:
            yield Found(host[0], f"'{language}' is in host, so it must be in run too")
        if language == "python" and _is_version_independent(reading, reading.owners[0]):
            continue
        for leaves in (host, run):
            if all(leaf.text != language for leaf in leaves):
                for leaf in leaves:
                    if leaf.text.partition(" ")[2].startswith((">", "<")):
                        message = f"builds for each {language} must require it without a version"
                        yield Found(leaf, message, _rewritten(reading, leaf, leaf.text, language))


@rule("template-spaces", "R-025", "a template is not written with one space inside its braces", "remark")
def _template_spaces(reading: Reading) -> Iterator[Found]:
    for match in re.finditer(r"\$\{\{(.*?)\}\}" if reading.is_v1 else r"\{\{(.*?)\}\}", reading.recipe.text):
        inner = match[1]
        if inner != (right := f" {inner.strip()} "):
            can = inner.strip() and not inner.startswith(("-", "+", "{")) and not inner.endswith(("-", "+"))
            edits = (TextEdit(*match.span(1), right),) if can else ()
            yield Found(match.start(), "a template has one space after '{{' and before '}}'", edits)


@rule("python-bound", "R-026", "a noarch Python package has no lower bound for Python")
def _python_bound(reading: Reading) -> Iterator[Found]:
    if reading.word("build", "noarch") != "python" or reading.outputs:
        return
    leaves = leaves_in(reading.owners[:1], "run")
    if not any(leaf.text.split()[:1] == ["python"] and leaf.text != "python" for leaf in leaves):
        at = next((leaf for leaf in leaves if leaf.text == "python"), None)
        least = "${{ python_min }}" if reading.is_v1 else "{{ python_min }}"
        edits = _rewritten(reading, at, "python", f"python >={least}") if at else ()
        message = f"a noarch Python package requires `python >={least}` to run"
        yield Found(at or reading.section_place("requirements"), message, edits)


_PIN_CALL = re.compile(r"pin_(subpackage|compatible)\(\s*(['\"]?)([^'\",)]+)")


@rule("pin-function", "R-027", "pin_subpackage of what is no output, or pin_compatible of an output")
def _pin_function(reading: Reading) -> Iterator[Found]:
    names = {_expanded(reading, owner.part, "name") for owner in reading.outputs}
    names |= {_expanded(reading, reading.first("package", "name"))} - {""}
    for owner in reading.owners:
        for leaf in _pinned_parts(reading, owner):
            found = _pin_of(reading, leaf.text)
            if found is not None and (found[1] in names) != (found[0] == "subpackage"):
                right = "pin_subpackage" if found[1] in names else "pin_compatible"
                is_one = "an output" if found[1] in names else "no output"
                yield Found(leaf, f"'{found[1]}' is {is_one} of this recipe: use {right}")


@rule("wheel-source", "R-028, R-029, R-030", "a source is a wheel; of a noarch package a remark")
def _wheel_source(reading: Reading) -> Iterator[Found]:
    for match in re.finditer(r"[:-][^\S\n]+(http[^\n]*\.whl)(?=\s)", reading.recipe.text):
        if not match[1].endswith("-none-any.whl"):
            yield Found(match.start(1), "a compiled wheel is no source: build from source code")
        else:
            weight: Weight = "remark" if reading.word("build", "noarch") == "python" else "mistake"
            yield Found(match.start(1), "a wheel is no source: prefer a source distribution", weight=weight)


@rule("bundled-licenses", "R-031, R-032", "a Rust or Go package does not collect the licenses of what it links")
def _bundled_licenses(reading: Reading) -> Iterator[Found]:
    top = reading.owners[:1]
    name = _expanded(reading, reading.first("package", "name") or reading.first("recipe", "name"))
    for language, tool in (("rust", "cargo-bundle-licenses"), ("go", "go-licenses")):
        compiler = next((leaf for leaf in leaves_in(top, "build") if _language(leaf.text) == language), None)
        tools = {name, *(leaf.text for leaf in leaves_in(top, "build"))}
        if compiler is not None and tool not in tools:
            weight: Weight = "mistake" if reading.is_v1 else "remark"  # conda-smithy's is blind in a meta.yaml
            yield Found(compiler, f"require {tool}, which collects the licenses of what is linked", weight=weight)


@rule("stdlib", "R-033", "a compiler is used without `stdlib('c')`", skip="lint_stdlib")
def _stdlib(reading: Reading) -> Iterator[Found]:
    for owner in reading.owners:
        leaves = leaves_in([owner], "build")
        needing = [leaf for leaf in leaves if re.match(r"(m2w64_)?(c|cxx|fortran|rust|go-cgo)$", _language(leaf.text))]
        if needing and not any(_language(leaf.text, "stdlib") in {"c", "m2w64_c"} for leaf in leaves):
            call = '${{ stdlib("c") }}' if reading.is_v1 else '{{ stdlib("c") }}'
            last = {_language(leaf.text): leaf for leaf in needing}
            chosen = last.get("c") or last.get("m2w64_c") or max(needing, key=lambda leaf: leaf.start)
            edits = _line_after(reading, chosen, call)
            if chosen is last.get("c") and "m2w64_c" in last:
                edits += _line_after(reading, last["m2w64_c"], call.replace('"c"', '"m2w64_c"'))
            yield Found(chosen, f"add `{call}` beside the compilers", edits)


@rule("sysroot", "R-034", "a requirement on sysroot_linux instead of `stdlib('c')`", skip="lint_stdlib")
def _sysroot(reading: Reading) -> Iterator[Found]:
    for leaf in leaves_in(reading.owners, "build"):
        if leaf.text.startswith("sysroot_linux"):
            yield Found(leaf, "require `stdlib('c')`, and set c_stdlib_version in the variants where it must differ")


@rule("macos-bound", "R-035", "a requirement on `__osx` instead of `stdlib('c')`", skip="lint_stdlib")
def _macos_bound(reading: Reading) -> Iterator[Found]:
    for section in ("run", "run_constraints" if reading.is_v1 else "run_constrained"):
        for leaf in leaves_in(reading.owners, section):
            if leaf.text.startswith("__osx >"):
                yield Found(leaf, "`stdlib('c')` sets this bound; set c_stdlib_version in the variants to raise it")


@rule(
    "repeated-key",
    "R-037, FC-001",
    "a key is in a mapping twice, with the same selector if any: only one of them counts",
)
def _repeated_key(reading: Reading) -> Iterator[Found]:
    for document in reading.subject.files.original.values():
        pending = [document.root] if document.root else []
        while pending:
            part = pending.pop()
            seen: dict[tuple[str, str], Entry] = {}
            for entry in part.entries:
                first = seen.setdefault((entry.key, document.selector_of(entry)), entry)
                if first is not entry and not any(document.is_in_block(each.start) for each in (first, entry)):
                    line = document.line_of(first.start)
                    yield Found(
                        entry.start, f"'{entry.key}' is already in line {line} of this mapping", document=document
                    )
            pending += [*part.items, *(entry.value for entry in part.entries)]


@rule("abi3-text", "R-038", "`is_abi3` is compared with a text, but is true or false")
def _abi3_text(reading: Reading) -> Iterator[Found]:
    for match in re.finditer(r"is_abi3\s*(==|!=)\s*(['\"])(true|false)\2", reading.recipe.text):
        right = "is_abi3" if (match[1] == "==") == (match[3] == "true") else "not is_abi3"
        yield Found(match.start(), f"write `{right}`: is_abi3 is true or false", (TextEdit(*match.span(), right),))


_FLOAT = re.compile(r"[-+]?(?:\d[\d_]*\.[\d_]*(?:[eE][-+]?\d+)?|\.\d[\d_]*(?:[eE][-+]?\d+)?|\d[\d_]*[eE][-+]?\d+)")


@rule("float", "R-040", "a value without quotes is a number to YAML and loses its zeros")
def _float(reading: Reading) -> Iterator[Found]:
    pending = [reading.document.root] if reading.document.root else []
    while pending:
        part = pending.pop(0)
        if part.kind == "scalar" and not part.style and _FLOAT.fullmatch(part.source):
            place = reading.written(part) or _template_at(reading, part)
            edits = (TextEdit(*place, f'"{reading.recipe.text[slice(*place)]}"'),) if place else ()
            yield Found(part, f"{part.source} is a number to YAML: write it in quotes", edits)
        seen: set[str] = set()
        for entry in part.entries:
            if entry.key not in seen:
                pending.append(entry.value)
            seen.add(entry.key)
        pending += part.items


_BACKENDS = words(
    "setuptools flit flit-core hatchling poetry poetry-core pdm-backend pdm-pep517 pymsbuild meson-python "
    "scikit-build-core sphinx-theme-builder maturin jupyter-packaging whey uv-build"
)


@rule("build-backend", "R-046", "pip builds without a build backend", "remark", skip="hint_pip_no_build_backend")
def _build_backend(reading: Reading) -> Iterator[Found]:
    for owner in reading.owners:
        leaves = leaves_in([owner], "host") or leaves_in([owner], "build")
        names = {leaf.text.split(" ")[0].replace("_", "-") for leaf in leaves}
        if owner.name in {"hatchling", "pdm-backend", "setuptools"} or "pip" not in names or names & _BACKENDS:
            continue
        pip = next(leaf for leaf in leaves if leaf.text.split(" ")[0] == "pip")
        yield Found(pip, "require the build backend too, such as setuptools: pip does not bring it")


@rule("python-min", "R-047", "a noarch Python package does not use `python_min`", "remark", skip="hint_python_min")
def _python_min(reading: Reading) -> Iterator[Found]:
    least = r"\$\{\{ python_min \}\}" if reading.is_v1 else PYTHON_MIN
    shown = "${{ python_min }}" if reading.is_v1 else "{{ python_min }}"
    exact = f"python {shown}.*" if reading.is_v1 else f"python {shown}"
    for owner in reading.outputs or reading.owners:
        if reading.word("build", "noarch", part=owner.part) != "python":
            continue
        for section, pattern, wanted in (
            ("host", rf"python\s+=?=?{least}", exact),
            ("run", rf"python\s+>={least}", f"python >={shown}"),
            ("tests", rf"python\s+=?=?{least}", exact),
        ):
            if section == "tests":
                found = [(text, at) for text, at in _test_requirements(reading, owner)]
            else:
                found = [(leaf.text, leaf) for leaf in leaves_in([owner], section)]
            if not any(
                text != "python" and text.split()[:1] == ["python"] and re.search(pattern, text) for text, _ in found
            ):
                bare = next((at for text, at in found if text.split()[:1] == ["python"]), None)
                right = _with_least(reading, bare.text, wanted) if bare is not None else ""
                edits = _rewritten(reading, bare, bare.text, right) if bare is not None and right else ()
                if section == "tests" and bare is None and not reading.is_v1:
                    edits = _required_by_tests(reading, owner, wanted)
                message = f"a noarch Python package has `{wanted}` in {section}"
                yield Found(bare or owner.section("run") or owner.part, message, edits)


@rule("space-separated", "R-048", "a requirement is not written as `name version build`", "remark", only="meta.yaml")
def _space_separated(reading: Reading) -> Iterator[Found]:
    for owner in reading.owners:
        sections = [owner.sections()] if owner in reading.outputs else []
        top = reading.first("requirements") if not sections else None
        leaves = [leaf for entry in (top.entries if top else ()) for leaf in _deep(entry)]
        leaves += [leaf for each in sections for entry in each if entry.key in _PLAIN for leaf in _deep(entry)]
        leaves += reading.values("test", "requires", part=owner.part)
        for leaf in leaves:
            text = leaf.text.partition("#")[0].strip()
            if (
                not text.startswith(("compatible_pin ", "subpackage_pin "))
                and "{{" not in text
                and not _is_separated(text)
            ):
                yield Found(leaf, f"write '{leaf.text}' as name, version and build with a space between them")


_PLAIN = frozenset({"build", "host", "run", "requirements"})


def _is_separated(text: str) -> bool:
    """Whether each field of a requirement stands alone: no operator is apart from its version, none after a name."""
    fields = text.split()
    if not 1 <= len(fields) <= 3 or re.search(r"[\[\]<>=!~]", fields[0].rpartition("::")[2]):
        return False
    if len(fields) == 1:
        return True
    version = fields[1]
    if re.fullmatch(r"[<>=!~]+", version) or version.endswith((",", "|")):
        return False
    return not re.search(r"[^<>=!~,|]=", version) and (len(fields) < 3 or not re.match(r"[<>=!~,|]", fields[2]))


@rule("setup-py", "R-049", "`python setup.py install` instead of pip", "remark")
def _setup_py(reading: Reading) -> Iterator[Found]:
    for leaf in reading.values("build", "script"):
        if "python setup.py install" in leaf.text:
            yield Found(leaf, "install with `python -m pip install . -vv --no-deps --no-build-isolation`")


@rule("pypi-address", "R-050", "a source has PyPI's former address pypi.io", "remark")
def _pypi_address(reading: Reading) -> Iterator[Found]:
    for source in _sources(reading):
        for leaf in reading.values("url", part=source):
            if leaf.text.startswith("https://pypi.io/"):
                start = reading.place(leaf)
                at = reading.recipe.text.find("https://pypi.io/", start, start + len("'https://pypi.io/"))
                edits = () if at < 0 else (TextEdit(at, at + len("https://pypi.io/"), "https://pypi.org/"),)
                yield Found(leaf, "PyPI's address is pypi.org or files.pythonhosted.org", edits)


@rule(
    "redundant-python-min",
    "R-052",
    "the recipe sets `python_min` to no more than the pinning does",
    "remark",
    needs="pinning",
)
def _redundant_python_min(reading: Reading) -> Iterator[Found]:
    pinned = reading.subject.pinned("python_min")
    if reading.is_v1:
        own = reading.first("context", "python_min")
        at, text = (own.start, own.text) if own is not None else (0, "")
    else:
        match = re.search(r"\{%\s*set\s+python_min\s*=\s*(['\"])(.+?)\1", reading.recipe.text)
        at, text = (match.start(), match[2]) if match else (0, "")
    if text and pinned and "{{" not in text and parse_version(text) <= parse_version(pinned):
        yield Found(at, f"the pinning's python_min is {pinned}: remove this one")


@rule(
    "abi3audit",
    "R-053",
    "a package for the stable ABI is not tested with abi3audit",
    "remark",
    skip="hint_abi3_missing_abi3audit",
)
def _abi3audit(reading: Reading) -> Iterator[Found]:
    for owner in reading.outputs or reading.owners:
        if (
            reading.word("build", "noarch", part=owner.part) != "python"
            and _is_version_independent(reading, owner)
            and any(leaf.text.split()[:1] == ["python-abi3"] for leaf in leaves_in([owner], "host"))
        ):
            tests = reading.first("tests" if reading.is_v1 else "test", part=owner.part)
            if tests is None or not any("abi3audit" in leaf.text for leaf in _everything(tests)):
                yield Found(owner.section("host"), "test with abi3audit that only the stable ABI is used")


_SELECTOR_LINE = re.compile(r"\s*[^#\s].*?\s*(?:#.*\[([^\[\]]+)\].*|\[([^\[\]]+)\])$")
_TIDY = re.compile(r".+?\s{2,}# \[.+\]")
_COMMENT = re.compile(r"\s*#\s*\[\s*([^\[\]]+?)\s*\]")


@rule("selector-form", "R0-001", "a selector is not written as two spaces, `# [condition]`", only="meta.yaml")
def _selector_form(reading: Reading) -> Iterator[Found]:
    for start, line in _selector_lines(reading.recipe):
        if not _TIDY.match(line):
            match = _COMMENT.search(line)
            edits = (TextEdit(start + match.start(), start + match.end(), f"  # [{match[1]}]"),) if match else ()
            at = start + (match.start() if match else line.rfind("["))
            yield Found(at, "a selector is written with two spaces before it: `  # [condition]`", edits)


@rule(
    "python-selector",
    "R0-002, R0-003",
    "a selector such as `py38` that conda-build does not know, or is obsolete",
    only="meta.yaml",
)
def _python_selector(reading: Reading) -> Iterator[Found]:
    for start, line in _selector_lines(reading.recipe):
        match = re.search(r"#\s*\[.*?(py(\d{2,3})).*\]", line)
        if match:
            is_known = int(match[2]) in {27, 34, 35, 36}
            message = f"compare the number: [py == {int(match[2])}]"
            yield Found(start + match.start(1), message, weight="remark" if is_known else "mistake")


@rule(
    "noarch-selector",
    "R0-004, R1-002",
    "a noarch package skips, or requires, by platform",
    skip="lint_noarch_selectors",
)
def _noarch_selector(reading: Reading) -> Iterator[Found]:
    noarch = reading.word("build", "noarch")
    if not noarch:
        return
    several = len(reading.settings("noarch_platforms")) > 1
    allowed = {"win", "linux", "osx", "unix"} if several else set()
    message = f"a noarch package is the same on all platforms: remove this, or `noarch: {noarch}`"
    if reading.is_v1:
        yield from (Found(at, message) for at in _branches(reading, allowed, several=several))
        return
    variants = reading.subject.files.file("recipe/conda_build_config.yaml")
    keys = {entry.key for entry in variants.root.entries} if variants is not None and variants.root else set()
    indent: str | None = None
    at = 0
    for line in reading.recipe.text.splitlines(keepends=True):
        start, at = at, at + len(line)
        text, lead = line.strip(), line[: len(line) - len(line.lstrip())]
        if text in {"host:", "run:"}:
            indent = lead
        elif text.startswith("skip:") and _nouns(line):
            yield Found(start + len(lead), message)
            return
        elif indent is not None and lead == indent:
            indent = None
        elif indent is not None and (nouns := _nouns(line)) and not nouns <= allowed | keys:
            yield Found(start + len(lead), message)
            return


@rule("set-spaces", "R0-005", "a variable is not set with one space between the words", only="meta.yaml")
def _set_spaces(reading: Reading) -> Iterator[Found]:
    for match in re.finditer(r"^[^\S\n]*(\{%\s*set\s+(\S+)\s*=\s*(\S+)\s*%\})", reading.recipe.text, re.MULTILINE):
        right = f"{{% set {match[2].removesuffix('=')} = {match[3]} %}}"
        if "\n" not in match[1] and match[1] != right and not re.match(r"\{%\sset\s\S+\s=\s\S+\s%\}", match[1]):
            yield Found(match.start(1), f"write `{right}`", (TextEdit(*match.span(1), right),))


@rule(
    "comment-selector",
    "R1-001",
    "a selector of a meta.yaml in a recipe.yaml, where it is a comment",
    only="recipe.yaml",
)
def _comment_selector(reading: Reading) -> Iterator[Found]:
    for start, line in _selector_lines(reading.recipe):
        match = re.search(r"#.*\[[^\[\]]+\]", line)
        if match:
            yield Found(start + match.start(), "a comment selects nothing in a recipe.yaml: use `if` and `then`")


@rule("bld-bat", "R1-003", "rattler-build runs build.bat, not bld.bat", "remark", only="recipe.yaml")
def _bld_bat(reading: Reading) -> Iterator[Found]:
    if reading.recipe.path.with_name("bld.bat").is_file():
        yield Found(0, "rename bld.bat to build.bat: rattler-build does not run it")


@rule(
    "test-latest",
    "R1-004, R1-005",
    "a package for several Pythons is not tested with the latest",
    "remark",
    only="recipe.yaml",
)
def _test_latest(reading: Reading) -> Iterator[Found]:
    for owner in reading.outputs or reading.owners:
        is_noarch = reading.word("build", "noarch", part=owner.part) == "python"
        if not is_noarch and not _is_version_independent(reading, owner):
            continue
        if any(leaf.text.split()[:1] == ["python"] and "<" in leaf.text for leaf in leaves_in([owner], "run")):
            continue
        for test in items_of(reading.first("tests", part=owner.part)):
            entry = next(test.below("python"), None)
            if entry is not None and all(
                leaf.text != "*" for leaf in reading.values("python_version", part=entry.value)
            ):
                yield Found(entry, 'test with `python_version: ["${{ python_min }}.*", "*"]`')
                break


@rule(
    "sp-dir",
    "R1-006",
    "a script sets SP_DIR, which rattler-build does",
    "remark",
    only="recipe.yaml",
    skip="hint_rattler_build_sp_dir",
)
def _sp_dir(reading: Reading) -> Iterator[Found]:
    own = r"^\s*(?:-\s+)?(?:then:\s+)?(?:export\s+)?SP_DIR\s*="
    for match in re.finditer(
        rf"{own}|%PREFIX%[\\/]+[Ll][Ii][Bb][\\/]+[Ss]ite-packages", reading.recipe.text, re.MULTILINE
    ):
        at = match.end() - len(match[0].lstrip())
        yield Found(at, "rattler-build sets SP_DIR (%SP_DIR% on Windows)")


@rule(
    "cross-python",
    "R1-007",
    "run exports of cross-python are ignored by hand",
    "remark",
    only="recipe.yaml",
    skip="hint_abi3_cross_python_run_exports",
)
def _cross_python(reading: Reading) -> Iterator[Found]:
    for owner in reading.outputs or reading.owners:
        if reading.word("build", "noarch", part=owner.part) == "python" or _is_version_independent(reading, owner):
            for leaf in reading.values("requirements", "ignore_run_exports", "from_package", part=owner.part):
                if re.match(r"cross-python(?:_|\s|$)", leaf.text.strip()):
                    yield Found(leaf, "rattler-build ignores the run exports of cross-python itself here")


def _sections(reading: Reading) -> tuple[Entry, ...]:
    return reading.document.root.entries if reading.document.root else ()


def _has_tests(output: Owner) -> bool:
    if any(entry.value.items for entry in output.part.below("tests")):
        return True
    test = next(output.part.below("test"), None)
    members = test.value.members if test is not None else {}
    script = members.get("script")
    return bool({"imports", "commands"} & members.keys()) or (
        script is not None and script.text.endswith((".sh", ".bat"))
    )


def _is_tested(reading: Reading) -> bool:
    """Whether the recipe itself has tests."""
    if reading.is_v1:
        return reading.first("tests") is not None
    test = next(reading.document.entries("test"), None)
    files = (reading.recipe.path.with_name(f"run_test.{ending}") for ending in ("py", "sh", "bat", "pl"))
    return (test is not None and bool({"imports", "commands"} & test.value.members.keys())) or any(
        path.is_file() for path in files
    )


def leaves_in(owners: Sequence[Owner], section: str) -> list[Part]:
    """The requirements of a section, whatever their conditions."""
    found = []
    for owner in owners:
        entry = next(iter(owner.sections(section)), None)
        found += [leaf for item in (entry.value.items if entry is not None else ()) for leaf in item.leaves]
    return found


def _deep(entry: Entry) -> Iterator[Part]:
    """All requirements of a section, those of kinds of run exports too."""
    yield from entry.value.leaves if entry.value.kind != "scalar" else ()
    for kind in entry.value.entries:
        if kind.key not in {"then", "else", "if", "by_name"}:
            yield from _deep(kind)


def _everything(part: Part) -> Iterator[Part]:
    if part.kind == "scalar":
        yield part
    for child in (*part.items, *(entry.value for entry in part.entries)):
        yield from _everything(child)


def _sources(reading: Reading) -> list[Part]:
    """The sources of the recipe; of a recipe.yaml those of its outputs and its cache too."""
    paths = [("source",), ("cache", "source"), ("outputs", "*", "source")] if reading.is_v1 else [("source",)]
    return [item for path in paths for entry in reading.document.entries(*path) for item in items_of(entry.value)]


def _expanded(reading: Reading, at: Part | None, key: str = "") -> str:
    """The text of a part with the variables of the recipe filled in; the name of an output with `key`."""
    if at is not None and key:
        at = reading.first("package", key, part=at) or reading.first(key, part=at)
    if at is None or at.kind != "scalar":
        return ""
    return (expand(reading.recipe, at.text, {}) or at.text).strip() if reading.is_v1 else at.text.strip()


def _language(text: str, function: str = "compiler") -> str:
    """The language of a compiler or of the standard library; '' for any other requirement."""
    match = re.match(rf"\$\{{\{{\s*{function}\(['\"]([\w-]+)['\"]|([\w-]+)_{function}_stub$", text)
    return (match[1] or match[2]) if match else ""


def _is_version_independent(reading: Reading, owner: Owner) -> bool:
    keys = ("build", "python", "version_independent") if reading.is_v1 else ("build", "python_version_independent")
    return reading.word(*keys, part=owner.part).lower() not in {"", "false", "no", "off"}


def _test_requirements(reading: Reading, owner: Owner) -> Iterator[tuple[str, Part]]:
    """What tests require, each with its part; of a test in Python the versions that it names."""
    if not reading.is_v1:
        yield from ((leaf.text, leaf) for leaf in reading.values("test", "requires", part=owner.part))
        return
    for test in items_of(reading.first("tests", part=owner.part)):
        yield from ((leaf.text, leaf) for leaf in reading.values("requirements", "run", part=test))
        if "python" in test.members:
            named = reading.values("python", "python_version", part=test)
            yield from ((f"python {leaf.text}", leaf) for leaf in named)
            if not named:
                yield "python", test


def _pinned_parts(reading: Reading, owner: Owner) -> Iterator[Part]:
    """The places where conda-smithy looks at pins: run exports, and in a meta.yaml requirements."""
    exports = reading.first("requirements" if reading.is_v1 else "build", "run_exports", part=owner.part)
    if exports is not None:
        yield from exports.leaves
        for kind in exports.entries if reading.is_v1 else ():
            yield from kind.value.leaves
    if not reading.is_v1:
        yield from leaves_in([owner], "host")
        yield from leaves_in([owner], "run")


def _pin_of(reading: Reading, text: str) -> tuple[str, str] | None:
    """The kind of a pin and the package; None for any other requirement, or if a variant names the package."""
    if not reading.is_v1:
        match = re.match(r"(subpackage|compatible)_pin (\S+)", text)
        return (match[1], match[2]) if match else None
    match = _PIN_CALL.search(text)
    if not match:
        return None
    name = match[3] if match[2] else expand(reading.recipe, f"${{{{ {match[3]} }}}}", {})
    return (match[1], name) if name else None


def _rewritten(reading: Reading, leaf: Part, old: str, new: str) -> tuple[TextEdit, ...]:
    """The edit that writes a requirement anew, also where a variable is a part of it; none if a template makes it."""
    if place := reading.written(leaf):
        return (TextEdit(*place, leaf.source.replace(old, new)),) if old in leaf.source else ()
    start = reading.recipe.line_start(reading.place(leaf))
    match = re.compile(r"\s*- (\w[^#'\"\n]*\{\{[^#'\"\n]*\}\})[ \t]*(?:#.*)?$", re.MULTILINE).match(
        reading.recipe.text, start
    )
    is_made = match is not None and leaf.text == old == expand(reading.recipe, match[1], {})
    return (TextEdit(*match.span(1), new),) if match and is_made else ()


def _template_at(reading: Reading, part: Part) -> tuple[int, int] | None:
    """The characters of the template without double quotes that makes a whole value; None for any other."""
    start = reading.recipe.line_start(reading.place(part))
    match = re.compile(r"[^{}#]*:\s+(\{\{[^{}\"]*\}\})\s*(?:#.*)?$", re.MULTILINE).match(reading.recipe.text, start)
    return match.span(1) if match else None


def _line_after(reading: Reading, leaf: Part, text: str) -> tuple[TextEdit, ...]:
    """The edit that adds an item below the line of another, with its selector as far to the right."""
    recipe = reading.recipe
    start = recipe.line_start(reading.place(leaf))
    end = recipe.line_end(start)
    match = re.match(r"(\s*- )(['\"]?)\$?\{\{.*?\}\}\2(.*?)(\r?\n)", recipe.text[start:end])
    if match is None:
        return ()
    comment = f"  {match[3]}" if selector_in(match[3]) else ""
    return (TextEdit(end, end, f"{match[1]}{text}{comment}{match[4]}"),)


def _with_least(reading: Reading, text: str, wanted: str) -> str:
    """A requirement of Python with python_min as its bound or version; '' where its own may be above that."""
    bounds = [bound.strip() for bound in text.partition(" ")[2].split(",") if bound.strip()]
    upper = [bound for bound in bounds if bound.startswith("<")]
    sign = r">=" if ">=" in wanted else r"(?:>=|={0,2})"
    lower = [match[1] for bound in bounds if (match := re.fullmatch(rf"{sign}\s*(\d[\d.]*?)(?:\.\*)?", bound))]
    pinned = reading.subject.pinned("python_min") if lower else ""
    if len(upper) + len(lower) < len(bounds) or any(
        not pinned or parse_version(bound) > parse_version(pinned) for bound in lower
    ):
        return ""
    return ",".join([wanted, *(upper if ">=" in wanted else ())])


def _required_by_tests(reading: Reading, owner: Owner, requirement: str) -> tuple[TextEdit, ...]:
    """The edit that adds a requirement of the tests of a meta.yaml, with the list if there is none."""
    recipe, required = reading.recipe, reading.values("test", "requires", part=owner.part)
    test = reading.first("test", part=owner.part)
    if test is None or not test.entries or test.is_flow:
        return ()
    if required:
        start = recipe.line_start(reading.place(required[-1]))
        end = recipe.line_end(start)
        match = re.match(r"\s*- ", recipe.text[start:end])
        return (TextEdit(end, end, f"{match[0]}{requirement}{recipe.newline}"),) if match else ()
    start = recipe.line_start(reading.place(test.entries[0]))
    indent = " " * reading.document.column_of(test.entries[0].start)
    lines = f"{indent}requires:{recipe.newline}{indent}  - {requirement}{recipe.newline}"
    return (TextEdit(start, start, lines),)


def _selector_lines(document: Document) -> Iterator[tuple[int, str]]:
    """The lines that conda-smithy takes for lines with a selector, each with its first character."""
    at = 0
    for line in document.text.splitlines(keepends=True):
        text = line.rstrip()
        match = _SELECTOR_LINE.match(text)
        if match and set((match[1] or match[2]).split()) - {"not", "and", "or"}:
            yield at, text
        at += len(line)


def _nouns(line: str) -> set[str]:
    match = _SELECTOR_LINE.match(line.rstrip())
    return set((match[1] or match[2]).split()) - {"not", "and", "or"} if match else set()


def _branches(reading: Reading, allowed: set[str], *, several: bool) -> Iterator[Part | Entry]:
    """What a noarch package must not have: conditions in its requirements, of platforms if it has several; a skip."""
    section = reading.first("requirements")
    for entry in section.entries if section is not None else ():
        if several and entry.key not in {"host", "run"}:
            continue
        wrong = [item for item in entry.value.items if "if" in item.members and not _words(item) <= allowed]
        if wrong:
            yield wrong[0]
            break
    build = reading.first("build")
    yield from (entry for entry in (build.entries if build is not None else ()) if entry.key == "skip")


def _words(item: Part) -> set[str]:
    return set(item.members["if"].text.split()) - {"not", "and", "or"}
