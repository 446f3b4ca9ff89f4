"""The templates of a release, and those of a feedstock that replace them, rendered in a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from feedstock_tools.bounds.held import step
from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_bytes
from feedstock_tools.rerender.smithy.releases.compiled import CompiledTemplates
from feedstock_tools.rerender.smithy.releases.known_values import unknown_values
from feedstock_tools.rerender.smithy.releases.release import Release

_OWN = "templates"
_LARGEST_OWN = 256 * 1024
_FAILURES = (jinja2.TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RuntimeError)


class Templates:
    """Renders templates by name: the feedstock's own if it has one, else the release's."""

    def __init__(self, release: Release, feedstock: Path) -> None:
        """Read no template yet: each is read when it is rendered."""
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
        unknown = unknown_values(used, context)
        if unknown:
            hint = (
                "Templates of a feedstock can use what those of conda-smithy use."
                if self._is_own(name)
                else "The release is newer than all known ones: use conda-smithy itself, or an older release."
            )
            listed = f"the unknown value{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}"
            raise InputError(f"uses {listed}", path=self._path(name), hint=hint)
