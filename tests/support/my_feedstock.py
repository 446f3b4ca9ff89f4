"""The feedstock of docs/my-feedstock.md: `python -m tests.support.my_feedstock FOLDER` makes it, to type along."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path

FIXTURE = Path(__file__).parent / "wavekit"
#: Where the recipe has its sources from; what is made has them in its folder.
ADDRESS = "https://example.org/wavekit/"


def make_source(folder: Path) -> str:
    """Pack the sources of version 1.3.0, the same bytes every time; gives their SHA-256."""
    source = FIXTURE / "wavekit-1.3.0"
    path = folder / "wavekit-1.3.0.tar.bz2"
    with tarfile.open(path, "w:bz2", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(file for file in source.rglob("*") if file.is_file() and file.suffix != ".pyc"):
            content = file.read_bytes()
            member = tarfile.TarInfo(f"wavekit-1.3.0/{file.relative_to(source).as_posix()}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return sha256(path.read_bytes()).hexdigest()


def make_feedstock(folder: Path) -> Path:
    """The feedstock in git, its pinning beside it, and its sources where its recipe has them from."""
    feedstock = Path(shutil.copytree(FIXTURE / "wavekit-feedstock", folder / "wavekit-feedstock"))
    shutil.copytree(FIXTURE / "pinning", folder / "pinning")
    recipe = feedstock / "recipe" / "meta.yaml"
    recipe.write_text(recipe.read_text().replace(ADDRESS, f"{folder.as_uri()}/"))
    git = ["git", "-C", str(feedstock)]
    for words in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.name", "anna"],
        ["config", "user.email", "anna@example.org"],
        ["add", "--all"],
        ["commit", "--quiet", "-m", "1.2.0"],
    ):
        subprocess.run([*git, *words], check=True)
    return feedstock


if __name__ == "__main__":
    target = Path(sys.argv[1]).absolute()
    target.mkdir(parents=True)
    make_source(target)
    print(make_feedstock(target))  # noqa: T201
