"""Projects that `init` reads, and the specs that it writes for them."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from feedstock_tools.cli.spec import init as command


def project_in(folder: Path, **files: str) -> Path:
    """The folder with files; `__` in a name stands for a dot."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def spec_text_of(folder: Path, **files: str) -> str:
    """The spec that `init` writes for a project with these files."""
    (folder / "project").mkdir()
    words = [str(project_in(folder / "project", **files)), "-o", str(folder / "feedstock")]
    made = CliRunner().invoke(command, words, standalone_mode=False)
    assert made.exception is None, made.exception
    return (folder / "feedstock" / "feedstock.yaml").read_text(encoding="utf-8")
