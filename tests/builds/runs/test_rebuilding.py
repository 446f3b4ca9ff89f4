"""Building again under the same name: the cache of unpacked packages goes by name, and must not serve the old one."""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.channel.packages.reading import read_documents
from tests.support.feedstocks import HERE, TinyFeedstock

ROW = f"{HERE.name}_cuda11.2_py3.11"


def _answer(feedstock: TinyFeedstock) -> str:
    """What tiny-base took over from the libtiny in its host environment."""
    (package,) = (path for path in feedstock.artifacts.glob(f"{HERE.subdir}/tiny-base-*.conda"))
    name = "lib/python3.11/site-packages/tiny-answer.txt"
    return (read_documents(package, [name])[name] or b"").decode()


def _cached(feedstock: TinyFeedstock, name: str) -> list[Path]:
    return sorted((feedstock.artifacts / "pkg_cache" / "pkgs").glob(f"{name}-*"))


def test_a_package_built_again_under_its_name_is_the_one_that_others_are_built_with(
    gpu_feedstock: TinyFeedstock,
) -> None:
    before, files = _answer(gpu_feedstock), gpu_feedstock.packages()
    assert "another" not in before
    assert _cached(gpu_feedstock, "libtiny"), "nothing of libtiny is cached, and this test shows nothing"
    (gpu_feedstock.folder / "src" / "answer.txt").write_text("another answer\n")
    run = gpu_feedstock.build(ROW)
    assert run.returncode == 0, run.stdout + run.stderr
    assert gpu_feedstock.packages() == files
    assert _answer(gpu_feedstock) == "another answer\n"


def test_and_that_their_tests_meet(gpu_feedstock: TinyFeedstock) -> None:
    last = '- ${{ pin_subpackage("libtiny", exact=true) }}\n\n  - package:\n      name: tiny\n'
    test = '    tests:\n      - script: [grep -q another "$PREFIX/share/tiny/answer.txt"]\n'
    gpu_feedstock.edit("recipe/recipe.yaml", last, last.replace("\n\n", f"\n{test}\n"))
    (gpu_feedstock.folder / "src" / "answer.txt").write_text("another answer\n")
    run = gpu_feedstock.build(ROW)
    assert run.returncode == 0, run.stdout + run.stderr
