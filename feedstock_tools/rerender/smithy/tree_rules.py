"""The differences between versions of conda-smithy in the files around `.ci_support`: a table.

Read from conda-smithy's `configure_feedstock.py`, release by release, and compared with real rerender commits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from feedstock_tools.versions import parse_version

#: The newest version for which the whole tree is known; the oldest is that of `Rules`.
NEWEST = "2026.8.5"


@dataclass(frozen=True, slots=True)
class TreeRules:
    """How one version of conda-smithy writes a feedstock's files."""

    #: Whether platforms are named by system and architecture; before, by the keys of `provider`: `linux`.
    names_with_arch: bool = False
    #: Whether `default` means what `native` means, and else Azure, as `emulated` does.
    default_is_native: bool = False
    #: Where the scripts for jobs are: in a folder for each service, those for Linux in `.scripts`, or all of them.
    scripts: Literal["apart", "Linux shared", "shared"] = "apart"
    #: Whether jobs at Travis call scripts.
    travis_scripts: bool = False
    #: Whether the lines that prepare a machine are a text of one function for all services.
    shared_setup: bool = False
    #: What a service sees of the values that the services before it set: all, all but the lines that prepare a machine,
    #: which no configuration file of a service sees then, or none.
    leaks: Literal["all", "jobs", "none"] = "all"
    #: The number of values of a job, if templates see it as a list; 0: they see its values by name.
    listed_values: int = 2
    #: Whether Azure's settings are one text of YAML.
    azure_yaml: bool = False
    #: Whether all of `.azure-pipelines` is removed before it is written.
    clears_azure: bool = False
    #: Whether `skip_render` is known.
    knows_skip_render: bool = False
    #: How CODEOWNERS is written: not at all, a line for each maintainer, or all on one line.
    code_owners: Literal["none", "lines", "one line"] = "none"
    #: Whether CODEOWNERS is removed if there are no maintainers.
    removes_code_owners: bool = False
    #: Whether names of teams in CODEOWNERS are lower-case.
    lower_teams: bool = False
    #: The number of files that once were written and are removed.
    obsolete: int = 8
    #: Whether a rendered script ends with a line break even if its template does not.
    final_newline: bool = False
    #: Whether the files in `.azure-pipelines` are executable, and the scripts that Azure's workflow settings require.
    executable_azure: bool = True
    #: The copied files that are executable, even if they are not in the release.
    executable_copies: tuple[str, ...] = ("build-locally.py",)
    #: Whether maintainers are pairs of name and address in the README's template, and teams are known.
    maintainers_with_address: bool = False
    #: Whether a workflow that does nothing remains if GitHub Actions builds nothing.
    dummy_workflow: bool = False
    #: Whether templates get the name of the feedstock's repository instead of that of its folder.
    feedstock_named_by_repository: bool = False
    #: The version of Python that runs conda-build; None: the newest, without naming it.
    build_python: str | None = None
    #: Whether the texts `true` and `false` are written without quotes in Azure's settings.
    plain_booleans: bool = False
    #: The settings of Azure's systems that only templates read; the others are settings of jobs.
    settings_of_templates: tuple[str, ...] = ()
    #: The endings of GitHub Actions' scripts for artifacts on every system; none: the ending for the job's system.
    github_artifacts: tuple[str, ...] = (".sh",)
    #: Whether the README describes the recipe's packages on Linux without migrations, skipped or not.
    readme_of_plain_recipe: bool = True
    #: Whether the README describes the first package alone.
    describes_first_package: bool = True
    #: Whether templates see `remote_ci_setup` as a list, even if it is written as one text.
    lists_ci_setup: bool = False
    #: How `.ci_support/README` is written from a text in the code; None: it is one of the copied files.
    note: Literal["one line", "wrapped"] | None = "one line"
    #: Whether the README sorts the metadata by the packages' names.
    sorted_metadata: bool = False
    #: The workflows of services to write.
    service_workflows: tuple[str, ...] = ()
    #: The copied workflows that only `bot.automerge` keeps.
    automerge_workflows: tuple[str, ...] = ()
    #: The workflows of services to remove.
    removed_workflows: tuple[str, ...] = ()


_CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("3.1.13", {"listed_values": 3}),
    ("3.2.0", {"listed_values": 2}),
    ("3.2.3", {"listed_values": 3}),
    ("3.3.3", {"travis_scripts": True}),
    ("3.3.5", {"shared_setup": True, "listed_values": 4}),
    ("3.3.7", {"code_owners": "lines", "obsolete": 9}),
    ("3.4.1", {"code_owners": "one line", "obsolete": 12}),
    ("3.4.2", {"knows_skip_render": True}),
    ("3.4.6", {"default_is_native": True}),
    ("3.5.0", {"removes_code_owners": True}),
    ("3.6.0", {"scripts": "Linux shared", "leaks": "jobs"}),
    ("3.6.2", {"leaks": "none", "listed_values": 0}),
    ("3.6.6", {"automerge_workflows": (".github/workflows/main.yml",)}),
    ("3.6.9", {"automerge_workflows": ()}),
    ("3.6.17", {"clears_azure": True}),
    ("3.7.0", {"scripts": "shared"}),
    ("3.7.1", {"azure_yaml": True}),
    ("3.7.2", {"obsolete": 13}),
    ("3.7.3", {"lower_teams": True}),
    ("3.7.5", {"names_with_arch": True}),
    ("3.13.0", {"service_workflows": ("automerge.yml", "webservices.yml")}),
    ("3.17.0", {"lists_ci_setup": True, "note": "wrapped"}),
    ("3.21.0", {"readme_of_plain_recipe": False}),
    ("3.23.0", {"describes_first_package": False}),
    ("3.25.1", {"settings_of_templates": ("swapfile_size",)}),
    ("3.30.3", {"note": None}),
    ("3.37.2", {"maintainers_with_address": True}),
    ("3.42.0", {"service_workflows": ("automerge.yml",)}),
    ("3.43.0", {"build_python": "3.12"}),
    ("3.44.0", {"service_workflows": (), "removed_workflows": ("automerge.yml", "webservices.yml")}),
    ("3.44.7", {"settings_of_templates": ("swapfile_size", "install_atl")}),
    ("3.47.2", {"sorted_metadata": True}),
    ("3.48.0", {"plain_booleans": True}),
    ("3.51.0", {"final_newline": True, "github_artifacts": (".sh", ".bat")}),
    ("3.56.0", {"feedstock_named_by_repository": True}),
    ("3.56.3", {"dummy_workflow": True}),
    ("3.61.0", {"github_artifacts": ()}),
    ("2026.8.5", {"executable_azure": False, "executable_copies": ("build-locally.py", ".scripts/logging_utils.sh")}),
)


@lru_cache
def tree_rules(version: str) -> TreeRules:
    """The rules of a version of conda-smithy; a version newer than all known ones follows the newest.

    >>> tree_rules("3.50.1").final_newline, tree_rules("3.62.0").final_newline
    (False, True)
    """
    wanted = parse_version(version)
    rules = TreeRules()
    for since, changed in _CHANGES:
        if parse_version(since) <= wanted:
            rules = replace(rules, **changed)
    return rules
