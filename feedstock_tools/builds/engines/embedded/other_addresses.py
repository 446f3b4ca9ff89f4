"""Source archives of PyPI that only pip's indexes have here: the addresses that a build takes them from.

A recipe has the address that leads to the file on PyPI (`https://pypi.org/packages/source/…`). A mirror of the index
has it under another, which the engine gets beside it, and the recipe of the package records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from feedstock_tools.channel.http import NoAnswerError, ask
from feedstock_tools.channel.package_index import is_source_of_pypi, listed_source
from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.written.document import Document, Part, TextEdit, read_document
from feedstock_tools.recipe.written.owners import written_sources
from feedstock_tools.recipe.written.variables import expand

_SECONDS = 10


def other_addresses(recipe: Path, fetched: Path, machine: Mapping[str, str]) -> dict[str, str]:
    """The source archives of PyPI in a recipe that do not answer there, each with its address in an index of pip.

    Args:
        fetched: the engine's folder of fetched sources; those in it are left out.
        machine: the environment, which names the indexes.
    """
    found = {}
    with suppress(FeedstockError):  # an index that cannot be read, too
        addresses = {address for _, address in _addresses(read_document(recipe, within=None))}
        for address in set(filter(is_source_of_pypi, addresses)) - _fetched(fetched):
            if not _answers(address) and (archive := listed_source(address, machine)):
                found[address] = archive.url
    return found


def with_other_addresses(text: str, recipe: Path, others: Mapping[str, str]) -> str:
    """The text of a recipe whose sources have a second address where `others` gives one."""
    if not others:
        return text
    document = Document(recipe, text)
    return document.changed(
        TextEdit(leaf.start, leaf.end, json.dumps([leaf.text, others[address]]))
        for leaf, address in _addresses(document)
        if address in others
    ).text


def _addresses(document: Document) -> Iterator[tuple[Part, str]]:
    """The sources with one address, and the address as the recipe alone tells it."""
    for source in written_sources(document):
        for entry in source.below("url"):
            if entry.value.kind == "scalar" and (address := expand(document, entry.value.text, {})):
                yield entry.value, address


def _fetched(folder: Path) -> set[str]:
    """The addresses of the sources that the engine keeps."""
    found = set()
    for path in folder.glob(".metadata/*.json"):
        with suppress(OSError, ValueError, AttributeError):
            found.add(str(json.loads(path.read_bytes()).get("url")))
    return found


def _answers(address: str) -> bool:
    try:
        return ask(address, seconds=_SECONDS, method="HEAD").status < 400
    except NoAnswerError:
        return False
