"""Packages of the stand-in channel link into the user's cache: what build scripts make of such links."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.contract import BuildRequest, Built, Failed
from feedstock_tools.builds.engines.embedded.engine import RattlerBuild
from feedstock_tools.builds.engines.embedded.fixed_place import is_possible
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.packages.reading import unpack_own
from tests.support.feedstocks import HERE
from tests.support.needs import needs

pytestmark = needs("system", sys.platform == "linux", "packages of the stand-in channel link on Linux only")
CONTENT = b"the content of a library"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library in a cache, in whose stand-in channel a package links to it."""
    library = tmp_path / "user [1]" / "tools" / "libraries" / "0-libdemo.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(CONTENT)
    channel = tmp_path / "user [1]" / "stand-in" / "0" / "stand-in"
    metadata = PackageMetadata(name="demo", version="1", build="0", build_number=0, subdir=HERE.subdir)
    write_package(channel, metadata, [PackageFile("lib/libdemo.so", link=str(library))])
    index_channel(channel)
    return library


def _built(library: Path, script: str) -> Path:
    """The files of a package that a script makes where the library's package is installed."""
    folder = library.parents[3]
    recipe = folder / "recipe" / "recipe.yaml"
    recipe.parent.mkdir()
    (recipe.parent / "build.sh").write_text(script)
    text = "package: {name: copies, version: '1'}\nbuild: {number: 0, script: build.sh}\nrequirements: {host: [demo]}\n"
    recipe.write_text(text)
    channel = (library.parents[2] / "stand-in" / "0" / "stand-in").as_uri()
    work = folder / "artifacts" / ".work" / "row"
    work.mkdir(parents=True)
    settings = {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "RATTLER_CACHE_DIR": str(folder / "fetched")}
    request = BuildRequest(
        "row", recipe, {}, HERE.subdir, HERE.subdir, (channel,), work, ("copies",), environment=settings
    )
    with RattlerBuild().build(request) as events:
        ended = [event for event in events if isinstance(event, (Built, Failed))]
    (built,) = ended
    assert isinstance(built, Built), built
    unpack_own(built.package, folder / "contents")
    return folder / "contents"


def test_a_copied_link_is_packed_as_the_file(library: Path) -> None:
    script = "cp -a $PREFIX/lib/libdemo.so $PREFIX/lib/'lib my.so'\nln -s libdemo.so $PREFIX/lib/libother.so\n"
    contents = _built(library, script)
    copy, link = contents / "lib" / "lib my.so", contents / "lib" / "libother.so"
    assert not copy.is_symlink()
    assert copy.read_bytes() == CONTENT
    assert str(link.readlink()) == "libdemo.so"
    assert sorted(path.name for path in copy.parent.iterdir()) == ["lib my.so", "libother.so"]


@needs("system", is_possible(), "this system allows a build no mounts of its own")
def test_a_build_script_cannot_write_to_what_other_feedstocks_link_to(library: Path) -> None:
    script = f"mkdir $PREFIX/share\nif ! echo more >> $PREFIX/lib/libdemo.so && ! rm -f {str(library)!r}; then\n"
    contents = _built(library, f"{script}touch $PREFIX/share/refused\nfi\n")
    assert (contents / "share" / "refused").is_file()
    assert library.read_bytes() == CONTENT
