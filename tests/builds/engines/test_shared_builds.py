"""Recipes whose outputs share the build of their top level: the members of each package, with each engine.

What conda-build packs is in the table. `FEEDSTOCK_TOOLS_TEST_CONDA_BUILD` names a real one to compare the table with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from textwrap import dedent

import pytest

from feedstock_tools.channel.packages.reading import read_documents
from tests.support.command import environment, run, tool
from tests.support.conda_build import NEEDS_CONDA_BUILD, path_with_conda_build
from tests.support.feedstocks import HERE
from tests.support.needs import needs

pytestmark = needs("system", HERE.subdir == "linux-64", "the configuration is one for linux-64")


@dataclass(frozen=True)
class Case:
    """A recipe: what follows its package, the scripts beside it, and package → path → text of what it makes."""

    meta: str
    scripts: dict[str, str]
    packages: dict[str, dict[str, str]]


_BUILD = """\
    mkdir -p $PREFIX/lib $PREFIX/include/deep $PREFIX/share
    echo $PKG_NAME $PKG_VERSION $PKG_BUILDNUM > $PREFIX/lib/demo.txt
    echo h > $PREFIX/include/demo.h
    echo h > $PREFIX/include/deep/more.h
    echo s > $PREFIX/share/demo
    cat source.txt > compiled.txt
    echo changed > source.txt
    """
_LIB = {"lib/demo.txt": "demo 1.0 2\n"}
_TOP = {"include/deep/more.h": "h\n", "include/demo.h": "h\n", "share/demo": "s\n"}
_INSTALL = (
    "mkdir -p $PREFIX/own\ncat compiled.txt source.txt > $PREFIX/own/$PKG_NAME\necho more >> $PREFIX/share/demo\n"
)
_OWN = "original\nchanged\n"
CASES = {
    "files of the top level's name": Case(
        """\
        outputs:
          - name: demo
            files:
              - lib
              - include/*
          - name: demo-extra
            files:
              - share
          - name: demo-script
            script: install.sh
          - name: demo-all
            requirements:
              run:
                - demo
        """,
        {"build.sh": _BUILD, "install.sh": _INSTALL},
        {
            "demo": {**_LIB, "include/demo.h": "h\n"},
            "demo-extra": {"share/demo": "s\n"},
            "demo-script": {"own/demo-script": _OWN},
            "demo-all": {},
        },
    ),
    "all files, and the same script again": Case(
        """\
        outputs:
          - name: demo
          - name: demo-python
            script: build.sh
            requirements:
              host:
                - {{ pin_subpackage("demo", exact=True) }}
        """,
        {"build.sh": f"if [ $PKG_NAME = demo ]; then\n{dedent(_BUILD)}else\n{_INSTALL}exit 0\nfi\n"},
        {"demo": {**_LIB, **_TOP}, "demo-python": {"own/demo-python": _OWN}},
    ),
    "a script of the top level's name, and of another": Case(
        """\
        outputs:
          - name: demo
            script: install.sh
          - name: demo-devel
            files:
              include:
                - "**"
              exclude:
                - share/*
          - name: demo-commands
            build:
              script:
                - mkdir $PREFIX/own
                - cp compiled.txt $PREFIX/own/
        """,
        {"build.sh": _BUILD, "install.sh": _INSTALL},
        {
            "demo": {"own/demo": _OWN},
            "demo-devel": {**_LIB, **{path: _TOP[path] for path in _TOP if path != "share/demo"}},
            "demo-commands": {"own/compiled.txt": "original\n"},
        },
    ),
}


@pytest.fixture(params=CASES.values(), ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    given: Case = request.param
    return given


def _feedstock(folder: Path, case: Case) -> Path:
    recipe = folder / "recipe"
    (recipe / "src").mkdir(parents=True)
    (recipe / "src" / "source.txt").write_text("original\n")
    head = "package:\n  name: demo\n  version: 1.0\nsource:\n  path: src\nbuild:\n  number: 2\n"
    (recipe / "meta.yaml").write_text(head + dedent(case.meta))
    for name, text in case.scripts.items():
        (recipe / name).write_text(dedent(text))
    (folder / ".ci_support").mkdir()
    (folder / ".ci_support" / "linux_64_.yaml").write_text("target_platform:\n- linux-64\n")
    return folder


def _members(output: Path) -> dict[str, dict[str, str]]:
    """Package → path → SHA-256 of a file."""
    found = {}
    for package in output.glob("linux-64/*.conda"):
        documents = read_documents(package, ("info/index.json", "info/paths.json"))
        index, paths = (json.loads(text or b"") for text in documents.values())
        found[index["name"]] = {each["_path"]: each["sha256"] for each in paths["paths"]}
    return found


def _expected(case: Case) -> dict[str, dict[str, str]]:
    return {
        package: {path: sha256(text.encode()).hexdigest() for path, text in files.items()}
        for package, files in case.packages.items()
    }


def _build(case: Case, folder: Path, channel: Path, engine: str, **variables: str) -> Path:
    feedstock = _feedstock(folder / "demo-feedstock", case)
    output = folder / "output"
    words = ("linux_64_", "--engine", engine, "--channel", str(channel), "--output-dir", str(output))
    ran = run(tool("build", *words), feedstock, environment(**variables))
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return output


def test_the_embedded_engine_packs_what_conda_build_packs(case: Case, tmp_path: Path, tiny_channel: Path) -> None:
    assert _members(_build(case, tmp_path, tiny_channel, "rattler-build")) == _expected(case)


@NEEDS_CONDA_BUILD
def test_conda_build_packs_it(case: Case, tmp_path: Path, tiny_channel: Path) -> None:
    path = path_with_conda_build(tmp_path / "programs")
    assert _members(_build(case, tmp_path, tiny_channel, "conda-build", PATH=path)) == _expected(case)


def test_a_script_that_installs_nothing_fails(tmp_path: Path, tiny_channel: Path) -> None:
    case = CASES["files of the top level's name"]
    feedstock = _feedstock(tmp_path / "demo-feedstock", Case(case.meta, {**case.scripts, "install.sh": ":\n"}, {}))
    words = ("linux_64_", "--engine", "rattler-build", "--channel", str(tiny_channel))
    ran = run(tool("build", *words), feedstock, environment())
    assert ran.returncode == 1
    assert "The script has installed no files." in ran.stdout


def test_an_empty_package_of_an_output_with_files_fails(tmp_path: Path, tiny_channel: Path) -> None:
    meta = "outputs:\n  - name: demo\n    files:\n      - missing\n"
    feedstock = _feedstock(tmp_path / "demo-feedstock", Case(meta, {"build.sh": ":\n"}, {}))
    words = ("linux_64_", "--engine", "rattler-build", "--channel", str(tiny_channel))
    ran = run(tool("build", *words), feedstock, environment())
    assert ran.returncode == 1
    assert "it is empty, although the recipe gives it a script or files" in ran.stdout
