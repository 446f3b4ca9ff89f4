"""What a change of the pinning does to the feedstocks of an index."""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.many.impact import impact
from feedstock_tools.many.index import INDEX, opened_index
from tests.support.workspaces import feedstock

PINNING = "libbase:\n- 1\nzlib:\n- 1\nbzip2:\n- 1\nzip_keys:\n-\n  - bzip2\n  - xz\nxz:\n- 5\n"


def pinning(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "conda_build_config.yaml").write_text(text)
    return folder


def test_only_feedstocks_that_could_change_are_rendered_and_come_in_the_order_of_their_packages(tmp_path: Path) -> None:
    feedstock(tmp_path / "w" / "base-feedstock", "base", host=("zlib",), makes=("libbase",))
    feedstock(tmp_path / "w" / "app-feedstock", "app", host=("zlib", "libbase"))
    feedstock(tmp_path / "w" / "other-feedstock", "other", host=("xz",))
    before = pinning(tmp_path / "before", PINNING)
    after = pinning(tmp_path / "after", PINNING.replace("zlib:\n- 1", "zlib:\n- 2"))
    zipped = pinning(tmp_path / "zipped", PINNING.replace("bzip2:\n- 1", "bzip2:\n- 2"))
    with opened_index(tmp_path / INDEX, make=True) as index:
        assert {each.outcome for each in index.update(tmp_path / "w", 1)} == {"read"}
        found = impact(index, before, after)
        assert found.change.keys == {"zlib"}
        assert (found.layers, found.untouched) == ((("base",), ("app",)), ("other",))
        assert all(each.changed or each.added for each in found.changed)
        every = impact(index, before, after, every=True)
        assert [each.name for each in every.changed] == [each.name for each in found.changed]
        assert every.untouched == () and every.same.keys() == {"other"}
        assert "other" not in impact(index, before, zipped).untouched, (
            "it uses a key that is zipped with the changed one"
        )
