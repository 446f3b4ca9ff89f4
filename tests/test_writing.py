"""Files are replaced whole or stay as they were."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from feedstock_tools.errors import WorkError
from feedstock_tools.files.changes import replacing, write_whole
from tests.support.needs import needs


def test_a_file_is_made_with_its_folders(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b" / "text", "Grüße\r\n")
    assert (tmp_path / "a" / "b" / "text").read_bytes() == "Grüße\r\n".encode()


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "script.sh"
    path.write_text("old")
    path.chmod(0o750)
    write_whole(path, b"new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o750)


def test_a_name_as_long_as_names_may_be_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_whole(path, "text")
    assert path.read_text() == "text"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_what_was_there_and_no_part(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "kept"
    path.write_text("old")
    with (
        pytest.raises(WorkError if isinstance(error, OSError) else KeyboardInterrupt),
        replacing(path, message="cannot copy it") as part,
    ):
        part.write_text("half")
        raise error
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert path.read_text() == "old"


@contextmanager
def without_privileges() -> Iterator[None]:
    """root may write anywhere, so the process becomes `nobody` for a while."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@needs("system", os.name == "posix", "rights of folders as POSIX has them")
def test_the_error_says_what_failed_where_and_why(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with without_privileges(), pytest.raises(WorkError, match=r"text: cannot write: Permission denied"):
        write_whole(tmp_path / "text", "")


def test_a_place_in_a_file_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkError, match=r"file/text: cannot write: (Not a directory|File exists)"):
        write_whole(tmp_path / "file" / "text", "")
