"""Channels that want a user, a password or a token, kept where conda's users keep them; and never shown."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.http import NoAnswerError, address_of, ask
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.packages.reading import read_documents
from feedstock_tools.channel.repodata import repodata_state, why_unreachable
from tests.support import command
from tests.support.feedstocks import CPU, HERE, TinyFeedstock
from tests.support.guarded import PASSWORD, TOKEN, USER, Guarded, guarded

pytestmark = pytest.mark.usefixtures("within_limits")

LOGIN = {"BasicHTTP": {"username": USER, "password": PASSWORD}}
#: Everything that the library asks a channel, in a process whose user keeps credentials in a home of its own.
QUESTIONS = """
import json, sys
from pathlib import Path
from feedstock_tools.channel.solving import install
from feedstock_tools.channel.repodata import builds_of, read_records, why_unreachable
from feedstock_tools.channel.repodata import run_exports_of
from feedstock_tools.channel.solving import solve
from feedstock_tools.platforms import Platform
url, subdir, home = sys.argv[1:]
here = Platform.parse(subdir)
assert why_unreachable(url, seconds=20) is None, why_unreachable(url)
assert [each.name for each in read_records(url, [subdir, "noarch"])] == ["guarded"]
assert len(builds_of("guarded", url, [subdir])) == 1
records = solve(["guarded"], [url], here)
install(records, Path(home, "prefix"), here, cache=Path(home, "packages"))
run_exports_of(records[0].url)
print("all answered")
raise SystemExit  # before the command line, which has no part in this
"""


@pytest.fixture(scope="module")
def channels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one channel, `mine`, of one package."""
    folder = tmp_path_factory.mktemp("channels")
    write_package(folder / "mine", PackageMetadata("guarded", "1.0", "0", 0, HERE.subdir))
    index_channel(folder / "mine")
    return folder


@pytest.fixture
def server(channels: Path) -> Iterator[Guarded]:
    with guarded(channels) as found:
        yield found


def asked(server: Guarded, home: Path, base: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Ask everything; the user's home is `home`."""
    home.mkdir(exist_ok=True)
    more = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **variables}
    words = command.patched(QUESTIONS, f"{base or server.url}/mine", HERE.subdir, str(home))
    return command.run(words, None, command.environment(**more))


def in_rattlers_file(home: Path, entry: object, host: str = "127.0.0.1") -> None:
    (home / ".rattler").mkdir(parents=True)
    (home / ".rattler" / "credentials.json").write_text(json.dumps({host: entry}))


@pytest.mark.parametrize("way", ["url", "token", "rattler", "bearer", "conda token", "netrc", "NETRC", "auth file"])
def test_credentials_are_found_where_conda_keeps_them(way: str, server: Guarded, tmp_path: Path) -> None:
    home, base, variables = tmp_path / "home", "", {}
    home.mkdir()
    login = f"machine 127.0.0.1 login {USER} password {PASSWORD}\n"
    if way == "url":
        base = server.with_password
    elif way == "token":
        base = server.with_token
    elif way == "rattler":
        in_rattlers_file(home, LOGIN)
    elif way == "bearer":
        in_rattlers_file(home, {"BearerToken": TOKEN})
    elif way == "conda token":
        in_rattlers_file(home, {"CondaToken": TOKEN})
    elif way == "netrc":
        (home / ".netrc").write_text(login)
    elif way == "NETRC":
        (tmp_path / "logins").write_text(login)
        variables["NETRC"] = str(tmp_path / "logins")
    else:
        (tmp_path / "auth.json").write_text(json.dumps({"127.0.0.1": LOGIN}))
        variables["RATTLER_AUTH_FILE"] = str(tmp_path / "auth.json")
    done = asked(server, home, base, **variables)
    assert done.stdout.strip() == "all answered", done.stderr
    assert server.refused == []


@pytest.mark.parametrize("bus", ["", "unix:path=/nowhere", "nonsense"])
def test_without_a_keychain_the_other_places_count(bus: str, server: Guarded, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    in_rattlers_file(home, LOGIN)
    done = asked(server, home, DBUS_SESSION_BUS_ADDRESS=bus)
    assert done.stdout.strip() == "all answered", done.stderr


def test_without_credentials_the_message_says_what_the_server_answers(server: Guarded, tmp_path: Path) -> None:
    done = asked(server, tmp_path / "home")
    assert "it answers with HTTP status 401" in done.stderr


def test_credentials_go_to_no_other_host(server: Guarded, channels: Path) -> None:
    with guarded(channels) as other:
        server.redirect = f"{other.url}/mine/noarch/repodata.json"
        reply = ask(f"{server.with_password}/mine/noarch/repodata.json", seconds=20)
    assert reply.status == 401
    assert server.headers[0].startswith("Basic ")
    assert other.headers == [""]


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://127.0.0.1:1/x", "gopher://x", "http://[", "http://x:y"]
)
def test_a_redirect_leads_to_the_web_only(target: str, server: Guarded) -> None:
    server.redirect = target
    with pytest.raises(NoAnswerError):
        if ask(f"{server.url}/mine/noarch/repodata.json", seconds=5).status >= 300:
            raise NoAnswerError


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"127.0.0.1": 3}', '{"127.0.0.1": {"BasicHTTP": 3}}', "[" * 100_000, "\0"]
)
def test_a_damaged_file_of_credentials_is_none(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "auth.json").write_text(content)
    monkeypatch.setenv("RATTLER_AUTH_FILE", str(tmp_path / "auth.json"))
    monkeypatch.setenv("NETRC", str(tmp_path / "auth.json"))
    assert address_of("http://127.0.0.1/x").authorization is None


def test_a_fifo_as_the_file_of_credentials_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "auth.json")
    monkeypatch.setenv("RATTLER_AUTH_FILE", str(tmp_path / "auth.json"))
    monkeypatch.setenv("NETRC", str(tmp_path / "auth.json"))
    assert address_of("http://127.0.0.1/x").authorization is None


@pytest.mark.parametrize("host", ["packages.example.org", "*.example.org", "*.org"])
def test_an_entry_for_a_domain_serves_its_hosts(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "auth.json").write_text(json.dumps({host: {"BearerToken": TOKEN}}))
    monkeypatch.setenv("RATTLER_AUTH_FILE", str(tmp_path / "auth.json"))
    assert address_of("https://packages.example.org/x").authorization == f"Bearer {TOKEN}"
    assert address_of("https://example.com/x").authorization is None
    assert address_of("file:///etc/passwd").authorization is None


def test_the_state_of_a_guarded_channel_is_known(server: Guarded) -> None:
    assert repodata_state(f"{server.with_password}/mine", ["noarch"]) is not None
    assert why_unreachable(f"{server.with_token}/mine") is None


@pytest.mark.parametrize("kind", ["password", "token"])
def test_a_build_on_a_guarded_channel_shows_its_credentials_nowhere(
    kind: str, feedstock: TinyFeedstock, tiny_channel: Path, tmp_path: Path
) -> None:
    feedstock.keep_outputs(1)
    with guarded(tiny_channel.parent) as server:
        base = server.with_password if kind == "password" else server.with_token
        guest = TinyFeedstock(feedstock.folder, f"{base}/{tiny_channel.name}")
        run = guest.build(f"{CPU}_py3.11", environment={"HOME": str(tmp_path / "home")})
        assert run.returncode == 0, run.stdout + run.stderr
        said = [run.stdout + run.stderr]
        said += [
            "".join(done.stdout + done.stderr)
            for done in (
                guest.run("status", "--json", "--channel", str(guest.channel)),
                guest.run("plan", CPU, "--channel", str(guest.channel)),
                guest.run("plan", CPU, "--json", "--channel", str(guest.channel)),
                guest.run("rehearse", CPU, "--channel", str(guest.channel)),
                guest.run("status", "--html", "page.html", "--channel", str(guest.channel)),
                guest.run("dossier", "-o", "evidence", "--channel", str(guest.channel)),
                guest.run("cuda", "search", "tiny-compiler", "--channel", str(guest.channel)),
            )
        ]
    shown = [text for text in said if PASSWORD in text or "wo%40rd" in text or TOKEN in text]
    assert not shown, shown[0][:2000]
    secrets = [PASSWORD.encode(), b"wo%40rd", TOKEN.encode()]
    written = [path for path in feedstock.folder.rglob("*") if path.is_file() and "pkg_cache" not in path.parts]
    leaks = [path for path in written if any(secret in path.read_bytes() for secret in secrets)]
    assert not leaks, leaks
    for package in feedstock.artifacts.glob("*/*.conda"):
        assert not any(secret in unpacked(package) for secret in secrets), package


def unpacked(package: Path) -> bytes:
    """What the metadata in a package says of its build."""
    names = [f"info/{name}" for name in ("about.json", "index.json", "recipe/rendered_recipe.yaml", "hash_input.json")]
    return b"".join(content or b"" for content in read_documents(package, names).values())
