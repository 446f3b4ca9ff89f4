"""conda-forge's pinning: fetched from a channel on loopback, kept, found again offline."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.channel.fetched import PINNING, Pinning, age_in_words, cached_pinnings, find_pinning, pinning_cache
from feedstock_tools.channel.fetching import available_packages, fetch_package
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.cli.fetched import pinning as command
from feedstock_tools.errors import FeedstockError, InputError, WorkError
from tests.support.serving import Files, serving

OLDEST, OLD, NEW = "2019.02.03.04.05.06", "2021.10.29.07.34.22", "2026.01.02.03.04.05"
MIGRATION = "share/conda-forge/migrations/python314.yaml"


def fetch_pinning(channel: str, cache: Path, version: str | None = None, *, seconds: float = 120) -> Pinning:
    return find_pinning(fetch_package(PINNING, channel, cache, version, seconds=seconds).folder, cache)


def metadata(version: str) -> PackageMetadata:
    return PackageMetadata("conda-forge-pinning", version, "hd8ed1ab_0", 0, "noarch", noarch="generic")


def write_tar_bz2(channel: Path, version: str, members: dict[str, bytes | str]) -> None:
    """A package of the old format; a `str` is the target of a link."""
    index = json.dumps(metadata(version).index_json()).encode()
    path = channel / "noarch" / f"conda-forge-pinning-{version}-hd8ed1ab_0.tar.bz2"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:bz2") as archive:
        for name, content in {"info/index.json": index, **members}.items():
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    """A folder with three pinnings, two of the old package format, and a package of another name."""
    folder = tmp_path / "channel"
    write_tar_bz2(folder, OLDEST, {"conda_build_config.yaml": b"python: [3.6]\n"})
    write_tar_bz2(folder, OLD, {"conda_build_config.yaml": b"python: [3.9]\n", MIGRATION: b"python: [3.10]\n"})
    files = [
        PackageFile("conda_build_config.yaml", b"python: [3.13]\n"),
        PackageFile(MIGRATION, b"python: [3.14]\n"),
        PackageFile("share/conda-forge/migrations/example.exyaml", b"{}\n"),
        PackageFile("etc/elsewhere", b"not a part of a pinning\n"),
    ]
    write_package(folder, metadata(NEW), files)
    write_package(folder, PackageMetadata("other", "1", "0", 0, "noarch", noarch="generic"))
    index_channel(folder)
    return folder


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serve a folder on loopback; `failing` are parts of paths that are answered with a status."""

    def start(folder: Path, failing: dict[str, HTTPStatus] | None = None) -> str:
        class Handler(Files):
            def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
                status = next((status for part, status in (failing or {}).items() if part in self.path), None)
                if status is None:
                    super().do_GET()
                else:
                    self.send_error(status)

        return stack.enter_context(serving(partial(Handler, directory=str(folder))))

    with ExitStack() as stack:
        yield start


def the_error(work: Callable[[], object]) -> str:
    with pytest.raises(FeedstockError) as caught:
        work()
    return str(caught.value)


def test_the_newest_pinning_is_fetched_and_kept_as_the_package_lays_it_out(
    channel: Path, tmp_path: Path, serve: Callable[..., str]
) -> None:
    url = serve(channel)
    pinning = fetch_pinning(url, tmp_path / "cache")
    assert (pinning.version, pinning.channel) == (NEW, url)
    assert pinning.path.read_bytes() == b"python: [3.13]\n"
    assert [path.relative_to(pinning.folder).as_posix() for path in pinning.migrations] == [MIGRATION]
    assert not (pinning.folder / "etc").exists()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [NEW]


@pytest.mark.parametrize("version", [OLD, "2021.10.29.7.34.22"])
def test_a_given_version_is_fetched(version: str, channel: Path, tmp_path: Path, serve: Callable[..., str]) -> None:
    pinning = fetch_pinning(serve(channel), tmp_path / "cache", version)
    assert pinning.version == OLD
    assert pinning.path.read_bytes() == b"python: [3.9]\n"


def test_a_channel_may_be_a_folder(channel: Path, tmp_path: Path) -> None:
    assert fetch_pinning(str(channel), tmp_path / "cache").version == NEW
    assert [record.version for record in available_packages(PINNING, str(channel))] == [OLDEST, OLD, NEW]


def test_what_was_fetched_before_needs_no_channel(channel: Path, tmp_path: Path, serve: Callable[..., str]) -> None:
    cache = tmp_path / "cache"
    fetched = [fetch_pinning(serve(channel), cache, version) for version in (NEW, OLD)]
    assert fetch_pinning("http://127.0.0.1:1", cache, OLD) == fetched[1]
    assert cached_pinnings(cache) == (fetched[1], fetched[0])
    assert find_pinning(None, cache) == fetched[0]
    assert find_pinning("2021.10.29.7.34.22", cache) == fetched[1]
    assert find_pinning(fetched[1].folder, cache) == fetched[1]


def test_a_version_of_another_channel_takes_the_place_of_the_one_kept(channel: Path, tmp_path: Path) -> None:
    cache, other = tmp_path / "cache", tmp_path / "other"
    fetch_pinning(str(channel), cache)
    write_package(other, metadata(NEW), [PackageFile("conda_build_config.yaml", b"python: [3.12]\n")])
    index_channel(other)
    assert fetch_pinning(str(other), cache).path.read_bytes() == b"python: [3.12]\n"
    assert [path.name for path in cache.iterdir()] == [NEW]


def test_a_folder_or_file_is_a_pinning_of_no_known_version(tmp_path: Path) -> None:
    path = tmp_path / "conda_build_config.yaml"
    path.write_text("python: [3.12]\n")
    assert find_pinning(tmp_path, tmp_path / "cache") == find_pinning(path, tmp_path / "cache") == Pinning(path)
    assert Pinning(path).describe(datetime.now(UTC)) == f"the pinning {path}, of unknown version"


def test_a_folder_named_like_a_version_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / OLD).mkdir()
    (tmp_path / OLD / "conda_build_config.yaml").write_text("python: [3.66]\n")
    monkeypatch.chdir(tmp_path)
    assert "has not been fetched" in the_error(lambda: find_pinning(OLD, tmp_path / "cache"))
    assert find_pinning(f"./{OLD}", tmp_path / "cache").path == Path(OLD, "conda_build_config.yaml")


def test_a_conda_environment_says_which_pinning_it_holds(tmp_path: Path) -> None:
    (tmp_path / "conda_build_config.yaml").touch()
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta" / f"conda-forge-pinning-{OLD}-hd8ed1ab_0.json").touch()
    assert find_pinning(tmp_path, tmp_path / "cache").version == OLD


def test_a_pinning_that_is_not_there_is_said_with_what_to_do(channel: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert "Fetch one with 'feedstock-tools pinning update'" in the_error(lambda: find_pinning(None, cache))
    fetch_pinning(str(channel), cache)
    assert f"feedstock-tools pinning fetch {OLD}'. Fetched versions: {NEW}." in the_error(
        lambda: find_pinning(OLD, cache)
    )
    assert "no such file or folder" in the_error(lambda: find_pinning("nowhere", cache))
    assert "so it is not a pinning" in the_error(lambda: find_pinning(tmp_path, cache))


def test_a_version_that_a_channel_lacks_is_said_with_the_nearest(channel: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no conda-forge-pinning 2021\.10\.30") as caught:
        fetch_pinning(str(channel), tmp_path / "cache", "2021.10.30")
    assert f"{OLD}, {NEW}" in str(caught.value)
    with pytest.raises(InputError, match="'newest' is not a version"):
        fetch_pinning(str(channel), tmp_path / "cache", "newest")


def test_a_channel_without_pinnings_is_said(tmp_path: Path, serve: Callable[..., str]) -> None:
    index_channel(tmp_path / "empty")
    with pytest.raises(InputError, match="has no package conda-forge-pinning"):
        fetch_pinning(serve(tmp_path / "empty"), tmp_path / "cache")


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ({"repodata": HTTPStatus.INTERNAL_SERVER_ERROR}, "cannot read what packages http://127.0.0.1"),
        ({"conda-forge-pinning-": HTTPStatus.INTERNAL_SERVER_ERROR}, "500 Internal Server Error"),
        ({"conda-forge-pinning-": HTTPStatus.NOT_FOUND}, "404"),
    ],
)
def test_a_server_that_fails_is_one_message(
    failing: dict[str, HTTPStatus],
    message: str,
    channel: Path,
    tmp_path: Path,
    serve: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("feedstock_tools.channel.calls._RETRIES", 0)
    url = serve(channel, failing)
    with pytest.raises(WorkError) as caught:
        fetch_pinning(url, tmp_path / "cache")
    assert message in str(caught.value)
    assert len(caught.value.mistakes) == 1
    assert cached_pinnings(tmp_path / "cache") == ()


def test_a_server_that_is_down_is_one_message(tmp_path: Path) -> None:
    message = the_error(lambda: fetch_pinning("http://127.0.0.1:1", tmp_path / "cache"))
    assert "http://127.0.0.1:1" in message
    assert "refused" in message


def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "no answer within 0.2 s" in the_error(lambda: fetch_pinning(url, tmp_path / "cache", seconds=0.2))


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_package_is_one_message(
    damage: str, channel: Path, tmp_path: Path, serve: Callable[..., str]
) -> None:
    (package,) = channel.glob("noarch/conda-forge-pinning-*.conda")
    content = package.read_bytes()
    package.write_bytes(content[:-40] if damage == "cut" else content[:-1] + b"x")
    message = the_error(lambda: fetch_pinning(serve(channel), tmp_path / "cache"))
    assert f"{package.name} is damaged" in message
    assert "\n" not in message
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"../../outside": b""}, "../../outside"),
        ({"share/conda-forge/../../../outside": b""}, "outside"),
        ({"/tmp/outside": b""}, "/tmp/outside"),
        ({MIGRATION: "/etc/passwd"}, f"it contains a link instead of a file, '{MIGRATION}'"),
        ({"conda_build_config.yaml": "/etc/passwd"}, "it contains a link instead of a file, 'conda_build_config.yaml'"),
        ({"share/conda-forge/c:\\outside": b""}, "it would write outside its folder"),
        ({"readme": b""}, "contains no conda_build_config.yaml"),
    ],
)
def test_a_package_that_would_write_elsewhere_is_refused(
    members: dict[str, bytes | str], message: str, tmp_path: Path, serve: Callable[..., str]
) -> None:
    folder = tmp_path / "channel"
    pinning: dict[str, bytes | str] = {} if "readme" in members else {"conda_build_config.yaml": b"{}\n"}
    write_tar_bz2(folder, OLD, {**pinning, **members})
    index_channel(folder)
    said = the_error(lambda: fetch_pinning(serve(folder), tmp_path / "cache"))
    assert message in said
    assert f"conda-forge-pinning-{OLD}" in said
    assert not list(tmp_path.rglob("outside*"))
    assert cached_pinnings(tmp_path / "cache") == ()


def test_a_package_that_is_too_large_is_refused(
    channel: Path, tmp_path: Path, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feedstock_tools.channel.fetching._MOST_BYTES", 20)
    assert "it has more than 20 bytes" in the_error(lambda: fetch_pinning(serve(channel), tmp_path / "cache"))
    # From a folder there is no transfer, and the two files of the old pinning have 31 bytes.
    assert "files or 20 bytes" in the_error(lambda: fetch_pinning(str(channel), tmp_path / "cache", OLD))


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(minutes=5), "less than two hours old"),
        (timedelta(days=2), "2 days old"),
        (timedelta(days=70), "2 months old"),
        (timedelta(days=-1), "from the future"),
    ],
)
def test_ages_are_said_in_words(age: timedelta, words: str) -> None:
    assert age_in_words(age) == words


def test_the_cache_is_where_the_environment_says() -> None:
    assert pinning_cache({"XDG_CACHE_HOME": "/here"}) == Path("/here/feedstock-tools/conda-forge-pinning")


def test_the_command_fetches_shows_and_lists(channel: Path, tmp_path: Path, serve: Callable[..., str]) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(command, [*arguments, "--cache", str(tmp_path / "cache")], catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    url = serve(channel)
    assert f"fetched: {tmp_path / 'cache' / OLD}" in run("fetch", OLD, "--channel", url)
    assert f"fetched: {tmp_path / 'cache' / NEW}" in run("update", "--channel", url)
    assert "already fetched" in run("update", "--channel", url)
    shown = run("show", OLD)
    assert shown.startswith(f"conda-forge-pinning {OLD} (")
    assert "released    2021-10-29 07:34:22 UTC\n" in shown
    assert f"from        {url}\n" in shown
    assert "migrations  1\n" in shown
    assert [line.split()[1] for line in run("list").splitlines()] == [OLD, NEW]
    assert json.loads(run("--json"))["version"] == NEW


def test_a_pinning_that_the_command_does_not_find_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none has been fetched"):
        CliRunner().invoke(command, ["--cache", str(tmp_path)], catch_exceptions=False)
