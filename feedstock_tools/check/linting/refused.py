"""What conda-build refuses in a `meta.yaml`, most of it only when it knows a job's values: names, versions, build
strings and numbers, requirements, and names of templates that nothing defines."""

from __future__ import annotations

import re
from collections.abc import Iterator

import jinja2
from jinja2 import nodes

from feedstock_tools.channel.specs import read_spec
from feedstock_tools.check.linting.selectors import may_hold
from feedstock_tools.check.linting.subject import LintFinding, Subject
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.packages import Package, name_in
from feedstock_tools.recipe.requirements import Pin, is_broken
from feedstock_tools.recipe.v0.functions import Functions, PackageNames, template_context
from feedstock_tools.recipe.written.document import selector_in
from feedstock_tools.recipe.written.owners import outputs_of, owners_of, requirement_lists
from feedstock_tools.recipe.written.variables import expand
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import Namespace, default_variant

_WORDS = frozenset({"", "true", "false", "yes", "no", "on", "off", "null", "~"})


def refused_values(subject: Subject) -> Iterator[LintFinding]:
    """Names, versions, build strings and numbers, and requirements with which conda-build ends."""
    if not subject.recipe.has_templates:
        return  # rattler-build has rendered it
    yield from _written_mistakes(subject)
    found = {
        (package.name, message)
        for job in subject.jobs
        for package in job.packages
        for message in _mistakes(package, alone=not outputs_of(subject.recipe))
    }
    for name, message in sorted(found):
        yield subject.finding(subject.place_of(name), "refused-value", f"conda-build refuses {message}")


def _written_mistakes(subject: Subject) -> Iterator[LintFinding]:
    """Build numbers that are not numbers, requirements that are not texts, and outputs without a name."""
    recipe = subject.recipe
    for owner in owners_of(recipe):
        places = [("build", "number"), *([("number",)] if owner.kind == "output" else [])]
        for entry in (each for place in places for each in owner.part.below(*place)):
            text = expand(recipe, entry.value.text, {}) if entry.value.kind == "scalar" else ""
            if text is not None and text.lower() not in _WORDS and not re.fullmatch(r"\d+", text):
                message = f"conda-build refuses the build number '{text}': it is a number from 0 on"
                yield subject.finding(entry.value.start, "refused-value", message)
        if owner.kind == "output" and owner.part.kind == "mapping" and not owner.written_names:
            yield subject.finding(owner.part.start, "refused-value", "conda-build refuses an output without a name")
    for list_ in requirement_lists(recipe):
        for item in list_.items:
            nothing = item.kind == "scalar" and item.source in {"", "~", "null"}
            if nothing or item.kind in {"mapping", "sequence"}:
                what = "an empty item" if nothing else f"a {item.kind}"
                message = f"conda-build refuses {what} where it expects a requirement"
                yield subject.finding(item.start, "refused-value", message)


def _mistakes(package: Package, *, alone: bool) -> Iterator[str]:
    output = package.output
    yield from output.refused_parts()
    for requirement in (*package.build, *(package.host or ()), *package.run, *package.constrains):
        if not isinstance(requirement, Pin) and not _is_requirement(requirement):
            yield f"the requirement '{requirement}' of {output.name}"
    if alone and output.name in map(name_in, package.run):
        yield f"{output.name}, which requires itself"


def _is_requirement(text: str) -> bool:
    try:
        return not is_broken(text) and ("[" in text or bool(read_spec(text)))  # conda passes over extras
    except InputError:
        return False


def undefined_names(subject: Subject) -> Iterator[LintFinding]:
    """Names in templates that neither the recipe, nor a job, nor conda-build defines.

    A name that a template guards (`default`, `is defined`), or that only a branch reads, is left alone, and so is one
    in capitals, which the environment of a build may have.
    """
    recipe = subject.recipe
    if not recipe.has_templates or not subject.rows:
        return
    try:
        tree = jinja2.Environment().parse(recipe.text)  # noqa: S701 - nothing is rendered
    except jinja2.TemplateSyntaxError:
        return
    known = _known(subject) | _defined(tree) | _guarded(tree)
    for node in _read(tree):
        start = recipe.start_of(node.lineno)
        line = recipe.text[start : recipe.line_end(start)].rstrip()
        selector = selector_in(line)
        counts = not line.lstrip().startswith("#") and (not selector or may_hold(selector, subject))
        if node.name not in known and not node.name.isupper() and counts:
            known.add(node.name)
            at = start + max(line.find(node.name), 0)
            yield subject.finding(at, "undefined-name", f"nothing defines '{node.name}', which conda-build refuses")


def _defined(tree: nodes.Template) -> set[str]:
    """The names that a template sets, loops over or imports."""
    names = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
    names |= {macro.name for macro in tree.find_all(nodes.Macro)} | {
        each.target for each in tree.find_all(nodes.Import)
    }
    imported = [name for each in tree.find_all(nodes.FromImport) for name in each.names]
    return names | {name if isinstance(name, str) else name[1] for name in imported}


def _guarded(tree: nodes.Template) -> set[str]:
    """The names for whose absence a template has an answer."""
    guards: list[nodes.Node] = [each for each in tree.find_all(nodes.Filter) if each.name in {"default", "d"}]
    guards += [each for each in tree.find_all(nodes.Test) if each.name in {"defined", "undefined"}]
    return {name.name for guard in guards for name in guard.find_all(nodes.Name)}


def _read(node: nodes.Node) -> Iterator[nodes.Name]:
    """The names that a template reads in any case: not those in branches and macros."""
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.Name) and child.ctx == "load":
            yield child
        if isinstance(child, nodes.If):
            yield from _read(nodes.Output([child.test]))
        elif not isinstance(child, nodes.Macro | nodes.CondExpr | nodes.And | nodes.Or):
            yield from _read(child)


def _known(subject: Subject) -> set[str]:
    """The names that conda-build and the jobs give to templates."""
    known = {"range", "dict", "namespace", "lipsum", "cycler", "joiner", "os", "loop"}
    different = {(platform, frozenset(values)): values for platform, values in subject.rows}
    for (platform, _), values in different.items():
        variant = {**default_variant(platform.subdir), **values}
        names = Namespace(platform.subdir, platform.subdir, variant, {}, CondaBuildRules())
        functions = Functions(variant, platform.subdir, subject.recipe.path)
        known |= template_context(names, functions, {}, PackageNames()).keys()
    return known
