"""The man pages: one for each command, with its options, as troff reads it without a warning."""

from __future__ import annotations

import shutil
import subprocess

import click
import pytest

from feedstock_tools.cli import program
from maintenance.drawn import COMMANDS
from maintenance.man import pages
from tests.support.needs import needs

PAGES = pages()


def test_every_command_has_a_page() -> None:
    assert set(PAGES) == {"feedstock-tools.1", *(f"feedstock-tools-{name}.1" for name in program.COMMANDS)}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_every_option_of_its_command(name: str) -> None:
    page = PAGES[f"feedstock-tools-{name.split()[0]}.1"].replace(r"\-", "-")
    options = {option.opts[-1] for option in COMMANDS[name].params if isinstance(option, click.Option)}
    assert not {option for option in options if option not in page}


@needs("system", shutil.which("groff"), "groff")
def test_troff_reads_the_pages_without_a_warning() -> None:
    whole = "".join(PAGES.values())
    done = subprocess.run(
        ["groff", "-ww", "-man", "-Tutf8", "-P-cbou"], input=whole, capture_output=True, text=True, check=True
    )
    assert not done.stderr
    assert "feedstock-tools build [OPTIONS] [NAME]..." in done.stdout
