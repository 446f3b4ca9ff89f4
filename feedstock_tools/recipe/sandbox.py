"""The sandbox of Jinja in which templates of recipes are compiled."""

from __future__ import annotations

import warnings
from types import CodeType

from jinja2 import TemplateSyntaxError
from jinja2.sandbox import SandboxedEnvironment


class Sandbox(SandboxedEnvironment):
    """A sandbox whose templates, and the files that they include, end in Jinja's errors alone, without warnings."""

    def _compile(self, source: str, filename: str) -> CodeType:
        """Compile the Python code that Jinja generated."""
        try:
            with warnings.catch_warnings():  # of Python, for that code: `{{ 1[x] }}`
                warnings.simplefilter("ignore", SyntaxWarning)
                return super()._compile(source, filename)
        except SyntaxError as error:  # an argument given twice, say
            raise TemplateSyntaxError(error.msg, 1) from error
