"""A project's newest source archive in a package index: as JSON and HTML, on a server and in a folder; untrusted."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.channel import package_index
from feedstock_tools.channel.http import Reply
from feedstock_tools.channel.package_index import fetch_archive, newest_source, unpack_texts
from feedstock_tools.channel.pip import index_urls
from feedstock_tools.errors import InputError, WorkError
from tests.support.limits import limited
from tests.support.serving import Answers, serving

INFORMATION = "Metadata-Version: 2.4\nName: Py_Demo\nVersion: 1.10\n"


def archive_of(files: dict[str, str], top: str = "py_demo-1.10") -> bytes:
    """A source archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


class Index:
    """A package index on a server: path → content type and bytes."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.root = ""

    def handler(self) -> type[Answers]:
        """What answers for it."""
        pages = self.pages

        class Handler(Answers):
            def respond(self) -> None:
                kind, content = pages.get(self.path, ("", b""))
                self.answer(content, 200 if kind else 404, Content_Type=kind or "text/plain")

        return Handler

    @property
    def machine(self) -> dict[str, str]:
        """The environment of a machine that uses this index."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        return own | {"PIP_INDEX_URL": f"{self.root}/simple", "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1"}

    def add(self, files: dict[str, bytes], **more: object) -> None:
        """List files of py-demo as JSON, and serve them."""
        entries = [
            {"filename": name, "url": f"../../files/{name}", "hashes": {"sha256": sha256(content).hexdigest()}, **more}
            for name, content in files.items()
        ]
        page = json.dumps({"meta": {"api-version": "1.1"}, "name": "py-demo", "files": entries})
        self.pages["/simple/py-demo/"] = ("application/vnd.pypi.simple.v1+json", page.encode())
        self.pages |= {f"/files/{name}": ("application/octet-stream", content) for name, content in files.items()}


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index; that pip is configured with it, no program asks: that takes half a second."""
    made = Index()
    monkeypatch.setattr(package_index, "index_urls", lambda machine: (machine["PIP_INDEX_URL"],))
    with serving(made.handler()) as made.root:
        yield made


def test_the_newest_final_release_is_taken(index: Index) -> None:
    names = ("py_demo-1.9.tar.gz", "py-demo-1.10.tar.gz", "py_demo-2.0rc1.tar.gz", "py_demo-1.11-py3-none-any.whl")
    index.add({name: name.encode() for name in names})

    found = newest_source("Py_Demo", index.machine)

    assert (found.name, found.version) == ("py-demo", "1.10")
    assert found.url == f"{index.root}/files/py-demo-1.10.tar.gz"
    assert found.sha256 == sha256(b"py-demo-1.10.tar.gz").hexdigest()
    assert found.template is None
    assert newest_source("py-demo", index.machine, "1.9").version == "1.9"


def test_an_address_for_all_versions_is_taken_if_it_answers(index: Index) -> None:
    index.add({"py_demo-1.10.tar.gz": b"x"})
    index.pages["/packages/source/p/py-demo/py_demo-1.10.tar.gz"] = ("application/gzip", b"x")

    template = newest_source("py-demo", index.machine).template

    assert template == f"{index.root}/packages/source/p/py-demo/py_demo-{{version}}.tar.gz"


@pytest.mark.parametrize(
    ("status", "content", "error"), [(404, b"", None), (200, b"x", None), (200, b"y", "has another SHA-256")]
)
def test_a_file_of_pypi_has_its_address_for_all_versions_which_is_compared_if_it_answers(
    status: int, content: bytes, error: str | None, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"https://files.pythonhosted.org/packages/aa/bb/{'c' * 60}/py_demo-1.10.zip"
    page = f'<a href="{own}#sha256={sha256(b"x").hexdigest()}">x</a>'
    index.pages["/simple/py-demo/"] = ("text/html", page.encode())
    found = newest_source("py-demo", index.machine)
    assert found.template == "https://pypi.org/packages/source/p/py-demo/py_demo-{version}.zip"

    def ask(url: str, *, take: Callable[[bytes], object], **_: object) -> Reply:
        take(b"x" if url == own else content)
        return Reply(200 if url == own else status, {})

    monkeypatch.setattr(package_index, "ask", ask)
    if error is None:
        fetch_archive(found, tmp_path / "it")
        assert (tmp_path / "it").read_bytes() == b"x"
    else:
        with pytest.raises(WorkError, match=error):
            fetch_archive(found, tmp_path / "it")


def test_an_index_of_html_is_read(index: Index) -> None:
    digest = "a" * 64
    page = f"""<a href="/f/py_demo-1.0.zip#sha256={digest}">1</a>
        <a href="/f/py_demo-3.0.zip#sha256={digest}" data-yanked="">3</a><a href="/f/py_demo-2.0.zip">2</a>"""
    index.pages["/simple/py-demo/"] = ("text/html", page.encode())

    found = newest_source("py-demo", index.machine)

    assert (found.version, found.url, found.sha256) == ("1.0", f"{index.root}/f/py_demo-1.0.zip", digest)


def test_an_index_may_be_a_folder(tmp_path: Path) -> None:
    content = archive_of({"PKG-INFO": INFORMATION})
    (tmp_path / "simple/py-demo").mkdir(parents=True)
    (tmp_path / "py_demo-1.10.tar.gz").write_bytes(content)
    page = f'<a href="../../py_demo-1.10.tar.gz#sha256={sha256(content).hexdigest()}">it</a>'
    (tmp_path / "simple/py-demo/index.html").write_text(page)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    machine = {**own, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": f"{tmp_path.as_uri()}/simple"}

    assert index_urls(machine) == (f"{tmp_path.as_uri()}/simple",)
    unpack_texts(newest_source("py-demo", machine), tmp_path / "texts")

    assert (tmp_path / "texts/PKG-INFO").read_text() == INFORMATION


def test_of_an_archive_texts_and_the_names_of_sources_are_unpacked(index: Index, tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "[project]",
        "src/demo/__init__.py": "import os",
        "src/demo/a.cpp": "int a;",
        "data.bin": "x",
    }
    index.add({"py_demo-1.10.tar.gz": archive_of({**files, "../../escaped.c": "", "LICENSE": "MIT"})})

    unpack_texts(newest_source("py-demo", index.machine), tmp_path / "texts")

    places = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "texts.archive"]
    found = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in places}
    assert found == {
        "texts/pyproject.toml": "[project]",
        "texts/LICENSE": "MIT",
        "texts/src/demo/__init__.py": "",
        "texts/src/demo/a.cpp": "",
    }


def test_an_archive_may_be_a_zip_file(index: Index, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("py_demo-1.10/PKG-INFO", INFORMATION)
    index.add({"py_demo-1.10.zip": buffer.getvalue()})

    unpack_texts(newest_source("py-demo", index.machine), tmp_path / "texts")

    assert (tmp_path / "texts/PKG-INFO").read_text() == INFORMATION


def test_an_archive_with_another_hash_is_refused(index: Index, tmp_path: Path) -> None:
    index.add({"py_demo-1.10.tar.gz": archive_of({})})
    index.pages["/files/py_demo-1.10.tar.gz"] = ("application/gzip", archive_of({"setup.py": ""}))

    with pytest.raises(WorkError, match="has another SHA-256"):
        unpack_texts(newest_source("py-demo", index.machine), tmp_path / "texts")


@pytest.mark.parametrize(
    "content",
    [b"<html>", gzip.compress(b"\0" * 100), archive_of({"setup.py": ""})[:40], b""],
    ids=["html", "no tar", "cut", "empty"],
)
def test_a_damaged_archive_is_work_that_failed_or_has_no_texts(content: bytes, index: Index, tmp_path: Path) -> None:
    index.add({"py_demo-1.10.tar.gz": content})
    try:
        unpack_texts(newest_source("py-demo", index.machine), tmp_path / "texts")
    except WorkError as error:
        assert "cannot read the source archive" in str(error)
    assert not [path for path in tmp_path.glob("texts/**/*") if path.is_file()]


def test_a_header_that_asks_for_gigabytes_of_memory_is_refused(index: Index, tmp_path: Path) -> None:
    entry = tarfile.TarInfo("py_demo-1.10/x")
    entry.type, entry.size = tarfile.XHDTYPE, 4 << 30
    content = gzip.compress(entry.tobuf(tarfile.USTAR_FORMAT) + b"\0" * 4096)
    index.add({"py_demo-1.10.tar.gz": content})

    with pytest.raises(WorkError, match="too large"):
        unpack_texts(newest_source("py-demo", index.machine), tmp_path / "texts")


def test_a_page_or_an_archive_without_end_is_given_up(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add({"py_demo-1.10.tar.gz": archive_of({"setup.py": "x = 1\n" * 1000})})
    source = newest_source("py-demo", index.machine)
    monkeypatch.setattr(package_index, "_LARGEST_ARCHIVE", 20)
    with limited(), pytest.raises(WorkError, match="20 bytes"):
        unpack_texts(source, tmp_path / "texts")
    monkeypatch.setattr(package_index, "_LARGEST_PAGE", 20)
    with limited(), pytest.raises(WorkError, match="more than 20 bytes"):
        newest_source("py-demo", index.machine)


def test_of_a_text_that_is_too_large_the_beginning_is_unpacked(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_index, "_LARGEST_TEXT", 1000)
    index.add({"py_demo-1.10.tar.gz": archive_of({"pyproject.toml": "[project]", "LICENSE": "x" * 1001})})
    unpack_texts(newest_source("py-demo", index.machine), tmp_path / "texts")
    assert (tmp_path / "texts" / "LICENSE").stat().st_size == 1000


def test_a_project_that_is_nowhere_is_a_mistake(index: Index) -> None:
    with pytest.raises(InputError, match="there is no folder 'py-demo', and no such project in the package index"):
        newest_source("py-demo", index.machine)
    index.add({"py_demo-1.10-py3-none-any.whl": b""})
    with pytest.raises(InputError, match="has no source archive of py-demo, final release"):
        newest_source("py-demo", index.machine)


@pytest.mark.parametrize(
    "page", [b"[]", b"{", b'{"files": [1]}', b'{"files": [{"url": "x"}]}', b"\xff", b"[" * 100_000], ids=range(6)
)
def test_an_answer_that_is_none_of_an_index_is_work_that_failed(page: bytes, index: Index) -> None:
    index.pages["/simple/py-demo/"] = ("application/json", page)
    with pytest.raises(WorkError, match="does not answer as one"):
        newest_source("py-demo", index.machine)


def test_an_index_that_cannot_be_reached_is_named(index: Index) -> None:
    machine = index.machine | {"PIP_INDEX_URL": "http://user:secret@127.0.0.1:9/simple"}
    with pytest.raises(WorkError, match="cannot be read") as raised:
        newest_source("py-demo", machine)
    assert "secret" not in str(raised.value)
