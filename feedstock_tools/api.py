"""The library in one place: what bots and other programs need to read, rerender, rehearse and explain feedstocks.

Functions over values: nothing is written before `Changes.apply`, nothing of this process's environment is looked at,
and nothing is kept between calls but caches of texts that were parsed. docs/library.md tells of each with examples.
What solves environments or reads channels is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from feedstock_tools.errors import FeedstockError, InputError, Mistake, WorkError
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configurations.configuration import Configuration, read_configurations
from feedstock_tools.rerender.configurations.write import Changes
from feedstock_tools.rerender.outputs import PackageFile, output_files
from feedstock_tools.rerender.rerendering import Rerender, rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.why.model import Explanation, Place, Setting, Use, ValueOrigin
from feedstock_tools.rerender.why.reasons import explain

if TYPE_CHECKING:
    from feedstock_tools.channel.missing import lacking
    from feedstock_tools.check.rehearsal.model import Environment, Pick, Rehearsal
    from feedstock_tools.check.rehearsal.of_feedstock import rehearse_configurations as rehearse

__all__ = [
    "Changes",
    "Configuration",
    "Environment",
    "Explanation",
    "FeedstockError",
    "InputError",
    "Mistake",
    "PackageFile",
    "Pick",
    "Place",
    "Platform",
    "Rehearsal",
    "Rerender",
    "Rules",
    "Setting",
    "Use",
    "ValueOrigin",
    "WorkError",
    "explain",
    "lacking",
    "output_files",
    "read_configurations",
    "rehearse",
    "rerender",
]

#: Where the names live that are imported when they are asked for.
_LATER = {
    "Environment": ("feedstock_tools.check.rehearsal.model", "Environment"),
    "Pick": ("feedstock_tools.check.rehearsal.model", "Pick"),
    "Rehearsal": ("feedstock_tools.check.rehearsal.model", "Rehearsal"),
    "lacking": ("feedstock_tools.channel.missing", "lacking"),
    "rehearse": ("feedstock_tools.check.rehearsal.of_feedstock", "rehearse_configurations"),
}


if not TYPE_CHECKING:  # type checkers are to complain of names that are not there

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _LATER[name]
        found = globals()[name] = getattr(import_module(module), attribute)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
