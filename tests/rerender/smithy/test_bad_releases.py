"""What a rerender of the whole tree refuses, and two of them at once; the release is a small one of our own."""

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.smithy import find_release
from tests.support import command

RECIPE = "package:\n  name: demo\n  version: '1.0'\nabout:\n  summary: A demonstration\n"


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(RECIPE)
    (folder / "conda-forge.yml").write_text("{}\n")
    return folder


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("configure_feedstock.py", b"\xff\xfe", "is not UTF-8"),
        ("configure_feedstock.py", b"def clear_scripts(forge_dir:\n", "'clear_scripts' is not Python"),
        ("data/conda-forge.yml", b"a: [\n", "is not YAML"),
        ("data/conda-forge.yml", b"", "has no default settings"),
        ("templates/README.md.tmpl", b"\xff\xfe", "is not UTF-8"),
        ("templates/README.md.tmpl", b"{% for %}", "cannot be rendered"),
        ("feedstock_content/large", b"x" * 3_000_000, "is larger than 2048 KiB"),
    ],
)
def test_a_damaged_release_is_refused_with_its_file(
    name: str, content: bytes, message: str, release: Path, feedstock: Path
) -> None:
    damaged = release / "conda_smithy" / name
    damaged.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        rerender(feedstock, smithy=find_release(release))
    assert str(damaged) in str(caught.value)


def test_of_two_commands_at_once_each_leaves_the_whole_tree(release: Path, feedstock: Path) -> None:
    words = command.tool("rerender", str(feedstock), "--pinning", "none", "--smithy", str(release))
    runs = [command.start(words) for _ in range(2)]
    outputs = [run.communicate()[0] for run in runs]
    assert 0 in [run.returncode for run in runs]
    for run, output in zip(runs, outputs, strict=True):
        assert run.returncode == 0 or output.count("error: ") == 1, output
    found = rerender(feedstock, smithy=find_release(release))
    assert not found.changes()
    assert found.tree is not None
    own = {"recipe/meta.yaml", "conda-forge.yml", *(f".ci_support/{name}" for name in found.files)}
    there = {path.relative_to(feedstock).as_posix() for path in feedstock.rglob("*") if path.is_file()}
    assert there == {*found.tree.files, *own}
