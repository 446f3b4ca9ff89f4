"""What a spec asks of conda-forge's pinning: reported where the pinning lacks it, never dropped."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest
from click.testing import CliRunner, Result

from feedstock_tools.cli.rerender import rerender
from feedstock_tools.cli.spec import generate
from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.reading import read_spec
from tests.support.pinnings import write_pinning

SPEC = dedent("""\
    name: demo
    version: 1.2.0
    platforms: {linux-64: }
    python: [3.12]
    cuda: {versions: [12.9]}
    outputs:
      - name: libdemo
        kind: library
        script: [make install]
        requirements: {build: [compiler: cuda]}
        test: {commands: [demo]}
      - name: pydemo
        kind: python
        script: [python -m pip install .]
        test: {imports: [demo]}
    about: {homepage: https://example.org, license: MIT, license_file: LICENSE, summary: A demonstration}
    maintainers: [someone]
""")
CONFIG = dedent("""\
    cuda_compiler:
      - cuda-nvcc
    cuda_compiler_version:
      - None
      - 12.9
    python:
      - 3.11.* *_cpython
      - 3.12.* *_cpython
""")
MIGRATION = dedent("""\
    migrator_ts: 1755016036
    __migrator:
      operation: key_add
      migration_number:
        1
      primary_key: cuda_compiler_version
      ordering:
        cuda_compiler_version:
          - None
          - 12.9
          - 13.0
    cuda_compiler_version:   # [linux]
      - 13.0                 # [linux]
""")


@pytest.fixture
def pinning(tmp_path: Path) -> Path:
    """A pinning laid out as the pinning's own feedstock."""
    return write_pinning(tmp_path / "pinning-feedstock" / "recipe", CONFIG, cuda130=MIGRATION).parent


def _feedstock(folder: Path, text: str = SPEC) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "feedstock.yaml").write_text(text)
    return folder


def _run(command: str, *arguments: object) -> Result:
    called = {"generate": generate, "rerender": rerender}[command]
    return CliRunner().invoke(called, [str(one) for one in arguments], standalone_mode=False)


def _rerender(feedstock: Path, pinning: Path) -> Result:
    made = _run("generate", feedstock, "--pinning", pinning)
    assert made.exception is None, made.exception
    return _run("rerender", feedstock, "--pinning", pinning, "--smithy", "none")


def test_a_spec_that_asks_for_what_the_pinning_has_is_rerendered(tmp_path: Path, pinning: Path) -> None:
    feedstock = _feedstock(tmp_path / "demo")

    assert _rerender(feedstock, pinning).exception is None
    assert len(list((feedstock / ".ci_support").glob("linux*"))) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[12.9]", "[11.8, 12.9]", "feedstock.yaml:5:19: the pinning has no CUDA 11.8"),
        ("[3.12]", "[3.12, 3.13]", "feedstock.yaml:4:16: the pinning has no Python 3.13"),
        (
            "cuda: {",
            "migrations: {cuda-130: {timestamp: 1}}\ncuda: {",
            "feedstock.yaml:5:24: the pinning has no migration 'cuda-130'",
        ),
    ],
    ids=["cuda", "python", "migration"],
)
def test_what_the_pinning_lacks_ends_with_an_error(
    old: str, new: str, message: str, tmp_path: Path, pinning: Path
) -> None:
    feedstock = _feedstock(tmp_path / "demo", SPEC.replace(old, new))

    result = _rerender(feedstock, pinning)

    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert not list((feedstock / ".ci_support").glob("linux*"))


@pytest.mark.parametrize("requirement", ["compiler: cxx", "use: tools"])
def test_a_compiler_without_its_standard_library_is_a_mistake_where_the_pinning_has_one(
    requirement: str, tmp_path: Path, pinning: Path
) -> None:
    text = SPEC.replace("compiler: cuda", requirement).replace(
        "cuda: {versions: [12.9]}", "groups: {tools: [compiler: c]}"
    )
    feedstock = _feedstock(tmp_path / "demo", text)
    assert _rerender(feedstock, pinning).exception is None
    with (pinning / "recipe" / "conda_build_config.yaml").open("a") as file:
        file.write("c_stdlib:\n  - sysroot\n")

    result = _rerender(feedstock, pinning)

    assert isinstance(result.exception, InputError)
    assert "feedstock.yaml:10:27: `compiler: c" in str(result.exception)
    assert "needs `stdlib: c` beside it on conda-forge" in str(result.exception)
    (feedstock / "feedstock.yaml").write_text(text.replace("{build: [", "{build: [stdlib: c, "))
    assert _rerender(feedstock, pinning).exception is None


def test_a_migration_by_name_has_the_time_stamp_and_the_jobs_of_the_pinning(tmp_path: Path, pinning: Path) -> None:
    text = SPEC.replace("[12.9]}", "[12.9, 13.0]}\nmigrations: [cuda130]")
    feedstock = _feedstock(tmp_path / "demo", text)

    assert _rerender(feedstock, pinning).exception is None

    stub = (feedstock / ".ci_support" / "migrations" / "cuda130.yaml").read_text()
    assert "migrator_ts: 1755016036" in stub
    assert (feedstock / ".ci_support" / "linux_64_cuda_compiler_version13.0.yaml").is_file()
    assert read_spec(feedstock).migrations["cuda130"].timestamp == "1755016036"


def test_a_migration_of_the_feedstock_s_own_is_in_the_spec_as_it_is_written(tmp_path: Path, pinning: Path) -> None:
    own = MIGRATION.replace("13.0", "13.1").replace("  operation", "  use_local: true\n  operation")
    spec = SPEC.replace("[12.9]}", "[12.9, 13.1]}\nmigrations:\n  mine:\n    verbatim: |\n" + indent(own, " " * 6))
    feedstock = _feedstock(tmp_path / "demo", spec)

    assert _rerender(feedstock, pinning).exception is None

    assert (feedstock / ".ci_support" / "migrations" / "mine.yaml").read_text() == own
    assert (feedstock / ".ci_support" / "linux_64_cuda_compiler_version13.1.yaml").is_file()
    assert _rerender(feedstock, pinning).exception is None


@pytest.mark.parametrize(
    ("migration", "message"),
    [
        ("{verbatim: 'migrator_ts: 1'}", "'verbatim' must have a 'migrator_ts', and 'use_local: true'"),
        ("{verbatim: 'a: 1', number: 2}", "'verbatim' has the time stamp and the number"),
    ],
)
def test_text_that_a_rerender_would_replace_is_a_mistake(migration: str, message: str, tmp_path: Path) -> None:
    feedstock = _feedstock(tmp_path / "demo", f"{SPEC}migrations:\n  mine: {migration}\n")

    result = _run("generate", feedstock)

    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_a_misspelt_migration_has_the_nearest_name(tmp_path: Path, pinning: Path) -> None:
    feedstock = _feedstock(tmp_path / "demo", SPEC + "migrations: [cuda-130]\n")

    result = _run("generate", feedstock, "--pinning", pinning)

    assert isinstance(result.exception, InputError)
    assert "the pinning has no migration 'cuda-130'" in str(result.exception)
    assert "Did you mean 'cuda130'?" in str(result.exception)


def test_without_any_pinning_a_spec_that_follows_it_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    feedstock = _feedstock(tmp_path / "demo")
    assert _run("generate", feedstock).exception is None

    result = _run("rerender", feedstock, "--offline")

    assert isinstance(result.exception, InputError)
    assert "takes its versions from conda-forge's pinning, and there is none" in str(result.exception)
    assert "--pinning" in str(result.exception)
