"""Bundles: what goes to a host, how often, and what must not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.builds.fleet.host.store import Store
from feedstock_tools.builds.fleet.orders.bundle import Bundle, Entry, pack, refuse_credentials
from feedstock_tools.builds.fleet.orders.compiling import Parcels, compile_order, parcels_of
from feedstock_tools.builds.fleet.orders.order import Order, Refused
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity, Share
from feedstock_tools.builds.plan.row import Running
from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.errors import InputError
from tests.support.feedstocks import TinyFeedstock
from tests.support.fleets import Fleet, fleet_in

_HASH = "0" * 64


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet of one host."""
    with fleet_in(tmp_path_factory.mktemp("fleet"), 1) as made:
        yield made


def _prepared(feedstock: TinyFeedstock) -> tuple[Parcels, Order]:
    workspace = open_workspace(feedstock.folder, None, [str(feedstock.channel)], os.environ)
    planned = agenda(workspace, workspace.chosen(), Capacity.of_machine())
    parcels = parcels_of(workspace, planned)
    row = planned.todo[0]
    engine = workspace.engines.engine_for(row.configuration, row.platform)
    names = [output.name for output in row.wanted.missing]
    choice = planned.channels[row.configuration]
    return parcels, compile_order(parcels, row, Running("", Share((), 0, 1)), engine, choice, names, [])


def test_a_bundle_holds_what_goes_into_builds_and_nothing_else(feedstock: TinyFeedstock) -> None:
    (feedstock.folder / ".env").write_text("PASSWORD=word-that-nobody-sees")
    (feedstock.folder / "notes.txt").write_text("not part of a build")
    parcels, order = _prepared(feedstock)
    paths = {entry.path for entry in parcels.files.bundle.entries}
    assert paths == {
        "tiny-feedstock/.ci_support/linux_64_cuda_compiler_version11.2.yaml",
        "tiny-feedstock/.ci_support/linux_64_cuda_compiler_versionNone.yaml",
        "tiny-feedstock/.ci_support/osx_64_.yaml",
        "tiny-feedstock/recipe/build-library.sh",
        "tiny-feedstock/recipe/recipe.yaml",
        "tiny-feedstock/src/answer.txt",
        "tiny-feedstock/src/tiny.py",
    }
    text = json.dumps(order.to_json())
    assert str(feedstock.folder.parent) not in text
    assert str(feedstock.channel) not in text
    assert not [name for name in ("HOME", "PATH") if os.environ[name] in text]
    assert Order.from_json(json.loads(text)) == order


@pytest.mark.parametrize(
    ("file", "content", "kind"),
    [
        ("src/tiny.py", "KEY = 'AKIAIOSFODNN7EXAMPLE'", "an access key of AWS"),
        ("recipe/build-library.sh", "curl https://me:word@example.org/", "a password in a URL"),
        ("src/answer.txt", "a value-that-nobody-sees", "the value of MY_TOKEN"),
    ],
)
def test_a_file_with_a_credential_is_not_sent(feedstock: TinyFeedstock, file: str, content: str, kind: str) -> None:
    path = feedstock.folder / file
    path.write_text(f"# first line\n{content}\n")
    with pytest.raises(InputError, match=f"{file}:2: contains {kind}, which must not go to other machines"):
        refuse_credentials([path], {"MY_TOKEN": "value-that-nobody-sees"})


def test_a_channel_that_needs_credentials_is_refused(feedstock: TinyFeedstock) -> None:
    workspace = open_workspace(feedstock.folder, None, [str(feedstock.channel)], os.environ)
    planned = agenda(workspace, workspace.chosen(), Capacity.of_machine())
    url = "https://me:word@example.org/channel"
    channels = {name: replace(choice, names=(url,)) for name, choice in planned.channels.items()}
    with pytest.raises(InputError, match=r"https://\*\*\*@example.org/channel needs a password or a token"):
        parcels_of(workspace, replace(planned, channels=channels))


def test_links_stay_links_inside_and_become_files_where_they_lead_out(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("contents")
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "inner").symlink_to("../program")
    (root / "program").write_text("#!/bin/sh\n")
    (root / "program").chmod(0o755)
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to(root)
    (root / "dangling").symlink_to("/nowhere/at/all")
    packed = pack({"here": root})
    listed = {entry.path: (entry.link, entry.program) for entry in packed.bundle.entries}
    assert listed == {
        "here/deep/inner": ("../program", False),
        "here/out/file": ("", False),
        "here/program": ("", True),
    }
    store = Store(tmp_path / "store")
    for content, path in packed.files.items():
        store.put(content, 0, path.read_bytes(), path.stat().st_size)
    store.lay_out(packed.bundle, tmp_path / "laid-out")
    assert (tmp_path / "laid-out" / "here" / "out" / "file").read_text() == "contents"
    assert os.access(tmp_path / "laid-out" / "here" / "deep" / "inner", os.X_OK)


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ([Entry("../file", _HASH)], "leads out of the bundle"),
        ([Entry("/etc/passwd", _HASH)], "leads out of the bundle"),
        ([Entry("a/../../b", _HASH)], "leads out of the bundle"),
        ([Entry("", _HASH)], "leads out of the bundle"),
        ([Entry("a\0b", _HASH)], "leads out of the bundle"),
        ([Entry("a/b", link="../../c")], "leads out of the bundle"),
        ([Entry("a", link="/etc")], "leads out of the bundle"),
        ([Entry("a", link="b"), Entry("a/c", _HASH)], "is below a link"),
    ],
)
def test_a_bundle_stays_in_its_folder(entries: list[Entry], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Bundle.from_document(json.dumps([asdict(entry) for entry in entries]).encode())


@pytest.mark.parametrize("content", ["{}", '[{"path": "a"}]', '[{"path": 1, "sha256": "", "size": 0}]', "[[]]", "x"])
def test_a_document_of_another_form_is_no_bundle(content: str) -> None:
    with pytest.raises(ValueError):
        Bundle.from_document(content.encode())


def test_a_store_takes_files_with_the_contents_of_their_hash_only(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    content = sha256(b"right").hexdigest()
    with pytest.raises(Refused, match="are others"):
        store.put(content, 0, b"wrong", 5)
    assert not store.has(content)
    with pytest.raises(Refused, match="does not follow"):
        store.put(content, 3, b"ht", 5)
    store.put(content, 0, b"ri", 5)
    store.put(content, 2, b"ght", 5)
    assert store.has(content)
    with pytest.raises(Refused, match="64 hexadecimal digits"):
        store.put("../../file", 0, b"x", 1)
    place = next(path for path in (tmp_path / "store").glob("*/*") if path.name == content)
    place.chmod(0o600)
    place.write_bytes(b"decayed")
    with pytest.raises(Refused, match="was damaged on this host's disk"):
        store.copy(content, tmp_path / "copy")
    assert not store.has(content)
