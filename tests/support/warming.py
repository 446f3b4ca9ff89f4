"""What the processes that `forking` forks have imported and made before."""

from __future__ import annotations

import importlib.metadata
import pkgutil

from jinja2 import Environment

import feedstock_tools
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.packages import read_packages
from feedstock_tools.facts.tools import read_tools
from feedstock_tools.generate import read_spec, render
from feedstock_tools.generate.texts.rendering import RECIPE_FILES
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.model import Release
from tests.support.forked import WORKERS
from tests.support.paths import EXAMPLES

#: Modules that commands import late, and often: none of them starts a thread.
_LATE = ("encodings.unicode_escape", "networkx", "rattler", "rattler.exceptions", "rattler.package_streaming")


def import_all() -> None:
    """Import the modules that commands and `WORKERS` import, those of other processes and whole programs left out."""
    for module in pkgutil.walk_packages(feedstock_tools.__path__, "feedstock_tools."):
        if not module.name.endswith(("worker", "__main__")):
            importlib.import_module(module.name)
    importlib.import_module("feedstock_tools.builds.plan.workspace")._own_stamp()
    importlib.import_module("feedstock_tools.feedstock.up_to_date")._own_digest()
    for name in (*WORKERS, *_LATE, "rattler_build"):
        importlib.import_module(name)
    importlib.metadata.version("py-rattler-build")  # imports a parser of messages
    _make_what_is_kept()


def _make_what_is_kept() -> None:
    """Make what many commands make and keep: facts, the graph of these, compiled templates, and lexers of Jinja."""
    read_tools()
    read_packages()
    graph_of_facts(load_cuda()).bounds_of(Release("cuda", ""))
    spec = read_spec(EXAMPLES / "gpuprobe")
    for recipe_format in RECIPE_FILES:
        render(spec, recipe_format)
    for keeps_newline in (False, True):
        assert Environment(keep_trailing_newline=keeps_newline, autoescape=True).lexer
