"""The templates of a release, and those of a feedstock that replace them, rendered in a sandbox."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.sandbox import SandboxedEnvironment

from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_bytes
from feedstock_tools.rerender.smithy.release import Release
from feedstock_tools.temporary import owned_name

__all__ = ["Templates"]

_OWN = "templates"
_LARGEST_OWN = 256 * 1024
#: The names that templates of the known versions use besides settings. Some have no value in places: there they are
#: false as conditions and empty as texts.
_KNOWN = frozenset(
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


class Templates:
    """Renders templates by name: the feedstock's own if it has one, else the release's."""

    def __init__(self, release: Release, feedstock: Path, cache: Path | None = None) -> None:
        """Read no template yet: each is read when it is rendered.

        Args:
            cache: a private folder that keeps compiled templates by their content; None to keep none.
        """
        self._release = release
        self._own = feedstock / _OWN
        self._environment = SandboxedEnvironment(
            extensions=["jinja2.ext.do"],
            loader=jinja2.FunctionLoader(self._load),
            bytecode_cache=_ByContent(cache) if cache else None,
        )
        self._checked: set[str] = set()

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        """Render a template with the values of a context.

        Raises:
            InputError: there is no such template, it fails, or it uses an unknown value.
        """
        try:
            template = self._environment.get_template(name)
            self._refuse_unknown(name, context)
            return template.render(context)
        except jinja2.TemplateNotFound as error:
            raise InputError(f"the release has no template {error}", path=self._release.templates) from error
        except (jinja2.TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
            line = getattr(error, "lineno", None)
            raise InputError(f"cannot be rendered: {error}", path=self._path(name), line=line) from error

    def _path(self, name: str) -> Path:
        own = self._own / name
        return own if own.is_file() else self._release.templates / name

    def _load(self, name: str) -> str | None:
        own = self._own / name
        if own.is_file():
            if own.is_symlink() or self._own.is_symlink():
                raise InputError(
                    "cannot be used as a template", path=own, hint="A template of a feedstock is a file of its own."
                )
            return read_bytes(own, _LARGEST_OWN, within=self._own).decode(errors="replace").replace("\r\n", "\n")
        return self._release.template(name) if (self._release.templates / name).is_file() else None

    def _refuse_unknown(self, name: str, context: Mapping[str, Any]) -> None:
        """Refuse a template that uses a value that no known version provides: undefined, it would render as nothing."""
        if name in self._checked:
            return
        self._checked.add(name)
        unknown = self._wanted(name) - context.keys() - _KNOWN
        if unknown:
            hint = "The release is newer than all known ones: use conda-smithy itself, or an older release."
            raise InputError(f"uses the unknown value {', '.join(sorted(unknown))}", path=self._path(name), hint=hint)

    def _wanted(self, name: str) -> set[str]:
        return meta.find_undeclared_variables(self._environment.parse(self._load(name) or ""))


class _ByContent(BytecodeCache):
    """Compiled templates in a private folder of this user, by the hash of their sources."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        return name

    def get_source_checksum(self, source: str) -> str:
        return sha256(source.encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            with self._place(bucket).open("rb") as stream:
                owner = os.fstat(stream.fileno())
                if hasattr(os, "getuid") and (owner.st_uid != os.getuid() or owner.st_mode & 0o022):
                    return
                bucket.load_bytecode(stream)
        except OSError:
            return

    def dump_bytecode(self, bucket: Bucket) -> None:
        place = self._place(bucket)
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = place.with_name(owned_name())
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                bucket.write_bytecode(stream)
            part.replace(place)
        except OSError:  # a cache that cannot be written costs only time
            return

    def _place(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.checksum}.jinja"
