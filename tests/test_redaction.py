"""Secrets in the output of programs: replaced wherever a block of it ends."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from feedstock_tools.redaction import Redaction, redacted, secrets_in, secrets_in_file

SECRETS = ["sesame-sesame", "sesame-sesame-of-the-second", "line one\nline two", "tail-tail-tail\n"]
#: Output → the same without its secrets.
OUTPUTS = {
    b"key=sesame-sesame.": b"key=***.",
    b"sesame-sesame-of-the-second": b"***",
    b"sesame-sesame-of-the-": b"***-of-the-",
    b"a line one\nline two b": b"a *** b",
    b"a line one\nline three\n": b"a line one\nline three\n",
    b"get https://me:word@example.org/x\n": b"get https://***@example.org/x\n",
    b"HTTPS://me:wo@rd@example.org/x": b"HTTPS://***@example.org/x",
    b"https://onlytoken@example.org": b"https://***@example.org",
    b"ssh://git@example.org/a:b ftp://me:word@example.org": b"ssh://git@example.org/a:b ftp://***@example.org",
    b"https://example.org/t/ab-12/channel https://h/t/cd-34": b"https://example.org/t/***/channel https://h/t/***",
    b"/usr/t/plain/x and https://a.b /t/plain/": b"/usr/t/plain/x and https://a.b /t/plain/",
    b"https://pypi.org/packages/source/t/tibs/tibs-1.tar.gz": b"https://pypi.org/packages/source/t/tibs/tibs-1.tar.gz",
    b"https://pypi.org/packages/source/t/tibs/t/ab-12/x": b"https://pypi.org/packages/source/t/tibs/t/***/x",
    b"caf\xe9 sesame%2Dsesame sesame-sesame\xff": b"caf\xe9 sesame%2Dsesame ***\xff",
    b"tail-tail-tail\nrest": b"***rest",
    b"tail-tail-tail": b"tail-tail-tail",
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_secret_is_found_wherever_the_output_is_split(output: bytes) -> None:
    for cut in range(len(output) + 1):
        for second in range(cut, len(output) + 1, 7):
            redaction = Redaction(SECRETS)
            parts = output[:cut], output[cut:second], output[second:]
            assert b"".join(map(redaction.feed, parts)) + redaction.flush() == OUTPUTS[output], (cut, second)


def test_output_without_secrets_is_unchanged_and_whole_lines_are_not_held_back() -> None:
    redaction = Redaction(SECRETS)
    chance = random.Random(1)  # noqa: S311
    for _ in range(200):
        line = chance.randbytes(chance.randrange(200)).replace(b"s", b"").replace(b"l", b"").replace(b"t", b"") + b"\n"
        assert redaction.feed(line) == line


def test_a_value_quoted_for_a_url_is_a_secret_too() -> None:
    redaction = Redaction(["pass word/123"])
    assert redaction.feed(b"curl https://example.org/?key=pass%20word%2F123\n").endswith(b"key=***\n")


@pytest.mark.parametrize(
    "output",
    [b"/t/" * 300_000, b"https://" * 100_000, b"a" * 1_000_000, b"https://" + b"@" * 1_000_000, b"s" * 1_000_000],
    ids=["tokens", "schemes", "one word", "signs", "beginnings"],
)
def test_hostile_output_is_read_at_a_bearable_speed(output: bytes) -> None:
    redaction = Redaction([*SECRETS, "s" * 5000])
    began = time.process_time()
    for at in range(0, len(output), 1 << 16):
        redaction.feed(output[at : at + (1 << 16)])
    redaction.flush()
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("https://me:wo@rd@example.org/", "https://***@example.org/"),
        ("https://example.org/t/ab-12", "https://example.org/t/***"),
        ("https://example.org/source/t/ab-12/x", "https://example.org/source/t/***/x"),
        ("https://example.org/t/tk-12/source/t/tibs/x", "https://example.org/t/***/source/t/tibs/x"),
        ("mail me@example.org", "mail me@example.org"),
        ("https://example.org/?q=me@x", "https://example.org/?q=me@x"),
    ],
)
def test_urls_in_messages(text: str, plain: str) -> None:
    assert redacted(text) == plain
    assert redacted(plain) == plain


@pytest.mark.parametrize(
    "address",
    [
        "https://pypi.org/packages/source/t/tibs/tibs-1.0.tar.gz",
        "https://pypi.org/packages/source/t/${{ name }}/${{ name }}-${{ version }}.tar.gz",
        "https://deb.debian.org/debian/pool/main/t/tiff/tiff_4.7.0.orig.tar.xz",
    ],
)
def test_the_address_of_a_source_whose_name_begins_with_t_is_printed_whole(address: str) -> None:
    assert redacted(address) == address
    assert Redaction(SECRETS).text(address) == address
    assert secrets_in(address, {}) == {}


def test_secrets_of_a_large_file_are_found_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    filler = b"caf\xe9 @ nothing of interest\n" * 200_000
    with path.open("wb") as stream:
        stream.write(filler)
        stream.write(b"get https://me:word@example.org/\n")
        stream.write(b"x" * 9_000_000 + b" sesame-sesame " + b"x" * 9_000_000 + b"\n")
        stream.write(b"https://example.org/t/ab-12/x\n")
    found = secrets_in_file(path, {"KEY": "sesame-sesame", "OTHER": "not in it"})
    assert found == {"a password in a URL": 200_001, "the value of KEY": 200_002, "a token in a URL": 200_003}
