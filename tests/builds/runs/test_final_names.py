"""Build strings that a plan cannot fully know: conda-build hashes virtual packages that run exports add."""

from __future__ import annotations

import pytest

from feedstock_tools.builds.ledger import BuildRecord, PackageRecord
from feedstock_tools.builds.runs.delivery import as_built, is_final
from feedstock_tools.feedstock.planned import PlannedOutput

#: What conda-build 26.7.1 wrote into libgpuprobe's hash_input.json, and the names that it and the plan gave it.
CONTENTS = {
    "c_compiler": "gcc",
    "c_compiler_version": "10",
    "c_stdlib": "sysroot",
    "c_stdlib_version": "2.17",
    "channel_targets": "conda-forge main",
    "cuda_compiler_version": "11.2",
    "target_platform": "linux-64",
    "__cuda": "__cuda >=11.2",
    "__glibc": "__glibc >=2.17,<3.0.a0",
}
MADE, PLANNED = "cuda112h0b1e587_11200", "cuda112h7245737_11200"


def test_a_virtual_package_more_explains_another_hash() -> None:
    assert is_final(MADE, PLANNED, CONTENTS)


@pytest.mark.parametrize(
    ("made", "contents"),
    [
        ("cpu_h0b1e587_11200", CONTENTS),
        ("cuda112h0b1e587_11201", CONTENTS),
        (MADE, {**CONTENTS, "c_compiler_version": "11"}),
        (MADE, {key: value for key, value in CONTENTS.items() if key != "__glibc"}),
        (MADE, []),
    ],
    ids=["another string", "another number", "another compiler", "another hash than its own", "no contents"],
)
def test_nothing_else_does(made: str, contents: object) -> None:
    assert not is_final(made, PLANNED, contents)


def test_an_output_that_is_done_has_the_name_of_its_package() -> None:
    promise = PlannedOutput("lib-a", "1.0", "h1_0", 0, "linux-64", "i", whole=False)
    package = PackageRecord("", "linux-64/lib-a-1.0-h2_0.conda", 1, "0" * 64, 0)
    record = BuildRecord("i", "c", "r", "lib-a", "done", "", "", "", (), packages=(package,))
    assert as_built(promise, record).build == "h2_0"
