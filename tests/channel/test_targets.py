"""Targets to publish to, and texts that only look like a folder."""

from pathlib import Path

import pytest

from feedstock_tools.channel.targets import parse_target
from feedstock_tools.errors import InputError


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("prefix.dev/me", "Write prefix:me."),
        ("https://prefix.dev/me/", "Write prefix:me."),
        ("https://prefix.dev", "Write prefix:CHANNEL."),
        ("conda.anaconda.org/me/label/dev", "Write anaconda:me/dev."),
        ("https://anaconda.org/me", "Write anaconda:me."),
        ("example.org/channel", "For a folder write ./example.org/channel."),
        ("conda-forge", "A target is a folder, file://"),
        ("https://example.org/channel", "A target is a folder, file://"),
        ("stand-in", "Publish packages built on it to a folder of their own"),
    ],
)
def test_the_name_of_a_channel_is_no_folder(text: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        parse_target(text, None, {}, tmp_path)
    assert hint in str(raised.value.mistakes[0].hint)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["./prefix.dev/me", "channel", "../channel", "a/b"])
def test_a_folder_may_be_named_before_it_exists(text: str, tmp_path: Path) -> None:
    assert parse_target(text, None, {}, tmp_path).name == (tmp_path / text).resolve().as_uri()


def test_a_folder_that_exists_is_one_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "prefix.dev" / "me").mkdir(parents=True)
    assert parse_target("prefix.dev/me", None, {}, tmp_path).name == (tmp_path / "prefix.dev" / "me").as_uri()
