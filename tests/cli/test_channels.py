"""Commands that read channels know the names that `build` knows."""

import json
from pathlib import Path

import pytest

from tests.support import command


@pytest.mark.parametrize(
    "words",
    [
        ("search", "cudnn", "--platform", "linux-64"),
        ("gpu", "cudnn", "--model", "V100", "--platform", "linux-64"),
        ("cuda", "show", "12"),
        ("cuda", "resolve", "cuda=12"),
    ],
    ids=" ".join,
)
def test_the_stand_in_channel_can_be_read(words: tuple[str, ...], tmp_path: Path) -> None:
    run = command.run(command.tool(*words, "-c", "stand-in", "--json"), tmp_path)
    assert run.returncode == 0, run.stderr
    assert "cudnn" in json.dumps(json.loads(run.stdout)).lower()
    assert run.stderr.startswith("Reading the STAND-IN channel")


def test_the_stand_in_channel_is_not_mixed_with_real_ones(tmp_path: Path) -> None:
    run = command.run(command.tool("search", "cudnn", "-c", "stand-in", "-c", "conda-forge"), tmp_path)
    assert run.returncode == 2
    assert "the stand-in channel cannot be mixed with real channels" in run.stderr


def test_the_stand_in_channel_has_no_pinning(tmp_path: Path) -> None:
    run = command.run(command.tool("pinning", "fetch", "-c", "stand-in"), tmp_path)
    assert run.returncode == 2
    assert "the stand-in channel has no pinning" in run.stderr
