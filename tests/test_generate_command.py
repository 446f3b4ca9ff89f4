"""`feedstock-tools generate` as a maintainer meets them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from feedstock_tools.cli.spec import generate
from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    """A copy of gpuprobe's feedstock."""
    return Path(shutil.copytree(data_folder("examples") / "gpuprobe", tmp_path / "gpuprobe"))


def _run(*arguments: str) -> Result:
    result = CliRunner().invoke(generate, arguments, standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, InputError):
        raise result.exception
    return result


def test_a_second_run_has_nothing_to_do(feedstock: Path) -> None:
    result = _run(str(feedstock))

    assert result.return_value == 0
    assert "nothing to do" in result.output


def test_check_names_what_is_stale_and_writes_nothing(feedstock: Path) -> None:
    spec = feedstock / "feedstock.yaml"
    spec.write_text(spec.read_text().replace("version: 1.0.0", "version: 1.0.1"))
    before = (feedstock / "recipe" / "recipe.yaml").read_bytes()

    result = _run("--check", str(feedstock))

    assert result.return_value == 1
    assert "recipe.yaml: does not match the spec" in result.stderr
    assert (feedstock / "recipe" / "recipe.yaml").read_bytes() == before


def test_diff_shows_the_lines_that_change(feedstock: Path) -> None:
    spec = feedstock / "feedstock.yaml"
    spec.write_text(spec.read_text().replace("version: 1.0.0", "version: 1.0.1"))

    result = _run("--diff", str(feedstock))

    assert '-  version: "1.0.0"\n+  version: "1.0.1"\n' in result.output
    assert "wrote" in result.output


def test_an_edited_file_is_shown_and_not_overwritten_without_force(feedstock: Path) -> None:
    recipe = feedstock / "recipe" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("number: ${{ number }}", "number: 7"))

    refused = _run(str(feedstock))

    assert isinstance(refused.exception, InputError)
    assert "recipe.yaml: was edited since it was generated" in str(refused.exception)
    assert "-  number: 7\n+  number: ${{ number }}\n" in refused.output
    assert "number: 7" in recipe.read_text()

    forced = _run("--force", str(feedstock))

    assert forced.return_value == 0
    assert "number: 7" not in recipe.read_text()


def test_the_other_format_goes_to_another_folder(feedstock: Path, tmp_path: Path) -> None:
    result = _run("--recipe-format", "v0", "--output", str(tmp_path / "v0"), str(feedstock))

    assert result.return_value == 0
    assert (tmp_path / "v0" / "recipe" / "meta.yaml").is_file()
    assert not (feedstock / "recipe" / "meta.yaml").exists()


def test_the_other_format_is_refused_beside_the_first(feedstock: Path) -> None:
    result = CliRunner().invoke(generate, ["--recipe-format", "v0", str(feedstock)])

    assert isinstance(result.exception, InputError)
    assert str(result.exception).endswith(
        "a feedstock has one recipe, and this one's is v1\n  Write the v0 recipe into another folder (--output)."
    )


def test_the_schema_knows_every_key_and_says_what_it_is_for() -> None:
    result = CliRunner().invoke(generate, ["--schema"])

    content = json.loads(result.output)
    assert {"name", "outputs", "cuda", "platforms"} <= content["properties"].keys()
    for model in (content, *content["$defs"].values()):
        for key, value in model.get("properties", {}).items():
            assert value.get("description") or "$ref" in value, key
