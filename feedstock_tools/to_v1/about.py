"""The section `about` of a `recipe.yaml`."""

from __future__ import annotations

import re

from feedstock_tools.generate.spec.review_checks import license_mistake
from feedstock_tools.to_v1.layout import Dict, Key, List, Scalar
from feedstock_tools.to_v1.requirements import items_of
from feedstock_tools.to_v1.template.conditions import When
from feedstock_tools.to_v1.template.statements import Problem
from feedstock_tools.to_v1.tree import Mapped, Sequenced
from feedstock_tools.to_v1.values import choices, grouped, listed, scalar

_ABOUT = {
    "home": "homepage",
    "homepage": "homepage",
    "license": "license",
    "license_family": "license_family",
    "license_file": "license_file",
    "summary": "summary",
    "description": "description",
    "doc_url": "documentation",
    "dev_url": "repository",
}


def _license(text: str, line: int, problems: list[Problem]) -> str:
    """A license that rattler-build accepts: an SPDX expression, or a reference with the same words."""
    mistake = None if "${{" in text else license_mistake(text)
    if mistake is None:
        return text
    reference = "LicenseRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")
    problems.append(Problem(line, f"the license: {mistake[0]}; rattler-build would refuse it: wrote {reference}"))
    return reference


def about_of(about: Mapped, outer: When, problems: list[Problem]) -> Dict:
    """The section `about`."""
    keys: list[Key] = []
    for name, values in grouped(about):
        if name not in _ABOUT:
            if listed(values) or any(isinstance(value, Mapped) for value in values):
                problems.append(Problem(values[0].line, f"'about: {name}' has no equivalent in a recipe.yaml"))
            continue
        comments = tuple(line for value in values for line in value.comments)
        remark = "; ".join(dict.fromkeys(value.remark for value in values if value.remark))
        if name == "license_file" and any(isinstance(value, Sequenced) for value in values):
            keys.append(Key("license_file", List(items_of(values, outer)), comments))
            continue
        leaves = listed(values)
        if len(leaves) > 1 and all(leaf.when == leaves[0].when for leaf in leaves):
            problems.append(
                Problem(leaves[1].line, f"'about: {name}' takes one value in a recipe.yaml: kept the first")
            )
            leaves = leaves[:1]
        text = scalar(choices(leaves, outer))
        if text is not None and name == "license":
            text = _license(text, values[0].line, problems)
        if text is not None:
            keys.append(Key(_ABOUT[name], Scalar(text), comments, remark))
    return Dict(tuple(keys))
