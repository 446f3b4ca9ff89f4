"""What a host does after a build, if its settings ask for it: the package's hello-world, and its benchmark."""

from __future__ import annotations

import os
from pathlib import Path

from feedstock_tools.builds.fleet.host.performing import after_build
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.fleets import fleet_in

CPU = f"{HERE.name}_cuda_compiler_versionNone"


def _packages(feedstock: TinyFeedstock) -> list[Path]:
    return sorted((feedstock.artifacts / HERE.subdir).glob("*.conda"))


def test_packages_say_hello_in_environments_of_their_own(gpu_feedstock: TinyFeedstock) -> None:
    lines: list[str] = []
    packages = _packages(gpu_feedstock)
    after_build(packages, os.environ, lines.append)
    assert len(lines) == len(packages) > 0
    assert all(line.startswith("after the build: ") and "hello-world passed in" in line for line in lines), lines


def test_a_package_that_cannot_be_tried_is_named_and_the_others_are_tried(gpu_feedstock: TinyFeedstock) -> None:
    lines: list[str] = []
    first, *others = _packages(gpu_feedstock)
    first.write_bytes(b"damaged")
    after_build([first, *others[:1]], os.environ, lines.append)
    assert "not tried" in lines[0] and first.name in lines[0]
    assert len(lines) == 1 + len(others[:1])


def test_a_host_does_so_after_each_build_and_the_log_says_what_came_of_it(
    tmp_path: Path, feedstock: TinyFeedstock
) -> None:
    feedstock.keep_outputs(2)
    with fleet_in(tmp_path, 1, after_build=True) as fleet:
        run = feedstock.build(CPU, f"--fleet={fleet.local.fleet.path}")
    assert run.returncode == 0, run.stdout + run.stderr
    logs = "".join(path.read_text(errors="replace") for path in (feedstock.artifacts / "logs").rglob("*.log"))
    assert logs.count("hello-world passed in") == len(feedstock.packages())
