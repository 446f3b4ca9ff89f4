"""Which channels a build uses, and when it uses the stand-in channel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.builds.channels import ChannelIdentities, choose_channels
from feedstock_tools.channel.properties import REAL, STAND_IN, Channels
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.layout import Artifacts


def silent(*names: str) -> Callable[[str], str | None]:
    """A network in which some channels do not answer."""
    return lambda channel: "it answers with HTTP status 503" if channel in names else None


def identity_of(channel: str) -> str:
    return ChannelIdentities({}).of(Channels((channel,)), "linux-64").contents


def test_the_configuration_names_the_channels(tmp_path: Path) -> None:
    choice = choose_channels((), ("conda-forge", "nvidia"), Artifacts(tmp_path), silent())
    assert (choice.names, choice.properties) == (("conda-forge", "nvidia"), REAL)


def test_channels_that_are_given_replace_them(tmp_path: Path) -> None:
    assert choose_channels(("mine",), ("conda-forge",), Artifacts(tmp_path), silent()).names == ("mine",)


def test_the_stand_in_channel_is_used_where_no_channel_answers(tmp_path: Path) -> None:
    choice = choose_channels((), (), Artifacts(tmp_path), silent("conda-forge"))
    assert choice.properties == STAND_IN
    assert choice.why == "no channel can be reached (conda-forge: it answers with HTTP status 503)"


def test_a_channel_that_was_given_and_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="cannot reach mine: it answers with HTTP status 503"):
        choose_channels(("mine",), (), Artifacts(tmp_path), silent("mine"))


def test_part_of_the_channels_is_not_enough(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="cannot reach nvidia"):
        choose_channels((), ("conda-forge", "nvidia"), Artifacts(tmp_path), silent("nvidia"))


def test_the_stand_in_channel_is_not_mixed_with_real_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be mixed"):
        choose_channels(("stand-in", "conda-forge"), (), Artifacts(tmp_path), silent())


def test_a_folder_without_repodata_is_not_a_channel(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match=r"no noarch/repodata\.json"):
        choose_channels((str(tmp_path),), (), Artifacts(tmp_path))


def test_a_local_channel_is_another_when_its_packages_change(tmp_path: Path) -> None:
    repodata = tmp_path / "noarch" / "repodata.json"
    repodata.parent.mkdir()
    repodata.write_text("{}")
    before = identity_of(str(tmp_path))
    assert identity_of(tmp_path.as_uri()) == before
    repodata.write_text('{"packages": {}}')
    assert identity_of(str(tmp_path)) != before


def test_a_local_channel_is_known_by_its_packages_wherever_it_is(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name / "noarch").mkdir(parents=True)
        (tmp_path / name / "noarch" / "repodata.json").write_text("{}")
    here, there = (identity_of(str(tmp_path / name)) for name in ("here", "there"))
    assert here == there
    (tmp_path / "there" / "noarch").rename(tmp_path / "there" / "linux-64")
    assert identity_of(str(tmp_path / "there")) != here


def test_a_remote_channel_is_known_by_its_address() -> None:
    assert identity_of("conda-forge") == identity_of("https://conda.anaconda.org/conda-forge")
    assert identity_of("conda-forge") != identity_of("bioconda")
