"""Publishing to services: what they have is left, what they refuse is reported, and nobody sees a key or a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.channel.metadata import PackageFile
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.packages.reading import read_package
from feedstock_tools.channel.targets import parse_target
from feedstock_tools.errors import WorkError
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.publishing import BUILT, KEY, publish, results
from tests.support.services import KEYS, SPOKEN, served


@pytest.mark.parametrize("kind", sorted(SPOKEN))
def test_a_service_gets_what_an_interrupted_run_left(kind: str, gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with served(kind, tmp_path / "served") as service:
        arguments = (f"{kind}:mine", BUILT, "--server", service.url, "--json")
        service.limit = 1
        first = publish(gpu_feedstock, *arguments, **{KEYS[kind]: KEY})
        assert first.returncode == 1
        assert "refused" in first.stderr
        service.limit = None
        assert results(publish(gpu_feedstock, *arguments, **{KEYS[kind]: KEY})) == {"there", "published"}
        assert sorted(service.received) == gpu_feedstock.packages()
        assert {key.removeprefix("Bearer ").removeprefix("token ") for key in service.keys} == {KEY}
        assert KEY not in first.stdout + first.stderr


@pytest.mark.parametrize(
    ("kind", "same", "shown", "status", "said"),
    [
        ("anaconda", True, True, 0, "  there\n"),
        ("quetz", True, True, 0, "  there\n"),
        ("quetz", False, True, 1, "has a different package of this name"),
        ("prefix", True, False, 0, "there, not verified"),
        ("quetz", True, False, 1, "refused"),  # whose answer does not get through rattler-build
    ],
)
def test_a_name_that_a_service_has_and_does_not_list_yet(
    kind: str, same: bool, shown: bool, status: int, said: str, gpu_feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    (tmp_path / "served").mkdir()
    built = next(gpu_feedstock.artifacts.glob(f"{HERE.subdir}/*.conda"))
    other = write_package(tmp_path, read_package(built), [PackageFile("other", b"")])
    with served(kind, tmp_path / "served") as service:
        service.packages[built.name] = (built if same else other).read_bytes()
        service.listing, service.shown = False, shown
        run = publish(gpu_feedstock, f"{kind}:mine", BUILT, "--server", service.url, **{KEYS[kind]: KEY})
    assert run.returncode == status, run.stderr
    assert said in run.stdout + run.stderr


def test_a_server_that_wants_a_password_gets_it_from_its_url(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with served("quetz", tmp_path / "served") as service:
        service.login = "me:wo@rd-that-nobody-sees"
        guarded = service.url.replace("://", "://me:wo%40rd-that-nobody-sees@")
        runs = [
            publish(gpu_feedstock, "quetz:mine", BUILT, "--server", server, "--json", QUETZ_API_KEY=KEY)
            for server in (service.url, guarded, guarded)
        ]
    assert (runs[0].returncode, "401" in runs[0].stderr) == (1, True), runs[0].stderr
    assert [results(run) for run in runs[1:]] == [{"published"}, {"there"}]
    assert service.keys == {KEY}
    said = "".join(run.stdout + run.stderr for run in runs)
    assert not any(secret in said for secret in (KEY, "rd-that-nobody-sees"))
    ledger = (gpu_feedstock.artifacts / "ledger.sqlite").read_bytes()
    assert b"rd-that-nobody-sees" not in ledger


def test_a_library_call_shows_no_password_of_a_server(tmp_path: Path) -> None:
    target = parse_target("prefix:mine", "http://me:word-nobody-sees@127.0.0.1:1", {"PREFIX_API_KEY": KEY}, tmp_path)
    assert "nobody-sees" not in repr(target)
    with pytest.raises(WorkError) as caught:
        target.there(["noarch/a-1-0.conda"])
    assert "nobody-sees" not in str(caught.value)


def test_a_service_needs_a_key(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with served("prefix", tmp_path / "served") as service:
        run = publish(gpu_feedstock, "prefix:mine", BUILT, "--server", service.url, HOME=str(tmp_path))
    assert run.returncode == 1
    assert "API key" in run.stderr
