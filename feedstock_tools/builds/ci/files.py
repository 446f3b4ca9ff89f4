"""Files with which CI services build the packages missing from a channel; conda-smithy's files have other names and
stay."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools import __version__
from feedstock_tools.builds.ci.jobs import MACHINES
from feedstock_tools.data import text_templates
from feedstock_tools.errors import InputError
from feedstock_tools.files.writing import write_whole
from feedstock_tools.reading import read_bytes, read_text

#: Service → the file it reads and the template of that file.
SERVICES: Mapping[str, tuple[str, str]] = {
    "github": (".github/workflows/feedstock-tools.yml", "ci-github.yml.j2"),
    "azure": (".azure-pipelines/feedstock-tools.yml", "ci-azure.yml.j2"),
}
_MARK = "# Written by `feedstock-tools ci`"
#: Text that can be written into a file of a service unchanged: no quote, no expression, no line break.
_PLAIN = re.compile(r"[A-Za-z0-9 @:/._+~=<>!,\[\]-]+")


@dataclass(frozen=True, slots=True)
class CiFiles:
    """The texts of files, by their path below the feedstock."""

    feedstock: Path
    texts: Mapping[str, str]

    def stale(self) -> tuple[str, ...]:
        """The files that are missing or different.

        Raises:
            InputError: this program did not write an existing file of that name.
        """
        return tuple(name for name, text in self.texts.items() if self._present(name) != text)

    def write(self) -> tuple[str, ...]:
        """Write the stale files, each atomically, and return their paths.

        Raises:
            InputError: like `stale`; nothing is written then.
            WorkError: a file cannot be written.
        """
        stale = self.stale()
        for name in stale:
            write_whole(self.feedstock / name, self.texts[name])
        return stale

    def _present(self, name: str) -> str | None:
        path = self.feedstock / name
        if not path.exists():
            return None
        text = read_text(path, within=self.feedstock)
        if not text.startswith(_MARK):
            raise InputError("this file was not written by `feedstock-tools ci`", path=path, hint="Move it away.")
        return text


def ci_files(feedstock: Path, services: Sequence[str], *, install: str | None, channel: str, branch: str) -> CiFiles:
    """The files of some services.

    Args:
        install: the requirement that pip installs; None: this version of feedstock-tools.
        channel: the channel whose packages are not built again.
        branch: pushes to this branch are built, as well as pull requests.

    Raises:
        InputError: a value has characters that must not be in such a file.
    """
    values = {"install": install or f"feedstock-tools=={__version__}", "channel": channel, "branch": branch}
    for name, value in values.items():
        if not _PLAIN.fullmatch(value):
            raise InputError(f"{value!r} cannot be the {name} in a CI file")
    environment = text_templates("[", "]")
    environment.filters["quoted"] = json.dumps
    view = {**values, "build": _build_command(feedstock), "machines": MACHINES}
    texts = {SERVICES[service][0]: environment.get_template(SERVICES[service][1]).render(view) for service in services}
    return CiFiles(feedstock, texts)


def _build_command(feedstock: Path) -> str:
    """The feedstock's `build-locally.py` if it is ours; conda-smithy's has the same name but other arguments."""
    script = feedstock / "build-locally.py"
    is_own = script.is_file() and b"feedstock_tools" in read_bytes(script, within=feedstock)
    return "python build-locally.py" if is_own else "feedstock-tools build"
