"""From a spec to the texts of a feedstock: one function that reads no files but the templates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from feedstock_tools.data import text_templates
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.texts.benchmarks import benchmark_lines
from feedstock_tools.generate.texts.build_scripts import build_scripts
from feedstock_tools.generate.texts.cuda.architectures import architecture_script
from feedstock_tools.generate.texts.cuda.facts import known_cuda_versions
from feedstock_tools.generate.texts.forge import conda_forge_settings, migration_stubs
from feedstock_tools.generate.texts.lines import aligned, comment, quoted
from feedstock_tools.generate.texts.v0 import v0_view
from feedstock_tools.generate.texts.v1 import v1_view
from feedstock_tools.generate.texts.variant_files import variant_blocks
from feedstock_tools.generate.texts.wording import number_why

if TYPE_CHECKING:
    from jinja2 import Environment

#: Recipe format → the file of the recipe.
RECIPE_FILES = {"v0": PurePosixPath("recipe/meta.yaml"), "v1": PurePosixPath("recipe/recipe.yaml")}


def render(spec: Spec, recipe_format: str | None = None) -> Mapping[PurePosixPath, str]:
    """The files that a spec describes, by their path in the feedstock.

    `recipe_format` is `v0` or `v1`; the spec's own when None. The texts depend only on the spec and the facts.

    Raises:
        InputError: a string of the spec cannot be expressed in that format.

    >>> sorted(map(str, render(spec)))  # doctest: +SKIP
    ['conda-forge.yml', 'recipe/conda_build_config.yaml', 'recipe/recipe.yaml']
    """
    chosen = recipe_format or spec.format
    view = v0_view(spec, known_cuda_versions(spec)) if chosen == "v0" else v1_view(spec)
    recipe = RECIPE_FILES[chosen]
    texts = {
        recipe: _laid_out(
            f"{recipe.name}.j2",
            view | {"number_why": number_why(spec), "benchmark_lines": benchmark_lines(spec)},
        )
    }
    blocks = variant_blocks(spec)
    if blocks:
        texts[PurePosixPath("recipe/conda_build_config.yaml")] = _laid_out(
            "conda_build_config.yaml.j2", {"blocks": blocks}
        )
    settings = conda_forge_settings(spec, chosen)
    texts[PurePosixPath("conda-forge.yml")] = _laid_out("conda-forge.yml.j2", {"settings": settings})
    for path, stub in migration_stubs(spec).items():
        texts[path] = _laid_out("migration.yaml.j2", stub)
    for path, script in architecture_script(spec).items():
        texts[path] = _laid_out(f"cuda_architectures{path.suffix}.j2", script)
    for path, (template, values) in build_scripts(spec).items():
        texts[path] = _laid_out(template, values)
    return texts


def _laid_out(template: str, view: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(view).rstrip("\n") + "\n"


@cache
def _environment() -> Environment:
    """Jinja with delimiters that neither recipe format uses."""
    environment = text_templates("<", ">")
    environment.filters["quoted"] = quoted
    environment.filters["aligned"] = aligned
    environment.filters["comment"] = lambda text, indent: "\n".join(comment(text, indent))
    environment.filters["indented"] = lambda lines, indent: "\n".join(
        f"{' ' * indent}{line}".rstrip() for line in lines
    )
    return environment
