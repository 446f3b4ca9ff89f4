"""The process that runs a package's own tests with rattler-build, started by `running`.

rattler-build holds the interpreter's lock during the tests, so a supervisor is forked off before it is imported, as for
a build: it watches standard input, which only the parent keeps open.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.builds.engines.embedded.emulation import Emulator, emulate
from feedstock_tools.builds.engines.embedded.script_output import EngineLog, print_past_engine
from feedstock_tools.builds.engines.process.supervision import supervise
from feedstock_tools.channel.packages.reading import read_documents

if TYPE_CHECKING:
    from rattler_build import Package

#: The names of the scripts to which conda-build writes a recipe's tests (conda_build/create_test.py).
_ENDINGS = ("sh", "bat", "py", "pl", "r")


def main(request: str) -> int:
    """Run the tests; the exit status is 0 if all pass, 1 if one fails.

    Args:
        request: the path of a JSON file with the `package`, the `channels` and, for a package of another platform, the
            `emulator` (`Emulator.to_json`); the file lies in a private folder.
    """
    order = json.loads(Path(request).read_text(encoding="utf-8"))

    def work() -> int:
        print_past_engine(Path(request).parent, sys.stdout.fileno())
        if order.get("emulator"):
            emulate(Emulator(**order["emulator"]), Path(request).parent)
        return _test(order)

    return supervise(work, sys.stdin.fileno())


def _test(request: Any) -> int:
    from rattler_build import Package

    package = Package.from_file(request["package"])
    numbers = [*range(package.test_count)] or ([None] if _has_script(Path(request["package"])) else [])
    if not numbers:
        sys.stdout.write("The package has no tests.\n")
    passed = True
    for at, number in enumerate(numbers, 1):
        sys.stdout.write(f"Test {at} of {len(numbers)}\n")
        sys.stdout.flush()
        passed = _passes(package, number, request["channels"]) and passed
    sys.stdout.flush()
    return 0 if passed else 1


def _has_script(package: Path) -> bool:
    """Whether a package has tests in conda-build's form, which rattler-build does not count."""
    return any(read_documents(package, [f"info/test/run_test.{ending}" for ending in _ENDINGS]).values())


def _passes(package: Package, number: int | None, channels: Sequence[str]) -> bool:
    """Run one test of a package; without a number those of conda-build, which pass or raise and return no result."""
    from rattler_build import RattlerBuildError

    options: dict[str, Any] = {"channel": channels, "channel_priority": "strict", "progress_callback": EngineLog()}
    try:
        results = package.run_tests(**options) if number is None else [package.run_test(number, **options)]
    except RattlerBuildError as error:
        sys.stdout.write(f"{error}\n")
        return False
    for result in results:
        if not result.success and result.output:
            sys.stdout.write(f"{result.output[-1]}\n")  # the failed command, which the progress does not show
    return all(result.success for result in results)
