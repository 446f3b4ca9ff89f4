"""Feed changed copies of feedstocks to all readers, and keep those that a reader neither accepts nor refuses cleanly.

    python maintenance/fuzz_readers.py [FEEDSTOCK ...] [--pinning DIR] [--minutes 10] [--seed 1] [--keep FOLDER]

A run changes one file of one feedstock (recipe, variants, migrations, conda-forge.yml, configurations, CI files, spec),
and then rerenders, lists outputs, explains, plans, rehearses and generates. It is sound if each of them succeeds or
raises an error of ours, within four seconds of processor time, and all within 500 MB. A run that is not sound is kept
as a folder with the feedstock, the traceback and the number of the run, which `--run` repeats. Without a FEEDSTOCK, it
uses those of the tests and examples. Run it in the root of the repository, with PYTHONPATH=. if the package is not
installed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from feedstock_tools.errors import FeedstockError

ROOT = Path(__file__).resolve().parent.parent
#: Twice what a command may take, since other work may slow it.
SECONDS = 4.0
MEMORY = 500 * 1024 * 1024
#: Runs of one process; a fresh one forgets the caches, and what a crash may have damaged.
RUNS_A_PROCESS = 150
READ = (
    *("recipe/meta.yaml", "recipe/recipe.yaml", "recipe/conda_build_config.yaml", "recipe/variants.yaml"),
    *("recipe/build.sh", "conda-forge.yml", "feedstock.yaml", ".ci_support/*.yaml", ".ci_support/migrations/*.yaml"),
    *(".azure-pipelines/*.yml", ".github/workflows/conda-build.yml"),
)
TOKENS = (
    *("{{ ", " }}", "{% for x in range(9) %}", "{% endfor %}", "{% if ", "{% set a = a ~ a %}", "{{ a|join(a) }}"),
    *("${{ ", "[linux]", "  # [", "]", "[py<3 and (", "[not ", "'''", '"', "'", "`", "\\", "|\n", ">\n", "- - - "),
    *("? ", ": ", ":", "&a ", "*a", "<<: *a", "!!python/object:os.system ", "!!binary ", "!!set ", "---\n"),
    *("...\n", "%YAML 1.1\n", "~", "null", "true", "1e999", "-1", "0x10", "9" * 400, "1_000", "2020-01-01", ".inf"),
    *("None", "__class__", "os.environ", "../../x", "/etc/passwd", "..", "a/b", "zip_keys:\n"),
    *("  - [python, numpy]\n", "migrator_ts: 1\n", "operation: key_add\n", "primary_key: python\n", "ordering:\n"),
    *("pin_run_as_build:\n", "extend_keys: [python]\n", "python:\n  - 3.12\n", "skip: true\n", "noarch: python\n"),
    *("outputs:\n", "{{ compiler('cuda') }}", "{{ pin_subpackage('a', exact=True) }}"),
    *("{{ pin_compatible('numpy') }}", "if: ", "then: ", "else: ", "match(python, '<3')", "\x00", "\r", "\r\n"),
    *("\t", "\x0c", "\u2028", "\x85", "\ufeff", "\U0001f600", "\u0130", "[" * 60, "{" * 60, "(" * 200, "a" * 5000),
    *("*" * 40, "#"),
)


def changed(text: str, other: str, chance: random.Random) -> str:
    """`text` after one to four changes; some take a piece of `other`."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
        text = chance.choice(CHANGES)(text, other, chance)
    return text


def _span(text: str, chance: random.Random, longest: int = 60) -> tuple[int, int]:
    start = chance.randrange(len(text) + 1)
    return start, min(len(text), start + chance.randrange(longest))


def _insert(text: str, _other: str, chance: random.Random) -> str:
    start, _ = _span(text, chance)
    return text[:start] + chance.choice(TOKENS) + text[start:]


def _replace(text: str, _other: str, chance: random.Random) -> str:
    start, end = _span(text, chance, 12)
    return text[:start] + chance.choice(TOKENS) + text[end:]


def _delete(text: str, _other: str, chance: random.Random) -> str:
    start, end = _span(text, chance)
    return text[:start] + text[end:]


def _repeat(text: str, _other: str, chance: random.Random) -> str:
    start, end = _span(text, chance, 200)
    return text[:start] + text[start:end] * chance.choice((2, 3, 50, 2000)) + text[end:]


def _flip(text: str, _other: str, chance: random.Random) -> str:
    start, _ = _span(text, chance)
    return text[:start] + chr(chance.randrange(256)) + text[start + 1 :]


def _lines(text: str, other: str, chance: random.Random) -> str:
    """Take lines of another file, or of this one from elsewhere, or drop or indent some lines."""
    lines, others = text.splitlines(True), other.splitlines(True)
    at = chance.randrange(len(lines) + 1)
    source = chance.choice((lines, others))
    start = chance.randrange(len(source) + 1)
    piece = source[start : start + chance.randrange(12)]
    indent = " " * chance.randrange(5)
    return "".join([*lines[:at], *(indent + line for line in piece), *lines[at + chance.randrange(4) :]])


def _value(text: str, _other: str, chance: random.Random) -> str:
    """Give a line `key: value` another value."""
    lines = text.splitlines(True)
    places = [at for at, line in enumerate(lines) if ":" in line]
    if places:
        at = chance.choice(places)
        lines[at] = f"{lines[at].split(':')[0]}: {chance.choice(TOKENS)}\n"
    return "".join(lines)


CHANGES: tuple[Callable[[str, str, random.Random], str], ...] = (
    *(_insert, _replace, _delete, _repeat, _flip, _lines, _lines, _value, _value),
)


def read_everything(feedstock: Path, pinning: Path | None, chance: random.Random) -> None:
    """Call each reader; an error of ours ends one of them, anything else ends the run."""
    from feedstock_tools.generate import read_spec, render
    from feedstock_tools.rerender.configurations.configuration import read_configurations
    from feedstock_tools.rerender.outputs import output_files
    from feedstock_tools.rerender.rerendering import rerender
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.why.reasons import explain

    keys: list[str] = []
    with _bounded():
        rules = Rules.parse(chance.choice(("2026.8.5", "2026.8.5", "3.14.1")))
        found = rerender(feedstock, pinning=pinning, rules=rules)
        keys = sorted({key for one in found.configurations for key in one.values})
        list(found.changes().diff())
    with _bounded():
        output_files(feedstock, read_configurations(feedstock)[:1])
    if keys and chance.random() < 0.2:
        with _bounded():
            explain(feedstock, chance.choice(keys), pinning=pinning)
    with _bounded():
        _plan(feedstock)
    if (feedstock / "feedstock.yaml").exists():
        with _bounded():
            render(read_spec(feedstock), chance.choice(("v0", "v1")))


def _plan(feedstock: Path) -> None:
    """The reading of `build --list`, `status`, `plan` and `rehearse`: the plan, its outputs and their environments."""
    from feedstock_tools.builds.matrix.matrix import read_matrix
    from feedstock_tools.builds.plan.workspace import open_workspace

    workspace = open_workspace(feedstock, feedstock / "artifacts", ("conda-forge",), {"PATH": os.environ["PATH"]})
    chosen = workspace.chosen()
    read_matrix(workspace, chosen)
    with tempfile.TemporaryDirectory() as folder:
        channel = Path(folder, "noarch", "repodata.json")
        channel.parent.mkdir()
        channel.write_text("{}")
        _rehearse(feedstock, Path(folder))


def _rehearse(feedstock: Path, channel: Path) -> None:
    from feedstock_tools.check.rehearsal import rehearse_configurations
    from feedstock_tools.rerender.configurations.configuration import read_configurations

    rehearse_configurations(feedstock, read_configurations(feedstock)[:1], [channel.as_uri()])


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Limit the processor time of one command, and accept errors of ours."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    except FeedstockError:
        return
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class _TooSlowError(BaseException):
    """A run took more than its share of processor time; no reader can catch it by mistake."""


def _too_slow(_signal: int, _frame: FrameType | None) -> None:
    raise _TooSlowError


def one_run(number: int, seed: int, feedstocks: list[Path], pinning: Path | None, scratch: Path) -> str:
    """Change a file at random, and read the feedstock; return '' if that was sound, else a description."""
    chance = random.Random(f"{seed}:{number}")  # noqa: S311 - repeatable on purpose
    source = chance.choice(feedstocks)
    files = [path for pattern in READ for path in sorted(source.glob(pattern))[:2]]
    chosen = chance.choice(files)
    other = chance.choice(files).read_text(encoding="utf-8", errors="replace")
    feedstock = scratch / source.name
    shutil.rmtree(feedstock, ignore_errors=True)
    for path in files:
        target = feedstock / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    text = changed(chosen.read_text(encoding="utf-8", errors="replace"), other, chance)
    (feedstock / chosen.relative_to(source)).write_bytes(text.encode("utf-8", "surrogatepass"))
    own = source / "pinning"
    (scratch / "run").write_text(f"{number} {seed} {chosen}\n")
    try:
        read_everything(feedstock, own if own.is_dir() else pinning, chance)
    except _TooSlowError:
        return f"more than {SECONDS} s\n{traceback.format_exc()}"
    except BaseException:  # any exception that is not one of our errors
        return traceback.format_exc()
    return ""


def _keep(scratch: Path, keep: Path, what: str) -> None:
    number, seed, _ = (scratch / "run").read_text().split(maxsplit=2)
    folder = keep / f"{seed}-{number}"
    shutil.copytree(scratch, folder, dirs_exist_ok=True)
    (folder / "what").write_text(what)
    print(f"run {number}: {what.strip().splitlines()[-1][:200]}", flush=True)


def _process(numbers: Iterator[int], args: argparse.Namespace, scratch: Path, end: float) -> None:
    """Some runs in this process, which has bounds on memory and on time spent where signals cannot reach."""
    signal.signal(signal.SIGPROF, _too_slow)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (pages + 2 * MEMORY, resource.RLIM_INFINITY))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in numbers:
        if time.monotonic() > end:
            return
        what = one_run(number, args.seed, args.feedstocks, args.pinning, scratch)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if not what and (used - before) * 1024 > MEMORY:
            what = f"needs {(used - before) // 1024} MiB"
        if what:
            _keep(scratch, args.keep, what)
        before = max(before, used)


def main() -> int:
    """Run until the time is over; return 1 if any run was kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("feedstocks", nargs="*", type=Path)
    parser.add_argument("--pinning", type=Path, help="for feedstocks that have none of their own in pinning/")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz-findings")
    parser.add_argument("--run", type=int, help="repeat this run alone, without bounds")
    args = parser.parse_args()
    tests = ROOT / "tests" / "rerender"
    args.feedstocks = args.feedstocks or [
        *sorted((tests / "recorded").iterdir()),
        *(
            tests / "solver-feedstock",
            ROOT / "tests" / "support" / "tiny-feedstock",
            ROOT / "examples" / "gpuprobe",
            ROOT / "examples" / "tensorflow",
        ),
    ]
    args.feedstocks = [path.resolve() for path in args.feedstocks]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        if args.run is not None:
            print(one_run(args.run, args.seed, args.feedstocks, args.pinning, scratch) or "sound")
            return 0
        started, number = time.monotonic(), 0
        end = started + args.minutes * 60
        while time.monotonic() < end:
            child = os.fork()
            if child == 0:
                _process(iter(range(number, number + RUNS_A_PROCESS)), args, scratch, end)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if status:
                _keep(scratch, args.keep, f"the process ended with {os.waitstatus_to_exitcode(status)}")
                number = int((scratch / "run").read_text().split()[0]) + 1 - RUNS_A_PROCESS
            number += RUNS_A_PROCESS
    print(f"{number} runs in {(time.monotonic() - started) / 60:.1f} minutes")
    return int(args.keep.is_dir())


if __name__ == "__main__":
    sys.exit(main())
