"""Several files written as one: all of them or none, whatever fails, and through no link."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.files.changes import Changes
from feedstock_tools.files.locks import locked_in_place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an executable file, a plain one, and one in a folder of its own."""
    top = tmp_path / "top"
    (top / "deep").mkdir(parents=True)
    for name, mode in (("script", 0o755), ("plain", 0o640), ("deep/last", 0o644)):
        (top / name).write_text(f"old {name}")
        (top / name).chmod(mode)
    return top


def state(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file and folder below, with its mode and content."""
    return {
        path.relative_to(folder).as_posix(): (path.lstat().st_mode & 0o777, path.read_text() if path.is_file() else "")
        for path in folder.rglob("*")
    }


def changes(folder: Path, seen: Mapping[Path, bytes | None] | None = None) -> Changes:
    """Every kind of change, the last of them in a folder that does not exist yet."""
    made = folder / "a/b/made"
    files = {folder / "script": b"new script", folder / "deep/last": None, made: b"made"}
    return Changes(folder, files, {folder / "script": False, folder / "plain": True, made: True}, seen or {})


def test_files_are_written_changed_and_removed_with_their_modes_and_folders(folder: Path) -> None:
    changes(folder).apply()
    made = state(folder)
    assert {name: text for name, (_, text) in made.items() if text} == {
        "script": "new script",
        "plain": "old plain",
        "a/b/made": "made",
    }
    assert (made["script"][0], made["plain"][0]) == (0o644, 0o751)
    assert made["a/b/made"][0] & 0o111 == 0o111
    assert "deep" not in made


@pytest.mark.parametrize("at", range(8))
def test_a_failure_at_any_step_leaves_everything_as_it_was(
    at: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(folder)
    calls = 0
    put_back = False

    def failing(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **more: object) -> object:
            nonlocal calls, put_back
            calls += 1
            if calls == at + 1 and not put_back:
                put_back = True
                raise OSError(28, "No space left on device", str(arguments[0]))
            return real(*arguments, **more)

        return call

    for name in ("replace", "rename", "chmod", "write_bytes"):
        monkeypatch.setattr(Path, name, failing(getattr(Path, name)))
    with pytest.raises(WorkError, match="No space left on device; nothing was changed"):
        changes(folder).apply()
    assert calls > at
    monkeypatch.undo()
    assert state(folder) == before


def test_an_interruption_leaves_everything_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state(folder)
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        changes(folder).apply()
    monkeypatch.undo()
    assert state(folder) == before


def _link(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(path.parent.parent)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: _link(folder / "a"), "is a link"),
        (lambda folder: (folder / "a").write_text("x"), "is a file where a folder must be"),
        (lambda folder: (folder / "a/b/made").mkdir(parents=True), "is not a file, but one must be written here"),
        (lambda folder: (folder / "script").chmod(0o555), "is read-only"),
        (lambda folder: _fifo(folder / "script"), "is not a file"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    break_it: Callable[[Path], object], message: str, folder: Path
) -> None:
    break_it(folder)
    names = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    with pytest.raises(InputError, match=message):
        changes(folder).apply()
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == names
    assert (folder / "plain").stat().st_mode & 0o777 == 0o640


def test_a_link_itself_is_replaced_and_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("theirs")
    for name in ("script", "deep/last"):
        (folder / name).unlink()
        (folder / name).symlink_to(tmp_path / "elsewhere")
    Changes(folder, {folder / "script": b"ours", folder / "deep/last": None}).apply()
    assert (tmp_path / "elsewhere").read_text() == "theirs"
    assert (folder / "script").read_text() == "ours"
    assert not (folder / "script").is_symlink()


def test_a_file_that_somebody_changed_meanwhile_is_not_overwritten(folder: Path) -> None:
    seen: dict[Path, bytes | None] = {folder / "script": b"old script", folder / "a/b/made": None}
    (folder / "script").write_text("theirs")
    with pytest.raises(WorkError, match="has changed since it was read; nothing was changed"):
        changes(folder, seen).apply()
    (folder / "script").write_text("new script")
    changes(folder, seen).apply()
    assert (folder / "a/b/made").is_file()


def test_two_writers_take_turns(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from feedstock_tools.files.changes import Changes\n"
        "top, word = Path(sys.argv[1]), sys.argv[2].encode()\n"
        "for _ in range(40): Changes(top, {top / f'file{n}': word * 9 for n in range(9)}).apply()\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(folder), word]) for word in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len({(folder / f"file{number}").read_text() for number in range(9)}) == 1


def test_a_writer_that_never_ends_is_given_up(folder: Path) -> None:
    with (
        locked_in_place(folder),
        pytest.raises(FeedstockError, match=r"another program has been writing here for 0\.1 s"),
        locked_in_place(folder, seconds=0.1),
    ):
        pass
    with locked_in_place(folder, seconds=0.1):
        pass
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_killed_writer_leaves_whole_files_and_the_next_one_finishes(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from feedstock_tools.files.changes import Changes\n"
        "top = Path(sys.argv[1])\n"
        "while True:\n"
        "    for word in (b'a', b'b'): Changes(top, {top / f'file{n}': word * 9999 for n in range(9)}).apply()\n"
    )
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", program, str(folder)])
        while not (folder / "file8").exists():
            time.sleep(0.01)
        time.sleep(0.05)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        texts = {(folder / f"file{number}").read_text() for number in range(9)}
        assert texts <= {"a" * 9999, "b" * 9999}
    again = program.replace("while True:", "if True:").replace("(b'a', b'b')", "(b'c',)")
    subprocess.run([sys.executable, "-c", again, str(folder)], check=True)
    assert {(folder / f"file{number}").read_text() for number in range(9)} == {"c" * 9999}
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
