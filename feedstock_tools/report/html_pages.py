"""What all HTML pages have in common: one look, and a policy under which nothing but their own script runs.

A page is one file that fetches nothing. What people and builds wrote is escaped wherever a template places it, and
characters that would hide or turn around what follows them are shown as text.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from feedstock_tools.data import data_folder
from feedstock_tools.wording import counted, duration, moment, shown, size_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

#: The longest text that somebody else wrote, in characters.
_LONGEST_TEXT = 8_000
_POLICY = "default-src 'none'; {rules}base-uri 'none'; form-action 'none'"


def html_page(template: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), **values: Any) -> str:
    """Render a page.

    Args:
        template: the name of its template, `NAME.html.j2`, which extends `page.html.j2`.
        styles: the names of its own styles (`NAME.css`), after the one of all pages.
        scripts: the names of its scripts (`NAME.js`), which become one.
        values: what the template places.
    """
    style = "".join(map(_text, ("page.css", *(f"{name}.css" for name in styles))))
    script = "".join(_text(f"{name}.js") for name in scripts)
    rules = f"style-src {_policy_hash(style)}; " + (f"script-src {_policy_hash(script)}; " if script else "")
    policy = _POLICY.format(rules=rules)
    page = _environment().get_template(f"{template}.html.j2")
    return page.render(style=style, script=script, policy=policy, **values) + "\n"


def _policy_hash(text: str) -> str:
    """How a content security policy names a script or style of the page."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(data_folder("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {"duration": duration, "moment": moment, "size": size_text, "counted": counted}
    environment.filters["breakable"] = _breakable
    return environment


def _shown(value: Any) -> Any:
    """A text with its control characters and marks of direction as escapes; other values, and HTML, unchanged."""
    return shown(value) if type(value) is str else value


def _breakable(name: str) -> Markup:
    """A name with places where a narrow page may break it: after the underscores, not in the middle of a version."""
    from markupsafe import Markup

    return Markup("_<wbr>").join(shown(name).split("_"))


def _text(name: str) -> str:
    return (data_folder("templates") / name).read_text(encoding="utf-8")


def shortened(text: str) -> str:
    """The first part of a text that is too long for a page, with a note; a text that is not, unchanged."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}\n… ({len(text) - _LONGEST_TEXT} more characters; --json has all)"
