"""Logs of any kind: every byte that programs print is kept, and nothing that they print harms a run or its readers."""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.contract import BuildRequest, Failed, Output
from feedstock_tools.builds.engines.embedded.engine import RattlerBuild
from feedstock_tools.builds.engines.process import child
from feedstock_tools.builds.engines.process.child import started
from feedstock_tools.builds.engines.process.guard import Guard, OutOfTimeError
from feedstock_tools.builds.engines.process.program import Command, run_command
from feedstock_tools.builds.runs.logs import HeadAndTail, LogFile, Skipped, without_secrets
from feedstock_tools.channel.folder import index_channel
from tests.support.feedstocks import HERE
from tests.support.needs import needs

pytestmark = needs("system", sys.platform == "linux", "looks at processes through /proc")

SECONDS = 60.0
SOCKET = 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
HIDDEN = "a-secret-of-the-machine"
MACHINE = {"PATH": os.environ["PATH"], "MY_TOKEN": HIDDEN}
SETTINGS = {"HOME": "/nonexistent", "PATH": os.environ["PATH"]}


@dataclass
class Printed:
    """What a build left: its log, what it printed itself, and the reason why it failed."""

    log: bytes
    output: bytes
    reason: str | None
    lines: list[str]


def request(folder: Path, script: str, tests: str = "") -> BuildRequest:
    """A recipe of one package with a build script."""
    recipe = folder / "recipe" / "recipe.yaml"
    recipe.parent.mkdir(exist_ok=True)
    (recipe.parent / "build.sh").write_text(script, encoding="latin-1")
    checks = f"tests:\n  - script: [{tests}]\n" if tests else ""
    recipe.write_text(f"package: {{name: logs, version: '1'}}\nbuild: {{number: 0, script: build.sh}}\n{checks}")
    return BuildRequest(
        name="row",
        recipe=recipe,
        values={},
        target=HERE.subdir,
        builder=HERE.subdir,
        channels=(_no_packages(folder / "channel"),),
        folder=folder,
        wanted=("logs",),
        environment={**SETTINGS, "TMPDIR": str(folder)},
        guard=Guard(seconds=SECONDS),
    )


def _no_packages(folder: Path) -> str:
    index_channel(folder)
    return folder.as_uri()


def built(folder: Path, script: str, *, tests: str = "", limit: int = 1 << 26) -> Printed:
    """Build with the embedded engine, and write the log as a run does."""
    return logged(folder, RattlerBuild().build(request(folder, script, tests)), limit)


def logged(folder: Path, build: object, limit: int = 1 << 26, machine: Mapping[str, str] = MACHINE) -> Printed:
    output: list[bytes] = []
    reason = None
    with LogFile(folder / "logs", "row", limit) as log, build as events:  # type: ignore[attr-defined]
        for event in without_secrets(events, machine, lambda: log.is_full):
            if isinstance(event, Skipped):
                log.skip(event.size)
                continue
            log.write(event)
            if isinstance(event, Output):
                output = [*output[-9:], event.content]
            if isinstance(event, Failed):
                reason = event.reason
    return Printed(log.path.read_bytes(), b"".join(output), reason, [*log.last])


def peak() -> int:
    """The most memory of this process and of the ended ones so far, in bytes."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * 1024


def test_a_byte_that_is_not_utf_8_neither_hangs_a_build_nor_hides_its_log(tmp_path: Path) -> None:
    began = time.monotonic()
    printed = built(tmp_path, "printf 'caf\\xe9\\n'\nhead -c 200000 /dev/zero | tr '\\0' x\necho\necho the end\n")
    assert printed.reason is None
    assert b"caf\xe9\n" in printed.log  # with time and stage, unless all of it came at once
    assert b"x" * 200_000 in printed.log
    assert b"the end\n" in printed.log
    assert time.monotonic() - began < SECONDS / 2


def test_all_lines_of_a_script_that_fails_are_kept(tmp_path: Path) -> None:
    printed = built(tmp_path, "for number in $(seq 20); do echo line $number; done\nprintf 'no end \\xff'\nexit 3\n")
    assert printed.reason is not None
    assert "its build script failed" in printed.reason
    assert [line for line in range(1, 21) if f"[script] line {line}\n".encode() not in printed.log] == []
    assert b"no end \xff+ exit 3\n" in printed.log


def test_tests_print_what_they_want_too(tmp_path: Path) -> None:
    printed = built(tmp_path, "true\n", tests='"printf \'t\\\\xe9st\\\\n\'", "exit 4"')
    assert printed.reason is not None
    assert "tests failed" in printed.reason
    assert b" [tests] t\xe9st\n" in printed.log


def test_the_log_is_in_order_and_names_folders_briefly(tmp_path: Path) -> None:
    printed = built(
        tmp_path, "echo one > $PREFIX/file\necho $PREFIX $SRC_DIR/x $BUILD_PREFIX\n", tests="echo $PREFIX/y"
    )
    places = [
        printed.log.index(text) for text in (b"host environment", b"$PREFIX $SRC_DIR/x $BUILD_PREFIX", b"Archive")
    ]
    assert places == sorted(places)
    assert printed.log.index(b"[tests] $PREFIX/y") > places[-1]


def test_a_script_sees_no_trace_of_the_way_that_its_output_takes(tmp_path: Path) -> None:
    script = "command -v bash; echo $PATH; bash -c 'echo $PATH'; ls -l /proc/self/fd; bash -c 'echo inner' > a; cat a\n"
    printed = built(tmp_path, script)
    assert printed.reason is None
    assert b"first-on-path" not in printed.output
    assert b"inner\n" in printed.output
    descriptors = [line for line in printed.output.splitlines() if b" -> " in line]
    assert len(descriptors) == 4, descriptors


def test_a_line_of_100_megabytes_needs_no_memory(tmp_path: Path) -> None:
    before = peak()
    printed = built(tmp_path, "head -c 100000000 /dev/zero | tr '\\0' y\necho\necho end\n", limit=1 << 20)
    assert printed.reason is None
    assert b" of the log are left out here\n" in printed.log
    assert len(printed.log) <= (1 << 20) + 200
    assert re.search(rb"(\[script\] |^)end$", printed.log, re.MULTILINE)  # without time and stage if both came at once
    assert peak() - before < 60_000_000


def command(folder: Path, script: str) -> Command:
    """A program for a whole row, as conda-build and a feedstock's own script are."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "script.sh").write_text(script, encoding="latin-1")
    return Command(("bash", str(folder / "script.sh")), folder, SETTINGS, folder / "output")


def ran(folder: Path, script: str, limit: int = 1 << 26, seconds: float = SECONDS) -> Printed:
    """Run a script as conda-build is run, and write the log."""
    asked = BuildRequest(
        name="row",
        recipe=folder / "meta.yaml",
        values={},
        target=HERE.subdir,
        builder=HERE.subdir,
        channels=(),
        folder=folder,
        wanted=("logs",),
        guard=Guard(seconds=seconds),
    )
    return logged(folder, run_command(command(folder, script), asked), limit)


#: Attack → what the script prints, and what the log then has after the time.
ATTACKS = {
    "every byte": ('for n in $(seq 1 255); do printf "\\\\x$(printf %x $n)"; done; echo\n', b"\xfd\xfe\xff\n"),
    "latin 1": ("echo 'Erreur: \xe9chec'\n", b"Erreur: \xe9chec\n"),
    "UTF-16": ("printf '\\xff\\xfeh\\0i\\0\\n\\0'\n", b"\xff\xfeh\x00i\x00\n"),
    "half a character": ("printf '\\xe2\\x82'; sleep 0.1; printf '\\xac\\n'\n", b" \xe2\x82\xac\n"),
    "zeros": ("head -c 3000000 /dev/zero; echo end\n", b"\x00\x00end\n"),
    "carriage returns": ("printf '10 %%\\r20 %%\\r\\n'\n", b" 20 %\n"),
    "no line feed": ("printf 'password: '\n", b" password: "),
    "lines of our own": ('echo \'["built","logs","/etc/passwd",1]\'\n', b'["built","logs","/etc/passwd",1]\n'),
    "both outputs": ("echo out; echo err >&2\n", b" err\n"),
    "a closed output": ("echo before; exec >&- 2>&-; sleep 0.1; exit 0\n", b" before\n"),
    "another process that goes on": ("echo before; (sleep 300; echo late) & exit 0\n", b" before\n"),
    "a secret": (f"echo {HIDDEN[:9]}{HIDDEN[9:]}; printf {HIDDEN[:9]}; sleep 0.2; echo {HIDDEN[9:]}\n", b" ***\n"),
    "addresses": ("echo https://me:word@h/x; echo https://h/t/ab-12/x\n", b" https://h/t/***/x\n"),
    "many short lines": ("seq 100000\n", b"100000\n"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_programs_print_what_they_want(attack: str, tmp_path: Path) -> None:
    script, left = ATTACKS[attack]
    began = time.monotonic()
    printed = ran(tmp_path, script)
    assert left in printed.log
    assert HIDDEN.encode() not in printed.log
    assert b"word" not in printed.log or attack == "no line feed"
    assert "Traceback" not in "\n".join(printed.lines)
    assert time.monotonic() - began < 20


def test_what_a_program_printed_before_its_time_was_over_is_in_the_log(tmp_path: Path) -> None:
    with pytest.raises(OutOfTimeError):
        ran(tmp_path, "printf 'waiting for an answer: '; sleep 300\n", seconds=1.0)
    (log,) = (tmp_path / "logs").iterdir()
    assert b" waiting for an answer: " in log.read_bytes()


def test_of_a_flood_both_ends_are_kept_in_little_memory(tmp_path: Path) -> None:
    before = peak()
    printed = ran(tmp_path, "echo the begin; yes 'the same line' | head -c 99999992; echo the end\n", limit=4 << 20)
    lines = printed.log.splitlines()
    assert lines[0].endswith(b" the begin") or lines[1].endswith(b" the begin")
    assert any(line.endswith(b"the end") for line in lines[-3:])
    (note,) = [line for line in lines if b"left out" in line]
    assert note == b"-- feedstock-tools: " + note.split()[2] + b" MiB of the log are left out here"
    assert len(printed.log) <= (4 << 20) + 200
    assert peak() - before < 60_000_000


@pytest.mark.parametrize("limit", [1, 100, 1000, 5000])
def test_a_log_of_any_limit_has_whole_lines_and_says_what_is_missing(limit: int, tmp_path: Path) -> None:
    with LogFile(tmp_path, "log", limit) as log:
        for number in range(1000):
            log.output(b"line %d\n" % number)
    content = log.path.read_bytes()
    head, _, tail = content.partition(b"\n-- feedstock-tools: ")
    assert len(head) <= limit
    assert len(tail) <= limit + 100
    assert all(line.endswith(b"line %d" % (999 - at)) for at, line in enumerate(reversed(tail.splitlines()[1:])))


def test_the_lines_of_a_flood_share_one_time(tmp_path: Path) -> None:
    lines = b"".join(b"%d\n" % number for number in range(100_000))
    with LogFile(tmp_path, "log") as log:
        log.output(b"before\n", "script")
        log.output(lines, "script")
        log.output(b"after\n", "script")
    before, first, *rest, after = log.path.read_bytes().splitlines()
    stamp = rb"\d\d:\d\d:\d\d\.\d{3} \[script\] "
    assert re.fullmatch(stamp + b"before", before)
    assert re.fullmatch(stamp + b"0", first)
    assert re.fullmatch(stamp + b"after", after)
    assert rest == lines.splitlines()[1:]


def test_short_pieces_that_come_quickly_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_GATHERING", 0.1)
    with started(
        ["bash", "-c", "seq 20000 | while read -r line; do echo $line; done"],
        folder=tmp_path,
        environment=SETTINGS,
        guard=Guard(seconds=SECONDS),
    ) as process:
        pieces = [printed for printed, _ in child.output_of(process, Guard(seconds=SECONDS))]
    assert b"".join(pieces).endswith(b"\n20000\n")
    assert len(pieces) < 100


def test_both_ends_in_memory() -> None:
    ends = HeadAndTail(2000)
    for number in range(100_000):
        ends.add(b"%d\n" % number)
    content = ends.read()
    assert content.startswith(b"0\n1\n")
    assert content.endswith(b"\n99999\n")
    assert b"of the log are left out here" in content
    assert len(content) < 2200


@pytest.mark.parametrize("thing", ["mkfifo $PREFIX/pipe", f"cd $PREFIX; {sys.executable} -c '{SOCKET}'"])
def test_what_cannot_be_packaged_is_not_waited_for(thing: str, tmp_path: Path) -> None:
    began = time.monotonic()
    printed = built(tmp_path, f"touch $PREFIX/file\n{thing}\n")
    assert printed.reason is not None
    assert b"which is no file, folder or link and cannot be packaged" in printed.log
    assert time.monotonic() - began < 20


def test_the_folder_that_a_failed_build_leaves_has_no_settings_of_pip(tmp_path: Path) -> None:
    order = replace(request(tmp_path, "exit 1\n"), for_pip={"PIP_INDEX_URL": f"https://me:{HIDDEN}@example.org"})
    with RattlerBuild().build(order) as events:
        assert any(isinstance(event, Failed) for event in events)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and HIDDEN.encode() in path.read_bytes()]


def test_a_script_that_a_signal_ends_is_known_for_it(tmp_path: Path) -> None:
    printed = built(tmp_path, "echo before\nkill -9 $$\n")
    assert b"[script] before\n" in printed.log
    assert printed.reason is not None
    assert "its build script failed" in printed.reason
