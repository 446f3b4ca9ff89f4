"""A feedstock that builds in a fraction of a second, and copies of the examples."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.builds.ledger import BuildRecord, Ledger
from feedstock_tools.platforms import Platform
from tests.support import command
from tests.support.paths import EXAMPLES

HERE = Platform.here()
#: Short names of the tiny feedstock's configurations; `_py3.11` and `_py3.12` choose a row of one.
GPU = f"{HERE.name}_cuda11.2"
CPU = f"{HERE.name}_cpu"
#: A build script for `edit` that leaves its session, ignores signals, forks, and creates a file once it has begun.
STUBBORN = """
trap '' INT TERM HUP
setsid sh -c 'trap "" INT TERM HUP; sleep 987' &
sleep 987 &
touch "$RECIPE_DIR/../begun"
sleep 987
mkdir"""
_TINY = Path(__file__).with_name("tiny-feedstock")


@dataclass(frozen=True)
class TinyFeedstock:
    """A copy of the tiny feedstock, and the commands of feedstock-tools in its folder."""

    folder: Path
    channel: Path | str

    def command(self, *arguments: str) -> list[str]:
        """`feedstock-tools build` with the tiny channel."""
        return command.tool("build", *arguments, "--channel", str(self.channel))

    def build(self, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run it in the feedstock's folder."""
        return command.run(self.command(*arguments), self.folder, command.environment(**(environment or {})))

    def start_build(self, *arguments: str, stderr: int = subprocess.STDOUT) -> subprocess.Popen[str]:
        """Start it there; what it prints is read through a pipe."""
        return command.start(self.command(*arguments), self.folder, stderr=stderr)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Any command of feedstock-tools in the feedstock's folder."""
        return command.run(command.tool(*arguments), self.folder, command.environment(**variables))

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that answers and starts nothing, in this process and the feedstock's folder."""
        return command.here(*arguments, folder=self.folder)

    def patched_build(self, program: str, *arguments: str) -> list[str]:
        """The command of a build with modules of feedstock-tools changed by some statements."""
        return command.patched(program, "build", *arguments, "--channel", str(self.channel))

    @property
    def artifacts(self) -> Path:
        """Where it builds."""
        return self.folder / "build_artifacts"

    def packages(self) -> list[str]:
        """The files in its channel, sorted."""
        return sorted(path.name for path in self.artifacts.glob("*/*.conda") if path.parent.name != "pkgs")

    def index(self) -> dict[str, dict[str, Any]]:
        """Package → its entry in the channel's index."""
        file = self.artifacts / HERE.subdir / "repodata.json"
        found: dict[str, dict[str, Any]] = json.loads(file.read_text())["packages.conda"] if file.is_file() else {}
        return found

    def records(self) -> tuple[BuildRecord, ...]:
        """Every build in its ledger."""
        with Ledger(self.artifacts / "ledger.sqlite") as ledger:
            return ledger.builds()

    def keep_outputs(self, number: int) -> None:
        """Take all outputs but the first ones out of the recipe: each costs a sixth of a build or more."""
        path = self.folder / "recipe" / "recipe.yaml"
        outputs, about, rest = path.read_text().partition("about:\n")
        path.write_text("  - package:\n".join(outputs.split("  - package:\n")[: number + 1]) + about + rest)

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a file of the feedstock."""
        path = self.folder / name
        text = path.read_text()
        assert old in text, f"{name} does not hold {old!r}"
        path.write_text(text.replace(old, new))


def copy_of_tiny(folder: Path) -> Path:
    """A fresh copy of the tiny feedstock; its configurations are for the platform that the tests run on."""
    shutil.copytree(_TINY, folder)
    if HERE.subdir != "linux-64":
        for path in (folder / ".ci_support").glob("linux_64_*.yaml"):
            text = path.read_text().replace("linux-64", HERE.subdir)
            path.with_name(path.name.replace("linux_64", HERE.name)).write_text(text)
            path.unlink()
    return folder


def copy_of_example(name: str, folder: Path) -> Path:
    """A copy of an example with nothing built, in a folder of its name below `folder`."""
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("build_artifacts")))
