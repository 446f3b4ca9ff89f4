"""The values that templates of the known releases use: a template that wants others would render them as nothing.

Collected from all templates of conda-smithy's releases up to `tree_rules.NEWEST`. Besides these, a template may use
everything that its context holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jinja2
from jinja2 import meta, nodes

#: Some have no value in places: there they are false as conditions and empty as texts.
_NAMES = frozenset(
    {
        *("BOA", "BUILD_CMD", "CONDA_INSTALL_CMD", "GET_BOA", "NO_TEST_FLAG", "arch_conda", "arch_drone", "azure_yaml"),
        *("azure_image_url", "azure_url", "build_setup", "build_tool_deps_dict", "build_with_mambabuild", "channels"),
        *("channel_targets", "channel_with_label", "conda_build_tool_deps", "conda_install_tool_deps", "configs"),
        *("fast_finish", "feedstock_name", "linux_64", "linux_ppc64le", "local_ci_setup", "maintainers", "osx_64"),
        *("noarch_python", "outputs", "package", "package_about", "package_name", "pixi_version", "platforms"),
        *("remote_ci_setup_names", "remote_ci_setup_update", "shellcheck_platforms", "smithy_version", "variants"),
        *("upload_on_branch", "win_64", "with_shellcheck", "yum_build_setup"),
    }
)
#: Name → its attributes. `*`: any value that a template names itself, such as each of `configs`.
_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    name: frozenset(attributes.split())
    for name, attributes in {
        "*": "build_platform build_workspace_dir config config_name config_name_short create_pagefile "
        "create_pagefile_linux create_pagefile_win description dev_url doc_url docker_image docker_run_args "
        "free_disk_space gha_os gha_runs_on gha_with_gpu home license license_url pagefile_size platform "
        "resize_partitions resize_win_partitions short_config_name store_build_artifacts summary tools_install_dir "
        "upload",
        "appveyor": "enabled image secure",
        "azure": "build_id enabled free_disk_space project_name settings_linux settings_win store_build_artifacts "
        "timeout_minutes user_or_org",
        "azure.settings_linux": "swapfile_size",
        "azure.settings_win": "install_atl",
        "channels": "targets",
        "circle": "enabled platforms",
        "docker": "command executable fallback_image image interactive run_args",
        "drone": "enabled",
        "github": "branch_name repo_name tooling_branch_name user_or_org",
        "github_actions": "artifact_retention_days cancel_in_progress enabled free_disk_space max_parallel "
        "resize_win_partitions self_hosted store_build_artifacts timeout_minutes triggers",
        "package": "meta",
        "package.meta": "about",
        "package.meta.about": "description dev_url doc_url home license license_url summary",
        "package_about": "description dev_url doc_url home license license_url summary",
        "travis": "enabled secure",
        **dict.fromkeys(
            ("linux", "linux_64", "linux_ppc64le", "osx", "osx_64", "shellcheck", "win", "win_64"), "enabled"
        ),
    }.items()
}
#: Attributes of Jinja's own `loop`, and methods of the values that a context holds.
_METHODS = frozenset(
    {
        *("changed", "cycle", "depth", "depth0", "first", "index", "index0", "last", "length", "nextitem", "previtem"),
        *("revindex", "revindex0"),
        *(name for kind in (str, list, dict, int) for name in dir(kind) if not name.startswith("_")),
    }
)


def used_values(environment: jinja2.Environment, source: str) -> tuple[str, ...]:
    """The values that a template uses and does not make itself: names and paths such as `azure.build_id`.

    The path of an attribute of a value that the template names itself begins with `*`.

    Raises:
        TemplateError: the text is not a template.

    >>> used_values(jinja2.Environment(), "{% for one in configs %}{{ one.upload }}{{ azure.build_id }}{% endfor %}")
    ('*.upload', 'azure', 'azure.build_id', 'configs')
    """
    tree = environment.parse(source)
    names = meta.find_undeclared_variables(tree)
    own = {node.attr for node in tree.find_all(nodes.NSRef)}  # `{% set space.name = … %}`
    own |= {keyword.key for call in tree.find_all(nodes.Call) for keyword in call.kwargs}  # namespace(name=…)
    found = set(names)
    for path in _paths(tree):
        if path[0] in names:
            found.add(".".join(path))
        elif path[-1] not in own:
            found.add(f"*.{path[-1]}")
    return tuple(sorted(found))


def unknown_values(used: Iterable[str], context: Mapping[str, Any]) -> tuple[str, ...]:
    """Those of the used values that neither a context holds nor any known template uses."""
    return tuple(path for path in used if not _is_known(path.split("."), context))


def _paths(tree: nodes.Template) -> Iterator[list[str]]:
    """The attributes and literal keys in a template, each with the names before it; `*` for any other expression."""
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        path = _path(node)
        if path is not None:
            yield path


def _path(node: nodes.Node) -> list[str] | None:
    if isinstance(node, nodes.Name):
        return [node.name]
    name = None
    if isinstance(node, nodes.Getattr):
        name = node.attr
    elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
        name = node.arg.value
    if name is None or not isinstance(node, (nodes.Getattr, nodes.Getitem)):
        return None
    before = _path(node.node)
    return [*(before or ["*"]), name]


def _is_known(path: list[str], context: Mapping[str, Any]) -> bool:
    name, *attributes = path
    if not attributes:
        return name in _NAMES or name in context
    if attributes[-1] in _METHODS or attributes[-1] in _ATTRIBUTES.get(".".join(path[:-1]), ()):
        return True
    value: Any = context.get(name)
    for attribute in attributes:
        if not isinstance(value, Mapping) or attribute not in value:
            return False
        value = value[attribute]
    return True
