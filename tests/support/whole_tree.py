"""A feedstock named demo, and its whole tree with the templates of a release of conda-smithy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import find_release
from tests.support import command

RECIPE = """
package:
  name: demo
  version: "1.0"
build:
  number: 0
  skip: true  # [win]
requirements:
  build:
    - {{ compiler('c') }}
about:
  summary: A demonstration
  license: MIT
extra:
  recipe-maintainers:
    - beta
    - conda-forge/alpha
"""
PINNING = "c_compiler:\n- gcc\nchannel_targets:\n- conda-forge main\ndocker_image:\n- an-image\n"
FORGE = "github_actions: {self_hosted: false}\n"
NEWEST = "2026.8.5"


def copy_of_demo(folder: Path) -> Path:
    """Write the feedstock to a folder."""
    return write_files(folder, {"recipe/meta.yaml": RECIPE, "conda-forge.yml": FORGE})


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """Write texts by their paths below a folder, and return it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def render_tree(feedstock: Path, release: Path, rules: str = NEWEST) -> None:
    """Rerender a feedstock with a release; its pinning lies beside it."""
    pinning = feedstock.parent / "conda_build_config.yaml"
    pinning.write_text(PINNING)
    rerender(feedstock, pinning=pinning, rules=Rules.parse(rules), smithy=find_release(release)).changes().apply()


def contents(folder: Path) -> dict[str, str]:
    """Every file outside the recipe with its text."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "recipe" not in path.relative_to(folder).parts
    }


def in_new_process(program: str) -> subprocess.CompletedProcess[str]:
    """Run statements in a process that has rerendered nothing, after the imports that rerendering takes."""
    imports = (
        "from pathlib import Path\n"
        "from feedstock_tools.rerender.rerendering import rerender\n"
        "from feedstock_tools.rerender.smithy import find_release\n"
    )
    return command.run([sys.executable, "-c", f"{imports}{program}"])
