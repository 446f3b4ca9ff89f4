"""The text of the product is plain English: phrases that read as translated do not come back."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Regular expression, from the beginning of a word → what to write instead.
ODD = {
    r"(?:is|are) to be (?!found|expected)": "must be",
    r"(?:to be|can be|cannot be|are|is) had\b": "available, installed, incompatible",
    r"(?:that|it) is none\b(?! of)": "invalid; say what it must be",
    r"or is none\b": "invalid",
    r"is no (?:time|amount|name|version|valid|demand|mapping|package|recipe|number|YAML)\b": "is not a …",
    r"is no (?:kind|SPDX|mistake)\b": "is not a …",
    r"so many\b": "up to N, the maximum number of …",
    r"(?:is|are|was|were) (?:not )?looked (?:at|for|whether)\b": "checks, reads, searches",
    r"of that follows\b": "this determines",
    r"(?:is|are) told\b": "is called with, reports; name the option",
    r"told (?:by|of|at once|apart)\b": "by, reported, distinguished",
    r"tells? (?:of|from|apart)\b": "describes, reports, distinguishes",
    r"what there is\b": "name the things",
    r"what was (?:fetched|asked|typed|said|meant)\b": "the fetched …, the requested …, the command line",
    r"what is (?:meant|there|said|told)\b": "name the things",
    r"(?:that|which|who) (?:is|are|was|were) asked for\b": "the requested …",
    r"(?:away with|nobody knows|nobody can tell)\b": "remove; unknown",
    r"(?:be the|is no) reason\b": "is not a reason",
    r"at hand\b": "available",
    r"brought up to date\b": "updated",
    r"held against\b": "compared with, checked against",
    r"holds? [\w ,`'-]{1,70} against\b": "compares with, checks against",
    r"made anew\b": "created again",
    r"(?:is|are|was|were) asked for\b": "requested; the command asks",
    r"as wide as\b(?! the widest)": "name the factor or limit",
    r"to say so\b": "say what follows, or what to do",
    r"none but\b": "only",
    r"what is to\b": "name the things; must be",
    r"wished for\b": "requested",
    r"(?:is|are|was|were) laid on\b": "is applied to",
}
#: Texts that are as they must be: contents of packages and recipes, records of the ledger, other programs' messages.
KEPT = re.compile(r"Packages of this environment lie here")
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        ROOT / "benchmarks" / "README.md",
        *(path for path in (ROOT / ".github").rglob("*") if path.is_file()),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("examples/*/README.md"),
        *ROOT.glob("templates/*"),
    ]
)
FOLDERS = ("feedstock_tools", "tests", "maintenance", "benchmarks")
#: This module has the phrases as examples.
MODULES = sorted({path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")} - {Path(__file__).resolve()})
#: The letters that the expressions begin with; the rest of them is tried only there.
_FIRST = {
    word[0] for odd in ODD for word in odd.removeprefix("(?:").partition(")" if odd[0] == "(" else " ")[0].split("|")
}
_ANY = re.compile(rf"\b(?=[{''.join(sorted(_FIRST))}])(?:{'|'.join(ODD)})", re.IGNORECASE)
_COMMENT = re.compile("#:?(.*)")


def texts_of(module: Path) -> Iterator[str]:
    """The comments and string literals of a module, each in one line; of an f-string, the parts between the values."""
    text = module.read_text(encoding="utf-8")
    found = _COMMENT.findall(text)
    found += _literals(compile(text, str(module), "exec", dont_inherit=True).co_consts)
    return (" ".join(text.split()) for text in found)


def _literals(constants: Iterable[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from _literals(constant)
        elif isinstance(constant, CodeType):
            yield from _literals(constant.co_consts)


def odd_in(text: str) -> str | None:
    found = None if KEPT.search(text) else _ANY.search(text)
    return found and found[0]


def test_odd_phrases_are_found() -> None:
    for phrase in ("x is to be a list", "cannot be had together", "a recipe that is none", "'x' is no time", "so many"):
        assert odd_in(phrase), phrase
    for phrase in ("x must be a list", "are incompatible", "an invalid recipe", "is not a valid duration", "up to 3"):
        assert not odd_in(phrase), phrase


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_in_plain_english(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = [(number, odd_in(line)) for number, line in enumerate(text.splitlines(), 1)]
    assert not [f"{page.name}: {found}" for _, found in lines if found]


def test_the_code_is_in_plain_english() -> None:
    assert all(letter.isalpha() for letter in _FIRST)
    found = [
        f"{module.relative_to(ROOT)}: {odd} (write: {text[:90]}…)"
        for module in MODULES
        if _ANY.search("\n".join(texts := list(texts_of(module))))
        for text in texts
        if (odd := odd_in(text))
    ]
    assert not found, "\n".join(found)
