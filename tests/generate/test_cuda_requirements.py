"""What GPU builds ask for because of their CUDA version: `cuda-version` in host, and the driver."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from feedstock_tools.generate.spec.reading import spec_from_text
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.v0 import recipe as v0
from feedstock_tools.recipe.v1 import recipe as v1
from feedstock_tools.recipe.v1_engine import read_v1
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.model import combine

SPEC = dedent("""\
    name: demo
    version: 1.2.0
    pinning: self-contained
    platforms: {{linux-64: }}
    cuda: {{versions: {versions}, libraries: [cudnn]{more}}}
    outputs:
      - {{name: compiled, kind: library, script: [make], requirements: {{build: [compiler: cuda]}}}}
      - {{name: linked, kind: library, script: [make], requirements: {{host: [use: cuda-libraries]}}}}
      - {{name: by-name, kind: library, script: [make], requirements: {{host: [libcublas-dev]}}}}
      - {{name: chosen, kind: library, script: [make], requirements: {{build: [compiler: cuda], host: [cuda-version]}}}}
      - {{name: plain, kind: library, script: [make], requirements: {{host: [libcurl]}}}}
    about: {{homepage: https://example.org, license: MIT, license_file: LICENSE, summary: A demonstration}}
    maintainers: [someone]
""")


def _outputs(text: str, recipe_format: str, folder: Path) -> dict[tuple[str, str], RenderedOutput]:
    """The outputs by name and CUDA version."""
    for path, content in render(spec_from_text(text), recipe_format).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    linux = Platform.parse("linux-64")
    config = combine([defaults(linux), load(folder / "recipe" / "conda_build_config.yaml", linux)])
    if recipe_format == "v0":
        outputs = v0.render_recipe(v0.read_recipe(folder / "recipe"), config, linux).outputs
    else:
        outputs = v1.render_recipe_v1(read_v1(folder / "recipe" / "recipe.yaml"), config, linux).outputs
    return {(output.name, output.variant["cuda_compiler_version"]): output for output in outputs}


def _cuda_versions_in_host(output: RenderedOutput) -> list[str]:
    return [spec for spec in output.requirements.get("host", ()) if spec.startswith("cuda-version")]


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_what_links_cuda_has_its_version_in_host_from_12_on(recipe_format: str, tmp_path: Path) -> None:
    outputs = _outputs(SPEC.format(versions="[11.8, 12.4, 12.9]", more=""), recipe_format, tmp_path)

    for name in ("compiled", "linked", "by-name"):
        assert _cuda_versions_in_host(outputs[name, "12.4"]) == ["cuda-version 12.4.*"], name
        assert _cuda_versions_in_host(outputs[name, "12.9"]) == ["cuda-version 12.9.*"], name
        assert _cuda_versions_in_host(outputs[name, "11.8"]) == [], name
        assert _cuda_versions_in_host(outputs[name, "None"]) == [], name
    assert _cuda_versions_in_host(outputs["plain", "12.9"]) == []
    assert _cuda_versions_in_host(outputs["chosen", "12.9"]) == ["cuda-version"]


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
@pytest.mark.parametrize(
    ("more", "guards"),
    [
        ("", {"10.2": "__cuda >=10.2", "11.8": "__cuda >=11", "12.9": "__cuda >=12"}),
        (", guard: minor", {"10.2": "__cuda >=10.2", "11.8": "__cuda >=11.8", "12.9": "__cuda >=12.9"}),
        (", guard: any", {"10.2": "__cuda", "12.9": "__cuda"}),
        (", guard: none", {"12.9": None}),
    ],
    ids=["default", "minor", "any", "none"],
)
def test_the_guard_is_by_major_version_unless_the_spec_says_otherwise(
    more: str, guards: dict[str, str | None], recipe_format: str, tmp_path: Path
) -> None:
    outputs = _outputs(SPEC.format(versions="[10.2, 11.8, 12.9]", more=more), recipe_format, tmp_path)

    for version, guard in guards.items():
        run = outputs["compiled", version].requirements.get("run", ())
        assert [spec for spec in run if spec.startswith("__cuda")] == ([guard] if guard else []), version
    assert not any("__cuda" in spec for spec in outputs["compiled", "None"].requirements.get("run", ()))


def test_the_versions_of_the_pinning_need_no_list_of_them_in_the_recipe() -> None:
    text = SPEC.format(versions="pinning", more="").replace("self-contained", "conda-forge")
    text = text.replace("kind: library", "test: {commands: [demo]}, kind: library")

    recipe = next(text for path, text in render(spec_from_text(text), "v0").items() if path.name == "meta.yaml")

    assert 'cuda-version {{ cuda_compiler_version }}.*  # [cuda_compiler_version != "None"]' in recipe
    assert "cuda_compiler_version in" not in recipe


def test_what_the_build_that_runs_once_links_counts_for_the_outputs_that_collect_it() -> None:
    staged = "build: {script: [make], requirements: {build: [compiler: cuda]}}\n"
    text = staged + SPEC.format(versions="[12.9]", more="")

    recipe = next(text for path, text in render(spec_from_text(text), "v1").items() if path.name == "recipe.yaml")

    plain = recipe[recipe.index("name: plain") : recipe.index("about:")]
    assert "then: cuda-version ${{ cuda_compiler_version }}.*" in plain
    assert "then: cuda-version ${{ cuda_compiler_version }}.*" in recipe[: recipe.index("name: compiled")]
