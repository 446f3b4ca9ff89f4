"""The templates of a release, and those of a feedstock that replace them, rendered in a sandbox.

Their code is kept in memory and in a private folder of this user. A template that wants a value which no release up to
`rules.NEWEST_SMITHY` uses, and which its context lacks, would render it as nothing, and is refused.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import CodeType
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.sandbox import SandboxedEnvironment

from feedstock_tools.bounds.limits import step
from feedstock_tools.errors import InputError
from feedstock_tools.files.temporary import owned_name
from feedstock_tools.reading import read_bytes
from feedstock_tools.rerender.smithy.release import Release

_OWN = "templates"
_LARGEST_OWN = 256 * 1024
_FAILURES = (jinja2.TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RuntimeError)


class Templates:
    """Renders templates by name: the feedstock's own if it has one, else the release's."""

    def __init__(self, release: Release, feedstock: Path) -> None:
        self._release = release
        self._own = feedstock / _OWN
        self._has_own = self._own.is_dir()
        self._compiled = CompiledTemplates(release.cache)
        self._environment = SandboxedEnvironment(
            extensions=["jinja2.ext.do"],
            loader=jinja2.FunctionLoader(self._load),
            bytecode_cache=self._compiled,
            auto_reload=False,
        )

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        """Render a template with the values of a context.

        Raises:
            BoundError: it takes more time or memory than a step of bounded work may.
            InputError: there is no such template, it fails, or it uses an unknown value.
        """
        try:
            with step(self._path(name)):
                template = self._environment.get_template(name)
                self._refuse_unknown(name, context)
                return template.render(context)
        except jinja2.TemplateNotFound as error:
            raise InputError(f"the release has no template {error}", path=self._release.templates) from error
        except _FAILURES as error:
            line = getattr(error, "lineno", None)
            raise InputError(f"cannot be rendered: {error}", path=self._path(name), line=line) from error

    def _is_own(self, name: str) -> bool:
        return self._has_own and (self._own / name).is_file()

    def _path(self, name: str) -> Path:
        return (self._own if self._is_own(name) else self._release.templates) / name

    def _load(self, name: str) -> str | None:
        own = self._own / name
        if self._is_own(name):
            if own.is_symlink() or self._own.is_symlink():
                raise InputError(
                    "cannot be used as a template", path=own, hint="A template of a feedstock is a file of its own."
                )
            return read_bytes(own, _LARGEST_OWN, within=self._own).decode(errors="replace").replace("\r\n", "\n")
        return self._release.template(name) if self._release.has_template(name) else None

    def _refuse_unknown(self, name: str, context: Mapping[str, Any]) -> None:
        """Refuse a template that uses a value that no known version provides: undefined, it would render as nothing."""
        used = self._compiled.used_values(self._environment, name, self._load(name) or "")
        unknown = [path for path in used if not _is_known(path.split("."), context)]
        if unknown:
            hint = (
                "Templates of a feedstock can use what those of conda-smithy use."
                if self._is_own(name)
                else "The release is newer than all known ones: use conda-smithy itself, or an older release."
            )
            listed = f"the unknown value{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}"
            raise InputError(f"uses {listed}", path=self._path(name), hint=hint)


#: Some have no value in places: there they are false as conditions and empty as texts.
_NAMES = frozenset(
    {
        *("BOA", "BUILD_CMD", "CONDA_INSTALL_CMD", "GET_BOA", "NO_TEST_FLAG", "arch_conda", "arch_drone", "azure_yaml"),
        *("azure_image_url", "azure_url", "build_setup", "build_tool_deps_dict", "build_with_mambabuild", "channels"),
        *("channel_targets", "channel_with_label", "conda_build_tool_deps", "conda_install_tool_deps", "configs"),
        *("fast_finish", "feedstock_name", "linux_64", "linux_ppc64le", "local_ci_setup", "maintainers", "osx_64"),
        *("noarch_python", "outputs", "package", "package_about", "package_name", "pixi_version", "platforms"),
        *("remote_ci_setup_names", "remote_ci_setup_update", "shellcheck_platforms", "smithy_version", "variants"),
        *("upload_on_branch", "win_64", "with_shellcheck", "yum_build_setup"),
    }
)
#: Name → its attributes. `*`: any value that a template names itself, such as each of `configs`.
_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    name: frozenset(attributes.split())
    for name, attributes in {
        "*": "build_platform build_workspace_dir config config_name config_name_short create_pagefile "
        "create_pagefile_linux create_pagefile_win description dev_url doc_url docker_image docker_run_args "
        "free_disk_space gha_os gha_runs_on gha_with_gpu home license license_url pagefile_size platform "
        "resize_partitions resize_win_partitions short_config_name store_build_artifacts summary tools_install_dir "
        "upload",
        "appveyor": "enabled image secure",
        "azure": "build_id enabled free_disk_space project_name settings_linux settings_win store_build_artifacts "
        "timeout_minutes user_or_org",
        "azure.settings_linux": "swapfile_size",
        "azure.settings_win": "install_atl",
        "channels": "targets",
        "circle": "enabled platforms",
        "docker": "command executable fallback_image image interactive run_args",
        "drone": "enabled",
        "github": "branch_name repo_name tooling_branch_name user_or_org",
        "github_actions": "artifact_retention_days cancel_in_progress enabled free_disk_space max_parallel "
        "resize_win_partitions self_hosted store_build_artifacts timeout_minutes triggers",
        "package": "meta",
        "package.meta": "about",
        "package.meta.about": "description dev_url doc_url home license license_url summary",
        "package_about": "description dev_url doc_url home license license_url summary",
        "travis": "enabled secure",
        **dict.fromkeys(
            ("linux", "linux_64", "linux_ppc64le", "osx", "osx_64", "shellcheck", "win", "win_64"), "enabled"
        ),
    }.items()
}
#: Attributes of Jinja's own `loop`, and methods of the values that a context holds.
_METHODS = frozenset(
    {
        *("changed", "cycle", "depth", "depth0", "first", "index", "index0", "last", "length", "nextitem", "previtem"),
        *("revindex", "revindex0"),
        *(name for kind in (str, list, dict, int) for name in dir(kind) if not name.startswith("_")),
    }
)


def used_values(environment: jinja2.Environment, source: str) -> tuple[str, ...]:
    """The values that a template uses and does not make itself: names and paths such as `azure.build_id`.

    The path of an attribute of a value that the template names itself begins with `*`.

    Raises:
        TemplateError: the text is not a template.

    >>> used_values(jinja2.Environment(), "{% for one in configs %}{{ one.upload }}{{ azure.build_id }}{% endfor %}")
    ('*.upload', 'azure', 'azure.build_id', 'configs')
    """
    tree = environment.parse(source)
    names = meta.find_undeclared_variables(tree)
    own = {node.attr for node in tree.find_all(nodes.NSRef)}  # `{% set space.name = … %}`
    own |= {keyword.key for call in tree.find_all(nodes.Call) for keyword in call.kwargs}  # namespace(name=…)
    found = set(names)
    for path in _paths(tree):
        if path[0] in names:
            found.add(".".join(path))
        elif path[-1] not in own:
            found.add(f"*.{path[-1]}")
    return tuple(sorted(found))


def _paths(tree: nodes.Template) -> Iterator[list[str]]:
    """The attributes and literal keys in a template, each with the names before it; `*` for any other expression."""
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        path = _path(node)
        if path is not None:
            yield path


def _path(node: nodes.Node) -> list[str] | None:
    if isinstance(node, nodes.Name):
        return [node.name]
    name = None
    if isinstance(node, nodes.Getattr):
        name = node.attr
    elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
        name = node.arg.value
    if name is None or not isinstance(node, (nodes.Getattr, nodes.Getitem)):
        return None
    before = _path(node.node)
    return [*(before or ["*"]), name]


def _is_known(path: list[str], context: Mapping[str, Any]) -> bool:
    """Whether a context holds a value, or a template of a known release uses it."""
    name, *attributes = path
    if not attributes:
        return name in _NAMES or name in context
    if attributes[-1] in _METHODS or attributes[-1] in _ATTRIBUTES.get(".".join(path[:-1]), ()):
        return True
    value: Any = context.get(name)
    for attribute in attributes:
        if not isinstance(value, Mapping) or attribute not in value:
            return False
        value = value[attribute]
    return True


#: The maximum number of compiled templates in memory: those of about 20 releases.
_MOST = 512
_LARGEST = 4 * 1024 * 1024
_codes: dict[str, CodeType] = {}
_used: dict[str, tuple[str, ...]] = {}


class CompiledTemplates(BytecodeCache):
    """The bytecode of templates, and the values that each uses.

    Python runs the code in the folder, so only files of this user that nobody else can write are read, from such a
    folder. A file's name is the hash of everything that its content depends on: the template's text and name, the
    versions of Jinja and Python (which the bytecode's header repeats).
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder if folder is not None and _is_private(folder) else None

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Only the name: the checksum tells texts apart."""
        return name

    def get_source_checksum(self, source: str) -> str:
        return sha256(source.encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Find the code of a template in memory, else in the folder."""
        key = _key(bucket.key, bucket.checksum)
        bucket.code = _codes.get(key)
        if bucket.code is None and (content := self._read(f"{key}.code")):
            with suppress(Exception):  # a damaged file costs only time
                bucket.load_bytecode(BytesIO(content))
                _keep(key, bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        key = _key(bucket.key, bucket.checksum)
        _keep(key, bucket)
        stream = BytesIO()
        bucket.write_bytecode(stream)
        self._write(f"{key}.code", stream.getvalue())

    def used_values(self, environment: jinja2.Environment, name: str, source: str) -> tuple[str, ...]:
        """The values that a template uses (`known_values.used_values`), found once for each text.

        Raises:
            TemplateError: the text is not a template.
        """
        key = _key(name, self.get_source_checksum(source))
        if key not in _used:
            kept = self._read(f"{key}.used")
            used = _texts(kept) if kept else None
            if used is None:
                used = used_values(environment, source)
                self._write(f"{key}.used", json.dumps(used).encode())
            if len(_used) >= _MOST:
                _used.clear()
            _used[key] = used
        return _used[key]

    def _read(self, name: str) -> bytes | None:
        if self._folder is None:
            return None
        try:
            with os.fdopen(os.open(self._folder / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as stream:
                return stream.read(_LARGEST) if _is_own(os.fstat(stream.fileno())) else None
        except OSError:
            return None

    def _write(self, name: str, content: bytes) -> None:
        if self._folder is None:
            return
        part = self._folder / owned_name()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(content)
            part.replace(self._folder / name)
        except OSError:  # a cache that cannot be written costs only time
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _key(name: str, checksum: str) -> str:
    return sha256(f"{jinja2.__version__}\0{name}\0{checksum}".encode()).hexdigest()


def _keep(key: str, bucket: Bucket) -> None:
    if isinstance(bucket.code, CodeType):
        if len(_codes) >= _MOST:
            _codes.clear()
        _codes[key] = bucket.code


def _texts(content: bytes) -> tuple[str, ...] | None:
    try:
        texts = json.loads(content)
    except ValueError:
        return None
    return tuple(texts) if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else None


def _is_private(folder: Path) -> bool:
    """Whether a folder is this user's alone; one that does not exist yet will be."""
    try:
        state = folder.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and _is_own(state)


def _is_own(state: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)
