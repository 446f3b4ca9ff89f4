"""A library that a package needs and no requirement brings: named after the build, in log, summary, status, dossier."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools.builds.runs.linking import needed_in, without_bringer
from tests.support.feedstocks import CPU, TinyFeedstock
from tests.support.needs import needs

NEEDED = "lib/libtiny.so needs libnobody.so.1, which no requirement brings"


def found(library: str, *run: str, host: tuple[str, ...] = (), has_contents: bool = True) -> list[str]:
    return list(without_bringer([("lib/liba.so", library)], run, host, has_contents=has_contents))


def set_linking(feedstock: TinyFeedstock, setting: str) -> None:
    script = "      script: build-library.sh"
    feedstock.edit("recipe/recipe.yaml", script, f"      dynamic_linking: {{{setting}}}\n{script}")


@pytest.mark.parametrize(
    ("message", "pairs"),
    [
        ('Overlinking against "libz.so.1" for "lib/liba.so"', [("lib/liba.so", "libz.so.1")]),
        (' │ ⚠ warning Overlinking against "lib/libz.so.1" for "bin/a"', [("bin/a", "lib/libz.so.1")]),
        (
            "  ERROR (a,lib/liba.so): $RPATH/libz.so.1 not found in packages, sysroot(s) nor the allowlist.",
            [("lib/liba.so", "libz.so.1")],
        ),
        (
            "WARNING (a,lib/liba.so): Needed DSO lib/libz.so.1 found in ['conda-forge::libzlib-1.3.1-0']",
            [("lib/liba.so", "lib/libz.so.1")],
        ),
        ("   INFO (a,lib/liba.so): Needed DSO lib/libz.so.1 found in conda-forge::libzlib-1.3.1-0", []),
        ("WARNING (a,lib/liba.so): runpaths ['/lib'] found in /tmp/lib/liba.so", []),
        ("WARNING (a): run-exports library package conda-forge::libzlib not used", []),
    ],
)
def test_messages_of_both_engines_are_read(message: str, pairs: list[tuple[str, str]]) -> None:
    assert list(needed_in(message)) == pairs


@pytest.mark.parametrize("library", ["libc.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "libcuda.so.1"])
def test_the_system_and_its_driver_bring_their_own(library: str) -> None:
    assert found(library) == []


def test_the_package_that_brings_a_known_library_is_named() -> None:
    assert found("libz.so.1", "libgcc") == [
        "lib/liba.so needs libz.so.1, which no requirement brings; add zlib to host"
    ]
    assert found("libz.so.1", "libgcc", "libzlib") == []


def test_a_library_of_a_host_package_that_is_no_run_requirement_is_named() -> None:
    assert found("lib/libodd.so.1", "libgcc", host=("odd",)) == [
        "lib/liba.so needs lib/libodd.so.1 of the host environment, which no run requirement brings"
    ]


@pytest.mark.parametrize(
    ("library", "host"),
    [("libcudart.so.13", "cuda-cudart-dev"), ("libstdc++.so.6", "libstdcxx"), ("libz.so.1", "zlib")],
)
def test_a_requirement_without_files_is_taken_to_bring_what_has_its_name(library: str, host: str) -> None:
    assert found(library, host=(host,), has_contents=False) == []


def test_without_files_what_a_requirement_brings_is_unknown() -> None:
    (text,) = found("libodd.so.1", host=("strange", "libgcc"), has_contents=False)
    assert "unknown" in text
    assert found("libodd.so.1", host=("libgcc",), has_contents=False) == [
        "lib/liba.so needs libodd.so.1, which no requirement brings"
    ]


@needs("system", sys.platform == "linux", "libraries of Linux")
class TestBuilt:
    """A package that links to a library outside of its environments."""

    @pytest.fixture
    def linking(self, feedstock: TinyFeedstock, c_compiler: Path) -> TinyFeedstock:
        feedstock.keep_outputs(1)
        outside = feedstock.folder.parent / "outside"
        outside.mkdir()
        (outside / "nobody.c").write_text("int nobody(void) { return 0; }\n")
        library = [str(c_compiler), "-shared", "-fPIC", "-Wl,-soname,libnobody.so.1", "-o", "libnobody.so", "nobody.c"]
        subprocess.run(library, cwd=outside, check=True)
        (outside / "user.c").write_text("int nobody(void); int user(void) { return nobody(); }\n")
        make = f"{c_compiler} -shared -fPIC {outside}/user.c -L{outside} -lnobody -o $PREFIX/lib/libtiny.so"
        feedstock.edit("recipe/build-library.sh", "mkdir", f"mkdir -p $PREFIX/lib\n{make}\nmkdir")
        return feedstock

    def test_the_library_is_named_in_every_account_of_the_build(self, linking: TinyFeedstock) -> None:
        run = linking.build(CPU)
        assert run.returncode == 0, run.stdout + run.stderr
        assert f"WARNING: libtiny: {NEEDED}\n" in run.stdout
        log = next(linking.artifacts.glob("logs/*.log")).read_text()
        assert f"WARNING: {NEEDED}" in log
        channel = ("--channel", str(linking.channel))
        assert f"WARNING: libtiny: {NEEDED}\n" in linking.ask("status", *channel).stdout
        (record,) = [record for record in linking.records() if record.output == "libtiny"]
        assert record.libraries == (NEEDED,)
        assert linking.ask("dossier", CPU, *channel, "-o", "dossier").returncode == 0
        assert f"- **WARNING: libtiny: {NEEDED}**" in (linking.folder / "dossier" / "README.md").read_text()

    def test_the_build_fails_where_its_recipe_asks_for_that(self, linking: TinyFeedstock) -> None:
        set_linking(linking, "overlinking_behavior: error")
        run = linking.build(CPU)
        assert run.returncode == 1
        assert "Overlinking against: libnobody.so.1" in run.stdout
        assert linking.packages() == []

    def test_an_allowed_library_is_not_named(self, linking: TinyFeedstock) -> None:
        set_linking(linking, "missing_dso_allowlist: ['libnobody*']")
        run = linking.build(CPU)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "which no requirement brings" not in run.stdout
