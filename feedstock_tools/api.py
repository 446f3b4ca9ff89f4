"""The library in one place: each arrow from a spec to packages as one function, and the values that they take and give.

Functions over values: nothing is written but by a value's `apply` and by the functions that build, test, publish and
collect. None prints, reads `sys.argv` or looks at this process's environment. docs/library.md describes all of them,
with examples. Everything is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from feedstock_tools.channel.missing import lacking
    from feedstock_tools.check.against_facts import Finding
    from feedstock_tools.check.against_facts import check_feedstock as check
    from feedstock_tools.check.rehearsal.model import Environment, Pick, Rehearsal
    from feedstock_tools.check.rehearsal.of_feedstock import rehearse_configurations as rehearse
    from feedstock_tools.errors import FeedstockError, InputError, Mistake, WorkError
    from feedstock_tools.generate.applying import Change
    from feedstock_tools.generate.generating import Generated, generate
    from feedstock_tools.pins.graph.asking import Answer, resolve
    from feedstock_tools.pins.graph.demands import Demand
    from feedstock_tools.pins.graph.explain import Conflict
    from feedstock_tools.platforms import Platform
    from feedstock_tools.rerender.configurations.configuration import Configuration, read_configurations
    from feedstock_tools.rerender.configurations.write import Changes
    from feedstock_tools.rerender.outputs import PackageFile
    from feedstock_tools.rerender.outputs import output_files as outputs
    from feedstock_tools.rerender.rerendering import Rerender, rerender
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.why.model import Explanation, Place, Setting, Use, ValueOrigin
    from feedstock_tools.rerender.why.reasons import explain

__all__ = [
    "Answer",
    "Change",
    "Changes",
    "Configuration",
    "Conflict",
    "Demand",
    "Environment",
    "Explanation",
    "FeedstockError",
    "Finding",
    "Generated",
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
    "check",
    "explain",
    "generate",
    "lacking",
    "outputs",
    "read_configurations",
    "rehearse",
    "rerender",
    "resolve",
]

#: Module → the names that it gives the library; `name=other` where it has another name there.
_WHERE = {
    "channel.missing": "lacking",
    "check.against_facts": "Finding check=check_feedstock",
    "check.rehearsal.model": "Environment Pick Rehearsal",
    "check.rehearsal.of_feedstock": "rehearse=rehearse_configurations",
    "errors": "FeedstockError InputError Mistake WorkError",
    "generate.applying": "Change",
    "generate.generating": "Generated generate",
    "pins.graph.asking": "Answer resolve",
    "pins.graph.demands": "Demand",
    "pins.graph.explain": "Conflict",
    "platforms": "Platform",
    "rerender.configurations.configuration": "Configuration read_configurations",
    "rerender.configurations.write": "Changes",
    "rerender.outputs": "PackageFile outputs=output_files",
    "rerender.rerendering": "Rerender rerender",
    "rerender.rules": "Rules",
    "rerender.why.model": "Explanation Place Setting Use ValueOrigin",
    "rerender.why.reasons": "explain",
}
_NAMES = {
    name: (f"feedstock_tools.{module}", other or name)
    for module, names in _WHERE.items()
    for name, _, other in (each.partition("=") for each in names.split())
}


if not TYPE_CHECKING:  # type checkers must report unknown names

    def __getattr__(name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _NAMES[name]
        found = globals()[name] = getattr(import_module(module), attribute)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
