"""The rules of conda-forge's linter for what stands beside the recipe: variants, conda-forge.yml, workflows, jobs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from itertools import combinations, product
from pathlib import Path

from feedstock_tools.check.linting.conda_forge import Found, leaves_in, rule, words
from feedstock_tools.check.linting.reading import Reading, items_of
from feedstock_tools.conditions.recipes import parse
from feedstock_tools.conditions.tree import Leaf, Name, truth
from feedstock_tools.errors import FeedstockError
from feedstock_tools.feedstock.git import address_of
from feedstock_tools.processes import program_of_the_user
from feedstock_tools.reading import is_inside
from feedstock_tools.recipe.written.document import VARIANT_FILES, Document, Entry, Part, WrittenFiles, read_document
from feedstock_tools.recipe.written.variables import expand
from feedstock_tools.versions import InvalidVersionError, Version, parse_version
from feedstock_tools.wording import some_of

#: The lowest macOS that conda-forge builds for.
_MACOS = "11.0"
#: What a requirement on a package should be instead (conda-forge-pinning: recipe/linter_hints/hints.toml).
_REPLACED: Mapping[str, str] = {
    **{"build": "python-build", "jpeg": "libjpeg-turbo", "libboost": "libboost-devel or libboost-headers"},
    **{"libboost-python": "libboost-python-devel", "matplotlib": "matplotlib-base", "pathlib": "nothing"},
    **{"pytorch-cpu": "pytorch", "pytorch-gpu": "pytorch", "abseil-cpp": "libabseil", "arrow-cpp": "libarrow"},
    **{"boost-cpp": "libboost-devel or libboost-headers", "boost": "libboost-python-devel", "magma": "libmagma-devel"},
    **{
        "coincbc": "coin-or-cbc",
        "grpc-cpp": "libgrpc",
        "importlib_metadata": "importlib-metadata",
        "xz": "liblzma-devel",
    },
    **{"libgcc-ng": "libgcc", "libstdcxx-ng": "libstdcxx", "libgfortran-ng": "libgfortran", "posix": "m2-base"},
    **{"openmp": "llvm-openmp", "astropy": "astropy-base", "xorg_xcb_proto": "xcb-proto"},
    "mesa_libgl_devel_cdt_stub": "libgl-devel, libegl-devel or libglx-devel",
}
_XORG_PROTO = re.compile(r"xorg_\w+proto")


@rule("replaced-package", "CF-002", "a requirement that conda-forge replaced by another", "remark")
def _replaced_package(reading: Reading) -> Iterator[Found]:
    for section in ("build", "host", "run"):
        for leaf in leaves_in(reading.owners, section):
            name = leaf.text.split(" ")[0].strip()
            new = _REPLACED.get(name) or ("xorg-xorgproto" if _XORG_PROTO.fullmatch(name) else "")
            if new:
                yield Found(leaf, f"require {new} rather than {name}")


@rule("no-jobs", "CF-003", "the feedstock has no jobs in .ci_support")
def _no_jobs(reading: Reading) -> Iterator[Found]:
    if not any((reading.subject.files.folder / ".ci_support").glob("*.yaml")):
        yield Found(0, "there are no jobs in .ci_support: rerender the feedstock")


@rule("empty-variants", "CF-004", "conda_build_config.yaml is empty")
def _empty_variants(reading: Reading) -> Iterator[Found]:
    document = reading.subject.files.file(VARIANT_FILES[0])
    if document is not None and not document.text.strip():
        yield Found(0, "remove this file: it is empty", document=document)


@rule("two-variants", "RC-002", "there are a conda_build_config.yaml and a variants.yaml")
def _two_variants(reading: Reading) -> Iterator[Found]:
    found = [document for name in VARIANT_FILES if (document := reading.subject.files.file(name)) is not None]
    if len(found) > 1:
        yield Found(0, "keep one of conda_build_config.yaml and variants.yaml", document=found[1])


@rule("own-workflow", "CF-005", "a workflow of GitHub Actions that conda-smithy did not write")
def _own_workflow(reading: Reading) -> Iterator[Found]:
    folder = reading.subject.files.folder
    for path in sorted((folder / ".github" / "workflows").glob("*.y*ml")):
        if path.suffix in {".yml", ".yaml"} and path.name != "conda-build.yml":
            message = (
                "conda-forge allows no workflow but conda-build.yml: remove it, or rerender if it is conda-smithy's"
            )
            yield Found(0, message, document=read_document(path, within=folder))


@rule("other-name", "CF-013", "the feedstock has another name at GitHub than in the recipe")
def _other_name(reading: Reading) -> Iterator[Found]:
    owner = next((part.text for part in reading.settings("github", "user_or_org")), "conda-forge")
    folder = reading.subject.files.folder
    address = address_of(folder) if (folder / ".git").exists() else ""
    match = re.fullmatch(
        rf"(?:\w+://)?(?:[^/@]+@)?github\.com[:/]/?{re.escape(owner)}/([^/]+)-feedstock(?:\.git)?/?", address
    )
    own = next((found for found in (reading.first(name, "name") for name in ("recipe", "package")) if found), None)
    named = reading.first("extra", "feedstock-name") or own
    name = None if named is None else expand(reading.recipe, named.text, {}) if reading.is_v1 else named.text
    if match and name and name != match[1]:
        yield Found(named, f"the feedstock is {match[1]}-feedstock: write `feedstock-name: {match[1]}` in extra")


@rule(
    "overridden-pin",
    "CF-006",
    "a requirement in host has a version although the jobs pin the package",
    "remark",
    needs="jobs",
)
def _overridden_pin(reading: Reading) -> Iterator[Found]:
    pinned = {key for job in reading.subject.jobs for key in job.configuration.values}
    for owner in reading.owners:
        named: dict[str, list[Part]] = {}
        for leaf in leaves_in([owner], "host"):
            text = leaf.text.partition("#")[0].strip()
            if "{{" not in text and (match := re.match(r"[\w.-]+", text)):
                named.setdefault(match[0].lower(), []).append(leaf)
        for name, leaves in named.items():
            version = leaves[0].text.partition("#")[0].strip()[len(name) :].strip()
            if name == "python" and version[:1] != ">" and reading.outputs and owner is reading.owners[0]:
                continue  # one Python builds what the outputs of all share
            if len(leaves) == 1 and name in pinned and version:
                yield Found(leaves[0], f"the jobs pin {name}: set another version in the variants, not here")


@rule("deprecated-variable", "CF-007", "a variable of Azure that a setting replaces", "remark")
def _deprecated_variable(reading: Reading) -> Iterator[Found]:
    replaced = {
        "CONDA_BLD_PATH": "workflow_settings.build_workspace_dir",
        "CONDA_FORGE_DOCKER_RUN_ARGS": "docker.run_args",
        "MINIFORGE_HOME": "workflow_settings.tools_install_dir",
        "SET_PAGEFILE": "workflow_settings.pagefile_size",
    }
    for system in ("linux", "osx", "win"):
        for section in reading.forge.entries("azure", f"settings_{system}", "variables") if reading.forge else ():
            for entry in section.value.entries:
                if entry.key in replaced:
                    yield Found(entry.start, f"set {replaced[entry.key]} instead", document=reading.forge)


@rule("os-version", "FC-002", "conda-forge.yml asks for an obsolete image", "remark", skip="hint_os_version")
def _os_version(reading: Reading) -> Iterator[Found]:
    for section in reading.forge.entries("os_version") if reading.forge else ():
        for entry in section.value.entries:
            if entry.value.text in {"cos7", "alma8", "ubi8"}:
                yield Found(entry.start, f"{entry.value.text} is older than the default image", document=reading.forge)


_SETTINGS = words(
    "conda_build linter conda_build_tool conda_install_tool conda_forge_output_validation conda_solver github bot "
    "build_platform channel_priority choco docker idle_timeout_minutes noarch_platforms os_version provider package "
    "recipe_dir remote_ci_setup shellcheck skip_render templates test_on_native_only test upload_on_branch "
    "config_version exclusive_config_file compiler_stack min_py_ver max_py_ver min_r_ver max_r_ver private_upload "
    "secrets clone_depth workflow_settings travis circle appveyor azure drone github_actions woodpecker "
    "build_with_mambabuild matrix"
)
_DEPRECATED: Mapping[tuple[str, ...], str] = {
    **dict.fromkeys(
        [("compiler_stack",), ("min_py_ver",), ("max_py_ver",), ("min_r_ver",), ("max_r_ver",)], "remove it"
    ),
    ("matrix",): "write variants into recipe/conda_build_config.yaml",
    ("build_with_mambabuild",): "set conda_build_tool",
    ("test_on_native_only",): "set `test: native_and_emulated`",
    ("docker", "interactive"): "remove it",
    ("github_actions", "self_hosted"): "remove it",
    ("github_actions", "resize_win_partitions"): "set workflow_settings.resize_partitions",
    **{(ci, "free_disk_space"): "set workflow_settings.free_disk_space" for ci in ("azure", "github_actions")},
    **{
        (ci, "store_build_artifacts"): "set workflow_settings.store_build_artifacts"
        for ci in ("azure", "github_actions")
    },
}


@rule("deprecated-setting", "", "a setting of conda-forge.yml that conda-smithy gave up", "remark")
def _deprecated_setting(reading: Reading) -> Iterator[Found]:
    for keys, instead in _DEPRECATED.items():
        for entry in reading.forge.entries(*keys) if reading.forge else ():
            is_off = entry.value.text.lower() in {"", "~", "null"} and not entry.value.items and not entry.value.entries
            if not is_off:
                yield Found(entry.start, f"'{'.'.join(keys)}' is deprecated: {instead}", document=reading.forge)


#: The settings below those of conda-forge.yml that have no others.
_BELOW: Mapping[str, frozenset[str]] = {
    "azure": words(
        "force free_disk_space max_parallel project_id project_name build_id upload_packages settings_linux "
        "settings_osx settings_win user_or_org store_build_artifacts timeout_minutes"
    ),
    "bot": words(
        "automerge check_solvable inspection abi_migration_branches run_deps_from_wheel version_updates "
        "update_static_libs remake_prs_with_conflicts"
    ),
    "docker": words("executable fallback_image command run_args interactive"),
    "github": words("user_or_org repo_name branch_name tooling_branch_name"),
    "github_actions": words(
        "artifact_retention_days cancel_in_progress free_disk_space max_parallel resize_win_partitions self_hosted "
        "store_build_artifacts timeout_minutes triggers upload_packages"
    ),
    "shellcheck": words("enabled"),
}
_MAPPINGS = words(
    "conda_build linter github build_platform docker os_version provider templates workflow_settings travis circle "
    "appveyor azure drone github_actions woodpecker matrix"
)
_BOOLEAN = words("true false True False TRUE FALSE yes no on off null ~")
_IMAGES = words("alma10 rocky10 alma9 alma8 ubi8 cos7 null")
_PROVIDERS = words("azure github_actions default emulated native None circle travis appveyor drone woodpecker null")
#: What some settings may be; a star stands for any key.
_VALUES: Mapping[tuple[str, ...], frozenset[str]] = {
    ("conda_build_tool",): words(
        "conda-build conda-build+classic conda-build+conda-libmamba-solver mambabuild rattler-build"
    ),
    ("conda_install_tool",): words("conda mamba micromamba pixi"),
    ("conda_solver",): words("libmamba classic null"),
    ("channel_priority",): words("strict flexible disabled"),
    ("test",): words("all native native_and_emulated null"),
    ("os_version", "*"): _IMAGES,
    ("provider", "*"): _PROVIDERS | _BOOLEAN,
    ("bot", "automerge"): _BOOLEAN | {"version", "migration"},
    ("bot", "inspection"): words(
        "hint hint-all hint-source hint-grayskull update-all update-source update-grayskull disabled null"
    ),
    **{("bot", key): _BOOLEAN for key in ("check_solvable", "run_deps_from_wheel", "update_static_libs")},
    ("shellcheck", "enabled"): _BOOLEAN,
    ("private_upload",): _BOOLEAN,
    ("conda_forge_output_validation",): _BOOLEAN,
}


@rule("setting", "", "conda-smithy does not know a setting of conda-forge.yml, or its value")
def _setting(reading: Reading) -> Iterator[Found]:
    forge = reading.forge
    for entry in forge.root.entries if forge is not None and forge.root is not None else ():
        if entry.key not in _SETTINGS:
            yield Found(entry.start, f"conda-forge.yml has no setting '{entry.key}'", document=forge)
        is_empty = entry.value.kind == "scalar" and entry.value.text in {"", "~", "null"}
        if entry.key in _MAPPINGS and entry.value.kind != "mapping" and not is_empty:
            yield Found(entry.start, f"'{entry.key}' is a mapping of settings", document=forge)
        for below in entry.value.entries if entry.key in _BELOW else ():
            if below.key not in _BELOW[entry.key]:
                yield Found(below.start, f"'{entry.key}' has no setting '{below.key}'", document=forge)
    for keys, values in _VALUES.items():
        for entry in forge.entries(*(key for key in keys if key != "*")) if forge is not None else ():
            for each in entry.value.entries if keys[-1] == "*" else (entry,):
                for leaf in each.value.leaves:
                    if leaf.text and leaf.text not in values:
                        message = (
                            f"'{each.key}' cannot be '{leaf.text}': it is {some_of(sorted(values - _BOOLEAN), 12)}"
                        )
                        yield Found(leaf.start, message, document=forge)
    for entry in forge.entries("bot", "abi_migration_branches") if forge is not None else ():
        for leaf in entry.value.leaves:
            if not leaf.style and re.fullmatch(r"\d+(\.\d*)?", leaf.text):
                yield Found(leaf.start, "the name of a branch is a text: write it in quotes", document=forge)


@rule("macos-variants", "RC-000, RC-001, CBC-001", "the variants ask for an older macOS or SDK than can be built for")
def _macos_variants(reading: Reading) -> Iterator[Found]:
    for name in VARIANT_FILES:
        document = reading.subject.files.file(name)
        if document is None or document.root is None:
            continue
        target = _for_macos(document, "MACOSX_DEPLOYMENT_TARGET")
        if target:
            yield Found(target[0].start, "use c_stdlib_version, for macOS only", document=document)
        stdlib, sdk = (_versions(_for_macos(document, key)) for key in ("c_stdlib_version", "MACOSX_SDK_VERSION"))
        least = parse_version(_MACOS)
        for part, version in stdlib:
            if version < least and len(stdlib) <= 2:
                yield Found(part.start, f"conda-forge builds for macOS {_MACOS} or later", document=document)
                break
        wanted = [version for _, version in stdlib] or [least, least]
        if len(sdk) == len(wanted):
            low = [part for (part, own), needed in zip(sdk, wanted, strict=True) if own < needed]
        else:
            low = [part for part, own in sdk if len(sdk) == 1 and all(own < needed for needed in wanted)]
        if low:
            message = "the SDK must not be older than c_stdlib_version, or than macOS {_MACOS} without one"
            yield Found(low[0].start, message.replace("{_MACOS}", _MACOS), document=document)


def _for_macos(document: Document, key: str) -> list[Part]:
    """The values of a key of a variant file that may be those for macOS."""
    found: list[Part] = []
    for entry in document.entries(key):
        if not document.has_templates:
            found += _chosen(entry.value)
        elif not _excludes_macos(document.selector_of(entry)) or entry.value.items:
            found += [
                each for each in entry.value.items or (entry.value,) if not _excludes_macos(document.selector_of(each))
            ]
    return [part for part in found if part.kind == "scalar" and part.text]


def _chosen(part: Part) -> Iterator[Part]:
    """The scalars of a variants.yaml for macOS: the branches of conditions that do not exclude it."""
    if part.kind == "scalar":
        yield part
    condition = part.members.get("if")
    if condition is not None:
        read = parse(condition.text, "expression")
        met = None if read is None else truth(read, _of_macos)
        branch = "else" if met is False else "then"
        for entry in part.below(branch):
            yield from _chosen(entry.value)
    for item in part.items:
        yield from _chosen(item)


def _of_macos(leaf: Leaf) -> bool | None:
    return {"osx": True, "unix": True, "linux": False, "win": False}.get(leaf.name) if isinstance(leaf, Name) else None


def _excludes_macos(condition: str) -> bool:
    return re.search(r"\bnot\s+(?:osx|unix)|(?<!not )(?:linux|win)", condition) is not None


def _versions(parts: list[Part]) -> list[tuple[Part, Version]]:
    """Two values are for x86-64 and for arm64, which has the higher one."""
    try:
        found = [(part, parse_version(part.text)) for part in parts]
    except InvalidVersionError:
        return []
    return found[::-1] if len(found) == 2 and found[0][1] > found[1][1] else found


@rule(
    "workflow-settings",
    "CF-009, CF-010, CF-011, CF-012",
    "conditions of workflow_settings overlap, contradict, or lack",
)
def _workflow_settings(reading: Reading) -> Iterator[Found]:
    for section in reading.forge.entries("workflow_settings") if reading.forge else ():
        for entry in section.value.entries:
            yield from (found._replace(document=reading.forge) for found in _of_setting(entry))


def _of_setting(entry: Entry) -> Iterator[Found]:
    whole = [entry.value] if entry.value.kind == "scalar" and entry.value.text not in {"", "~", "null"} else []
    settings = [_Setting.read(part) for part in whole or items_of(entry.value)]
    for each in settings:
        at = each.part.start
        if each.platform and each.os and {name.split("_")[0] for name in each.platform} != set(each.os):
            yield Found(at, f"{', '.join(each.os)} are not the systems of {', '.join(each.platform)}")
        if (
            entry.key in {"tools_install_dir", "build_workspace_dir"}
            and "win" in each.systems
            and len(each.systems) > 1
        ):
            yield Found(at, "a path is for Windows or for other systems: add `os` or `platform`")
        if entry.key == "resize_partitions" and (each.systems != {"win"} or set(each.provider) != {"github_actions"}):
            yield Found(at, "this setting is for `os: win` and `provider: github_actions` alone")
    for first, second in combinations(settings, 2):
        if any(_overlap(mine, other) for mine, other in product(first.cases, second.cases)):
            yield Found(second.part.start, f"this may apply together with another value of {entry.key}")


def _overlap(mine: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    """Whether one of two cases is the other or holds it: each word is the same, or one side leaves it open."""
    pairs = list(zip(mine, other, strict=True))
    return all(b in (a, "") for a, b in pairs) or all(a in (b, "") for a, b in pairs)


class _Setting:
    """A value of a workflow setting, with the systems, platforms and providers that it is for; none: for all."""

    def __init__(self, part: Part, os: tuple[str, ...], platform: tuple[str, ...], provider: tuple[str, ...]) -> None:
        self.part, self.os, self.platform, self.provider = part, os, platform, provider

    @classmethod
    def read(cls, part: Part) -> _Setting:
        named = (part.members.get(key) for key in ("os", "platform", "provider"))
        return cls(part, *(tuple(leaf.text for leaf in value.leaves) if value is not None else () for value in named))

    @property
    def systems(self) -> set[str]:
        own = set(self.os or ("linux", "osx", "win"))
        return own & {name.split("_")[0] for name in self.platform} if self.platform else own

    @property
    def cases(self) -> list[tuple[str, str, str]]:
        return list(product(self.os or ("",), self.platform or ("",), self.provider or ("",)))


#: What conda-smithy calls shellcheck with, but for the form of the answer.
_SHELLCHECK = ("--enable=all", "--shell=bash", "--exclude=SC2154", "--format=json1")
_SHELLCHECK_SECONDS = 120


@rule("shellcheck", "R-042, R-043", "shellcheck, if it is enabled, finds something", "remark", needs="shellcheck")
def _shellcheck(reading: Reading) -> Iterator[Found]:
    files = reading.subject.files
    scripts, program = _scripts(files), program_of_the_user("shellcheck", os.environ)
    if not scripts or program is None:
        return
    command = [program, *_SHELLCHECK, "--", *map(str, scripts)]
    variables = {"PATH": os.environ["PATH"]}
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=variables,
            timeout=_SHELLCHECK_SECONDS,
        )
        found = json.loads(run.stdout)["comments"]
        documents = {str(path): read_document(path, within=files.folder) for path in scripts}
        for each in found:
            document = documents[each["file"]]
            at = document.start_of(int(each["line"])) + int(each["column"]) - 1
            yield Found(at, f"SC{each['code']}: {each['message']}", document=document)
    except (OSError, subprocess.SubprocessError, LookupError, TypeError, ValueError, FeedstockError):
        yield Found(0, "shellcheck fails on the scripts of the recipe")


def why_no_shellcheck(files: WrittenFiles) -> str:
    """Why nobody checks the scripts of a feedstock that enables shellcheck; '' if nothing keeps it from that."""
    is_there = not _scripts(files) or program_of_the_user("shellcheck", os.environ)
    return "" if is_there else "shellcheck is not on PATH"


def _scripts(files: WrittenFiles) -> list[Path]:
    """The scripts that a feedstock wants shellcheck to check."""
    forge = files.file("conda-forge.yml")
    enabled = [entry.value.text for entry in forge.entries("shellcheck", "enabled")] if forge is not None else []
    scripts = files.recipe_path.parent.glob("*.sh") if enabled[-1:] == ["true"] else ()
    return sorted(path for path in scripts if path.is_file() and is_inside(path, files.folder))
