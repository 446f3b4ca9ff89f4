"""Rules about the license of a recipe and its file."""

from __future__ import annotations

from collections.abc import Iterator

from feedstock_tools.check.linting.subject import Mistaken, Subject
from feedstock_tools.generate.spec.review_checks import license_mistake


def licenses(subject: Subject) -> Iterator[Mistaken]:
    """A license that is missing or no SPDX expression, and a license file that is missing."""
    recipe = subject.recipe
    of_recipe, of_outputs = (
        list(recipe.entries("about", "license")),
        list(recipe.entries("outputs", "*", "about", "license")),
    )
    if not of_recipe and not of_outputs:
        yield subject.finding(0, "license", "the recipe names no license (about.license)")
    for entry in (*of_recipe, *of_outputs):
        text = entry.value.text
        if "{{" not in text and entry.value.kind == "scalar" and (wrong := license_mistake(text)):
            yield subject.finding(entry.start, "license", f"{wrong[0]}. {wrong[1]}")
    files = [*recipe.entries("about", "license_file"), *recipe.entries("outputs", "*", "about", "license_file")]
    if of_recipe and not files:
        yield subject.finding(of_recipe[0].start, "license-file", "no license_file is below 'about'")
