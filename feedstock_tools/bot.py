"""A rerender for programs that call conda-smithy's today, such as conda-forge's bot: same arguments, same result.

    from feedstock_tools.bot import rerender_feedstock

The function runs this program's command in a child process, so that a time limit ends it with all that it started, and
nothing of a feedstock stays in the memory of the caller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.processes import PACKAGES


class RerenderMessage(str):
    """The commit message of a rerender that changed something: a text that also knows the changed files.

    `changed`: paths within the feedstock.
    """

    changed: tuple[str, ...]

    def __new__(cls, text: str, changed: tuple[str, ...]) -> RerenderMessage:
        """A message with the files that it is about."""
        message = super().__new__(cls, text)
        message.changed = changed
        return message

    @property
    def is_nontrivial(self) -> bool:
        """Whether files changed besides the recipe's and the README: what conda-forge's bot calls nontrivial."""
        return any(not name.startswith("recipe/") and not Path(name).name.startswith("README") for name in self.changed)


def rerender_feedstock(
    feedstock_dir: str | os.PathLike[str],
    timeout: float | None = 900,
    use_container: bool | None = None,
    exclusive_config_file: str | os.PathLike[str] | None = None,
) -> RerenderMessage | None:
    """Rerender a clone of a feedstock and stage what changes.

    Args:
        feedstock_dir: the top of a git repository.
        timeout: in seconds.
        use_container: not used: nothing of a feedstock is executed in this process.
        exclusive_config_file: a variant file in place of the newest pinning; relative to the feedstock.

    Returns:
        The message for the commit, or None if there is nothing to commit.

    Raises:
        InputError: the feedstock, its recipe or the file cannot be read.
        WorkError: it did not end in time, or cannot be written.

    >>> message = rerender_feedstock("clone", exclusive_config_file="../pinning/conda_build_config.yaml")
    >>> message.is_nontrivial, message.changed[0]
    (True, '.ci_support/linux_64_cuda_compiler_version12.9.yaml')
    """
    words = ["-P", "-m", "feedstock_tools", "rerender", "--stage", "--json", "--feedstock", feedstock_dir]
    if exclusive_config_file is not None:
        words += ["--pinning", Path(feedstock_dir) / exclusive_config_file]
    same = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGES), *filter(None, sys.path)])}
    try:
        run = subprocess.run(
            [sys.executable, *words], env=same, capture_output=True, text=True, check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired as error:
        raise WorkError(f"the rerender did not end within {timeout:g} s", path=Path(feedstock_dir)) from error
    if run.returncode:
        kind: type[FeedstockError] = InputError if run.returncode == 2 else WorkError
        raise kind(run.stderr.strip().removeprefix("error: "))
    report = json.loads(run.stdout)
    changed = tuple(change["file"] for change in report["changes"])
    return RerenderMessage(report["message"], changed) if report["message"] else None
