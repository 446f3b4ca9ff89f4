"""`edit version` with sources from a server: their hashes, those that upstream publishes, and the patches it took."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from feedstock_tools.channel import package_index, source_files
from feedstock_tools.channel.http import NoAnswerError
from feedstock_tools.channel.source_files import fetch_source
from feedstock_tools.edit.draft import open_draft
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.patches import without_taken
from feedstock_tools.stages import listen
from tests.support import command
from tests.support.serving import files, serving

RECIPE = """\
package:
  name: demo
  version: '1.2'
source:
  url: {address}/demo-1.2.tar.gz
  sha256: AAAA
  patches:
    - fixed.patch
    - ours.patch  # [linux]
    - old.patch
build:
  number: 3
""".replace("AAAA", "a" * 64)
FILES = {"demo-1.3/src/a.c": "int a;\nint b;\n", "demo-1.3/README": "Demo\n"}
PATCH = "--- a/src/a.c\n+++ b/src/a.c\n@@ -1,2 +1,2 @@\n int a;\n-{old}\n+{new}\n"
PATCHES = {
    "fixed.patch": PATCH.format(old="int c;", new="int b;"),
    "ours.patch": PATCH.format(old="int b;", new="int d;"),
    "old.patch": PATCH.format(old="int x;", new="int y;"),
}


def archive(path: Path) -> bytes:
    """An archive of the new source."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as zipped:
            for name, text in FILES.items():
                zipped.writestr(name, text)
        return path.read_bytes()
    with tarfile.open(path, "w:gz") as packed:
        for name, text in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            packed.addfile(info, io.BytesIO(text.encode()))
    return path.read_bytes()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "served").mkdir()
    with serving(files(tmp_path / "served")) as address:
        yield address


def feedstock(tmp_path: Path, address: str) -> Path:
    folder = tmp_path / "demo"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(RECIPE.format(address=address))
    for name, text in PATCHES.items():
        (folder / "recipe" / name).write_text(text)
    return folder


def test_a_version_is_downloaded_compared_and_without_the_patches_that_it_has(tmp_path: Path, served: str) -> None:
    digest = hashlib.sha256(archive(tmp_path / "served/demo-1.3.tar.gz")).hexdigest()
    (tmp_path / "served/demo-1.3.tar.gz.sha256").write_text(f"{digest}  demo-1.3.tar.gz\n")
    folder = feedstock(tmp_path, served)
    done = command.run(command.tool("edit", "version", "1.3", "--write", "--feedstock", str(folder)), tmp_path)
    assert done.returncode == 0, done.stderr
    expected = (
        RECIPE.format(address=served).replace("1.2", "1.3").replace("a" * 64, digest).replace("number: 3", "number: 0")
    )
    expected = expected.replace("    - fixed.patch\n", "")
    assert (folder / "recipe/meta.yaml").read_text() == expected
    assert f"the hash that {served}/demo-1.3.tar.gz.sha256 has" in done.stderr
    assert "meta.yaml:8: the new source has fixed.patch already: dropped" in done.stderr
    assert "meta.yaml:10: git does not apply old.patch alone to the new source" in done.stderr
    assert sorted(path.name for path in (folder / "recipe").iterdir()) == ["meta.yaml", "old.patch", "ours.patch"]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("demo.tar.gz.sha256", "{0}\n"),
        ("SHA256SUMS", "{1}  other.tar.gz\n{0} *demo.tar.gz\n"),
        ("SHA256SUMS", "SHA256 (demo.tar.gz) = {0}\n"),
        ("SHA256SUMS", None),
        ("SHA256SUMS", "{1}  other-demo.tar.gz\n"),
    ],
)
def test_a_published_hash_is_found_where_upstreams_put_it(
    tmp_path: Path, served: str, page: str, text: str | None
) -> None:
    digest = hashlib.sha256(archive(tmp_path / "served/demo.tar.gz")).hexdigest()
    if text is not None:
        (tmp_path / "served" / page).write_text(text.format(digest, "b" * 64))
    found = fetch_source(f"{served}/demo.tar.gz", "sha256", tmp_path / "kept", {})
    assert found.digest == digest
    assert found.published == (f"{served}/{page}" if text and "other-demo" not in text else "")
    assert (tmp_path / "kept").read_bytes() == (tmp_path / "served/demo.tar.gz").read_bytes()


@pytest.mark.parametrize(
    "answer",
    [
        {"urls": [{"filename": "demo.tar.gz", "digests": {"blake2b_256": "c" * 64, "sha256": "b" * 64}}]},
        {"assets": [{"name": "demo.tar.gz", "digest": f"sha256:{'b' * 64}"}]},
    ],
)
def test_another_published_hash_is_an_error_that_names_both(
    tmp_path: Path, served: str, answer: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(tmp_path / "served/demo.tar.gz")
    (tmp_path / "served/page").write_text(json.dumps(answer))
    monkeypatch.setattr(source_files, "_pages", lambda _url: [f"{served}/page"])
    with pytest.raises(WorkError, match=rf"but {served}/page says b{{64}}\n"):
        fetch_source(f"{served}/demo.tar.gz", "md5", tmp_path / "kept", {})


@pytest.mark.parametrize(
    ("address", "pages"),
    [
        (
            "https://pypi.org/packages/source/d/de-mo/de-mo-1.2.tar.gz",
            ["https://pypi.org/pypi/de-mo/1.2/json"],
        ),
        (
            "https://github.com/o/r/releases/download/v1/r.zip",
            [
                "https://api.github.com/repos/o/r/releases/tags/v1",
                "https://github.com/o/r/releases/download/v1/r.zip.sha256",
                "https://github.com/o/r/releases/download/v1/SHA256SUMS",
            ],
        ),
        ("https://github.com/o/r/archive/v1.tar.gz", []),
        ("https://example.org/x?y=1", []),
    ],
)
def test_hashes_are_looked_for_where_an_address_has_them(address: str, pages: list[str]) -> None:
    assert list(source_files._pages(address)) == pages


def test_a_download_says_what_it_does_and_why_it_fails(tmp_path: Path, served: str) -> None:
    (tmp_path / "served/large").write_bytes(bytes(3 << 20))
    said: list[str] = []
    listen(said.append)
    try:
        fetch_source(f"{served}/large", "sha256", tmp_path / "kept", {})
    finally:
        listen(lambda _: None)
    assert said[0] == f"downloading {served}/large"
    assert any(text.endswith("MiB") for text in said[1:])
    with pytest.raises(WorkError, match="cannot be downloaded: the server answers 404"):
        fetch_source(f"{served}/gone", "sha256", tmp_path / "kept", {})
    with pytest.raises(InputError, match="is not an address of the web"):
        fetch_source("file:///etc/passwd", "sha256", tmp_path / "kept", {})


def test_patches_of_a_zip_go_with_their_key_and_what_leads_out_is_not_read(tmp_path: Path) -> None:
    folder = feedstock(tmp_path, "https://example.org")
    recipe = folder / "recipe/meta.yaml"
    (tmp_path / "outside.patch").write_text(PATCHES["fixed.patch"])
    (folder / "recipe/again.patch").write_text(PATCHES["fixed.patch"].replace("/src", "/../src"))
    text = recipe.read_text().replace("    - ours.patch  # [linux]\n    - old.patch\n", "")
    archive(tmp_path / "new.zip")
    archives = {"https://example.org/demo-1.2.tar.gz": tmp_path / "new.zip"}
    for name, gone in (("fixed.patch", True), ("../../outside.patch", False), ("again.patch", False)):
        recipe.write_text(text.replace("fixed.patch", name))
        edited = without_taken(open_draft(folder), archives).recipe.text
        assert ("patches:" not in edited) is gone, name
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"\x1f\x8b not an archive")
    recipe.write_text(text)
    assert without_taken(open_draft(folder), dict.fromkeys(archives, broken)).recipe.text == text


@pytest.mark.parametrize("host", ["pypi.org", "pypi.io", "files.pythonhosted.org"])
def test_a_source_archive_of_pypi_that_does_not_answer_comes_from_the_index_of_pip(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object, **__: object) -> None:
        raise NoAnswerError("no network")

    (tmp_path / "simple/py-demo").mkdir(parents=True)
    file = tmp_path / "simple/py-demo/py_demo-1.0rc1.tar.gz"
    digest = hashlib.sha256(archive(file)).hexdigest()
    file.with_name("index.html").write_text(f'<a href="{file.name}#sha256={digest}">x</a>')
    monkeypatch.setattr(source_files, "ask", ask)
    monkeypatch.setattr(package_index, "index_urls", lambda _: [(tmp_path / "simple").as_uri()])
    kept = tmp_path / "kept"
    found = fetch_source(f"https://{host}/packages/source/p/py_demo/{file.name}", "md5", kept, {})
    assert found.digest == hashlib.md5(kept.read_bytes(), usedforsecurity=False).hexdigest()
    assert found.published == "the package index"
    with pytest.raises(WorkError, match="cannot be downloaded: no network"):
        fetch_source(f"https://{host}/packages/source/p/py_demo/py_demo-2.0.tar.gz", "sha256", kept, {})
