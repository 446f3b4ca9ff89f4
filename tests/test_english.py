"""The text of the product is plain English: phrases that read as translated do not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Regular expression → what to write instead.
ODD = {
    r"(?:is|are) to be (?!found|expected)": "must be",
    r"(?:to be|can be|cannot be|are|is) had\b": "available, installed, incompatible",
    r"(?:that|it) is none\b(?! of)": "invalid; say what it must be",
    r"\bor is none\b": "invalid",
    r"\bis no (?:time|amount|name|version|valid|demand|mapping|package|recipe|number|YAML)\b": "is not a …",
    r"\bso many\b": "up to N, the maximum number of …",
    r"\b(?:is|are) looked (?:at|for|whether)\b": "checks, reads, searches",
    r"\bof that follows\b": "this determines",
    r"\b(?:is|are) told\b(?! to\b)": "reports, is called with",
    r"\btold (?:by|of|at once|apart)\b": "by, reported, distinguished",
    r"\btells? (?:of|from|apart)\b": "describes, reports, distinguishes",
    r"\bwhat there is\b": "name the things",
    r"\bwhat was (?:fetched|asked|typed|said|meant)\b": "the fetched …, the requested …, the command line",
    r"\bwhat is (?:meant|there|said|told)\b": "name the things",
    r"\b(?:that|which|who) (?:is|are|was|were) asked for\b": "the requested …",
    r"\b(?:away with|nobody knows|nobody can tell)\b": "remove; unknown",
    r"\bbe the reason\b|\bis no reason\b": "is not a reason",
    r"\bat hand\b": "available",
    r"\bbrought up to date\b": "updated",
    r"\bheld against\b": "compared with, checked against",
    r"\bmade anew\b": "created again",
    r"\b(?:is|are|was|were) asked for\b": "requested; the command asks",
    r"\bas wide as\b(?! the widest)": "name the factor or limit",
}
#: Texts that are as they must be: contents of packages and recipes, records of the ledger, other programs' messages.
KEPT = re.compile(r"Packages of this environment lie here")
DOCUMENTS = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")),
        *(path for path in (ROOT / ".github").rglob("*") if path.is_file()),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("examples/*/README.md"),
        *ROOT.glob("templates/*"),
    ]
)
FOLDERS = ("feedstock_tools", "tests", "maintenance", "benchmarks")
#: This module has the phrases as examples.
MODULES = sorted({path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")} - {Path(__file__).resolve()})
_ANY = re.compile("|".join(f"(?:{pattern})" for pattern in ODD), re.IGNORECASE)


def texts_of(module: Path) -> Iterator[tuple[int, str]]:
    """The string literals and comments of a module: the line each begins at, and its words in one line."""
    source = module.read_text(encoding="utf-8")
    for number, line in enumerate(source.splitlines(), 1):
        _, sign, comment = line.partition("#")
        if sign:
            yield number, " ".join(comment.removeprefix(":").split())
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())
        elif isinstance(node, ast.JoinedStr):
            words = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
            yield node.lineno, " ".join(words.split())


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
    found = [
        f"{module.relative_to(ROOT)}:{line}: {odd} (write: {text[:90]}…)"
        for module in MODULES
        for line, text in texts_of(module)
        if (odd := odd_in(text))
    ]
    assert not found, "\n".join(found)
