"""Newer facts that a user takes: checked, kept, named beside answers, and undone."""

from __future__ import annotations

import hashlib
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import pytest

from feedstock_tools.cli import program
from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts import content, updates
from feedstock_tools.facts.content import content_of


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheels.yaml whose torch ends with a release that ours lacks; the user's cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = (data_folder("variants") / "wheels.yaml").read_text(encoding="utf-8")
    path = tmp_path / "wheels.yaml"
    path.write_text(text.replace("version: 2.15.0,", "version: 2.99.0,", 1), encoding="utf-8")
    return path


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def newest() -> str:
    return str(content_of("wheels.yaml")["wheels"]["torch"][-1]["version"])


def test_an_update_is_used_and_named_until_it_is_reset(newer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(content, "say_aside", said.append)
    taken = updates.update(str(newer), sha256_of(newer).upper())
    assert (newest(), updates.updates()) == ("2.99.0", [taken])
    assert said == [f"facts: wheels.yaml of {newer}, {taken.date}"]
    updates.reset()
    assert (newest(), updates.updates()) == ("2.15.0", [])


def test_an_update_of_another_release_is_not_read(newer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    updates.update(str(newer), sha256_of(newer))
    monkeypatch.setattr(content, "__version__", "99.0")
    assert newest() == "2.15.0"


@pytest.mark.parametrize(
    ("source", "sha256", "message"),
    [
        ("wheels.yaml", None, "does not come over TLS"),
        ("http://example.org/wheels.yaml", "0" * 64, "does not come over TLS"),
        ("wheels.yaml", "0" * 64, "is not the file with that hash"),
        ("cuda.yaml", None, "is not a file of facts that can be updated"),
        ("broken/wheels.yaml", "own", "is missing"),
    ],
)
def test_what_is_not_a_file_of_facts_is_refused(newer: Path, source: str, sha256: str | None, message: str) -> None:
    (newer.parent / "broken").mkdir()
    (newer.parent / "broken" / "wheels.yaml").write_text("tested: {}\n", encoding="utf-8")
    path = source if "://" in source else str(newer.parent / source)
    with pytest.raises(InputError, match=message):
        updates.update(path, sha256_of(Path(path)) if sha256 == "own" else sha256)
    assert updates.updates() == []


def test_a_file_that_is_missing_is_an_error(newer: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        updates.update(str(newer.parent / "none" / "wheels.yaml"), "0" * 64)


def test_a_channel_gives_all_files_that_it_has_with_what_they_change(
    newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def content_of_address(source: str) -> bytes:
        if source == "https://example.org/facts/wheels.yaml":
            return newer.read_bytes()
        missing = HTTPError(source, 404, "Not Found", Message(), None)
        raise WorkError(f"'{source}' cannot be read") from missing

    monkeypatch.setattr(updates, "_content", content_of_address)
    (taken,) = updates.take("https://example.org/facts/", None)
    assert (taken.update.name, taken.came, taken.went) == ("wheels.yaml", 1, 1)
    assert newest() == "2.99.0"
    with pytest.raises(InputError, match="has none of the files of facts"):
        updates.take("https://example.org/other/", None)
    with pytest.raises(InputError, match="is not an address over TLS"):
        updates.take("http://example.org/facts/", None)


def test_the_command_takes_shows_and_resets(newer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*words: str) -> str:
        program._group.main(["cuda", "facts", *words], standalone_mode=False)
        return capsys.readouterr().out

    assert "none were updated" in printed()
    assert "wheels.yaml of " in printed("--update", str(newer), "--sha256", sha256_of(newer))
    assert "wheels.yaml of " in printed()
    assert "none were updated" in printed("--reset")
