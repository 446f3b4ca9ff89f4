"""Modules compiled once before the workers start, on all cores: each worker would compile the same ones, all at once.

pytest keeps the tests of a file compiled with its own assertions. Compiling all took a worker longer than collecting.
"""

from __future__ import annotations

import compileall
import os
import sys
from fnmatch import fnmatch
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest
from _pytest.assertion import rewrite

from tests.support.paths import ROOT

#: Names of files whose assertions pytest rewrites.
_REWRITTEN = ("test_*.py", "conftest.py")
_FOLDERS = ("feedstock_tools", "tests", "maintenance")


def compile_modules(config: pytest.Config) -> None:
    """Compile the modules of this checkout that have changed, where Python may keep them."""
    if not sys.dont_write_bytecode and hasattr(os, "fork"):
        compile_files(config, sorted(path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.py")))


def compile_files(config: pytest.Config, files: list[Path]) -> None:
    """Compile these files, tests with the assertions of pytest."""
    cores = os.cpu_count() or 1
    children = [_in_a_process(config, files[at::cores]) for at in range(cores)]
    for child in children:
        os.waitpid(child, 0)


def _in_a_process(config: pytest.Config, files: list[Path]) -> int:
    """Compile files in a fork, whose number this returns; a worker reports what it cannot compile."""
    import posix  # whose _exit nothing has replaced

    child = os.fork()
    if child == 0:
        try:
            for file in files:
                if _is_rewritten(file):
                    _rewrite(config, file)
                else:
                    compileall.compile_file(file, quiet=2)
        finally:
            posix._exit(0)
    return child


def _rewrite(config: pytest.Config, file: Path) -> None:
    """Do what pytest does as it imports a file of tests for the first time, less running it."""
    compiled = _rewritten(file)
    if rewrite.try_makedirs(compiled.parent) and rewrite._read_pyc(file, compiled) is None:
        source, code = rewrite._rewrite_test(file, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, compiled)


def _is_rewritten(file: Path) -> bool:
    return any(fnmatch(file.name, pattern) for pattern in _REWRITTEN)


def _rewritten(file: Path) -> Path:
    """Where pytest keeps a file of tests compiled."""
    return rewrite.get_cache_dir(file) / (file.name[:-3] + rewrite.PYC_TAIL)


def code_of(file: Path) -> CodeType:
    """The code of a module, the compiled one where there is one: reading that takes a tenth of the time of parsing."""
    if _is_rewritten(file) and (code := rewrite._read_pyc(file, _rewritten(file))) is not None:
        return code
    code = SourceFileLoader(file.stem, str(file)).get_code(file.stem)
    assert code is not None
    return code
