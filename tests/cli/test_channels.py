"""Commands that read channels know the names that `build` knows."""

import json
from pathlib import Path

import pytest

from feedstock_tools.channel.repodata import UnreadChannelError
from feedstock_tools.cli import program
from feedstock_tools.errors import WorkError
from feedstock_tools.pins import channels
from feedstock_tools.pins.graph import answers
from tests.support import command


@pytest.mark.parametrize(
    "words",
    [
        ("cuda", "search", "cudnn", "--platform", "linux-64"),
        ("cuda", "gpu", "cudnn", "--model", "V100", "--platform", "linux-64"),
        ("cuda", "show", "12"),
        ("cuda", "resolve", "cuda=12"),
    ],
    ids=" ".join,
)
def test_the_stand_in_channel_can_be_read(words: tuple[str, ...], tmp_path: Path) -> None:
    run = command.here(*words, "-c", "stand-in", "--json", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "cudnn" in json.dumps(json.loads(run.stdout)).lower()
    assert run.stderr.startswith("Reading the STAND-IN channel")


@pytest.mark.parametrize(
    "words",
    [("cuda", "search", "numpy"), ("cuda", "gpu", "cudnn", "--model", "V100"), ("cuda", "resolve", "cuda=12")],
    ids=" ".join,
)
def test_without_a_channel_the_stand_in_is_suggested(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(url: str, _subdirs: object) -> None:
        raise UnreadChannelError(f"cannot read the repodata of {url}: refused")

    for reader in (channels, answers):
        monkeypatch.setattr(reader, "read_records", refused)
    with pytest.raises(WorkError) as raised:
        program._group.main([*words, "--channel", "conda-forge"], standalone_mode=False)
    assert str(raised.value) == (
        "cannot read the repodata of https://conda.anaconda.org/conda-forge: refused\n"
        "  Use --channel stand-in to read one that is made on the spot."
    )


def test_the_stand_in_channel_is_not_mixed_with_real_ones(tmp_path: Path) -> None:
    run = command.here("cuda", "search", "cudnn", "-c", "stand-in", "-c", "conda-forge", folder=tmp_path)
    assert run.returncode == 2
    assert "the stand-in channel cannot be mixed with real channels" in run.stderr


def test_the_stand_in_channel_has_no_pinning(tmp_path: Path) -> None:
    run = command.here("pinning", "fetch", "-c", "stand-in", folder=tmp_path)
    assert run.returncode == 2
    assert "the stand-in channel has no pinning" in run.stderr
