"""The process that runs a package's own tests with rattler-build, started by `running`.

rattler-build holds the interpreter's lock all the while, so a supervisor is forked off before it is imported, as for a
build: it watches standard input, which only the parent holds open.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from feedstock_tools.build.engines.emulation import Emulator, emulate
from feedstock_tools.build.engines.process import supervise

__all__ = ["main"]


class _Lines:
    """The progress callback: the log, line by line, on standard output."""

    def on_log(self, event: Any) -> None:
        """Called by rattler-build for each line of its log."""
        sys.stdout.write(f"{event.message}\n")
        sys.stdout.flush()

    def on_build_step(self, event: Any) -> None:
        """Called by rattler-build at each step."""
        sys.stdout.write(f"{event.message}\n")

    def on_download_start(self, event: Any) -> None:
        """Called by rattler-build when it fetches something."""
        sys.stdout.write(f"Downloading {event.url}\n")

    def on_download_progress(self, event: Any) -> None:
        """Called by rattler-build while it fetches: nothing for a log."""

    def on_download_complete(self, event: Any) -> None:
        """Called by rattler-build when it has fetched something."""


def main(request: str) -> int:
    """Run the tests; the exit status is 0 where all pass, 1 where one fails.

    Args:
        request: the path of a JSON file with the `package`, the `channels` and, for a package of another platform, the
            `emulator` (`Emulator.to_json`); the file lies in a private folder.
    """
    asked = json.loads(Path(request).read_text(encoding="utf-8"))

    def work() -> int:
        if asked.get("emulator"):
            emulate(Emulator(**asked["emulator"]), Path(request).parent)
        return _test(asked)

    return supervise(work, sys.stdin.fileno())


def _test(request: Any) -> int:
    from rattler_build import Package, RattlerBuildError

    package = Package.from_file(request["package"])
    if not package.test_count:
        sys.stdout.write("The package brings no tests.\n")
    passed = True
    for number in range(package.test_count):
        sys.stdout.write(f"Test {number + 1} of {package.test_count}\n")
        try:
            result = package.run_test(
                number, channel=request["channels"], channel_priority="strict", progress_callback=_Lines()
            )
        except RattlerBuildError as error:
            sys.stdout.write(f"{error}\n")
            passed = False
        else:
            passed = passed and bool(result.success)
            if not result.success and result.output:
                sys.stdout.write(f"{result.output[-1]}\n")  # what failed, which the progress does not tell
    sys.stdout.flush()
    return 0 if passed else 1
