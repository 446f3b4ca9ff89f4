"""The library in one place: each step from a spec to packages as one function, with the values it takes and returns.

Functions over values: only a value's `apply` and the functions that build, test, publish and collect write files. None
prints, reads `sys.argv` or uses this process's environment. docs/library.md describes all of them, with examples.
Everything is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from feedstock_tools.bot import RerenderMessage, rerender_feedstock
    from feedstock_tools.bounds.limits import SOLVING, BoundError, Bounds
    from feedstock_tools.builds.ledger.records import BuildRecord, PackageRecord, TestRecord
    from feedstock_tools.builds.matrix.matrix import ConfigurationState, Matrix, OutputState, read_matrix
    from feedstock_tools.builds.plan.agenda import Agenda
    from feedstock_tools.builds.plan.hosts import Capacity, Limits
    from feedstock_tools.builds.plan.needs import Needs
    from feedstock_tools.builds.plan.row import Ended, Row, Running, Wanted
    from feedstock_tools.builds.plan.workspace import Workspace, open_workspace
    from feedstock_tools.builds.publish.collect import Collected, collect
    from feedstock_tools.builds.publish.publish import Published, PublishObserver, publish
    from feedstock_tools.builds.runs.observer import Observer, Progress
    from feedstock_tools.builds.runs.run import BuildResult, Outcome
    from feedstock_tools.builds.runs.run import run as build
    from feedstock_tools.builds.runs.site import agenda_here as plan
    from feedstock_tools.builds.testing.tests import (
        TestedPackage,
        TestOptions,
        TestWatcher,
        built_packages,
        packages_in_files,
        run_tests,
    )
    from feedstock_tools.channel.packages.archive import FileDifference, PackageComparison, compare_packages
    from feedstock_tools.channel.repodata import lacking
    from feedstock_tools.channel.targets import Target, parse_target
    from feedstock_tools.check.against_facts import check_feedstock as check
    from feedstock_tools.check.choices import ChoiceChange, Pick
    from feedstock_tools.check.differences import Differences, JobChange, PackageChange, compare_feedstocks
    from feedstock_tools.check.findings import Finding
    from feedstock_tools.check.linting.lint import lint_feedstock
    from feedstock_tools.check.linting.subject import LintFinding
    from feedstock_tools.check.rehearsal import Environment, Rehearsal, RehearsalChannels
    from feedstock_tools.check.rehearsal import rehearse_configurations as rehearse
    from feedstock_tools.check.reviewing import Review, Stale, review_feedstock
    from feedstock_tools.edit.draft import Draft, open_draft
    from feedstock_tools.edit.keys import add_maintainer, drop_maintainer
    from feedstock_tools.edit.platforms import add_platform, set_provider
    from feedstock_tools.edit.requirements import (
        Where,
        add_requirement,
        drop_requirement,
        limit_requirement,
        pin_requirement,
    )
    from feedstock_tools.edit.variants.lists import CUDA, PYTHON
    from feedstock_tools.edit.variants.versions import add_version, drop_version
    from feedstock_tools.edit.version import raise_build_number, set_build_number, set_version
    from feedstock_tools.enable_gpu import GpuWishes, enable_gpu
    from feedstock_tools.errors import FeedstockError, InputError, Mistake, WorkError
    from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow
    from feedstock_tools.files.changes import Changes
    from feedstock_tools.generate.generating import FileChange, Generated, generate
    from feedstock_tools.importing import Difference, Imported, Updated, VerbatimBlock, import_recipe, update_spec
    from feedstock_tools.pins.graph.answers import Answer, resolve
    from feedstock_tools.pins.graph.explain import Conflict
    from feedstock_tools.pins.graph.kinds import Demand
    from feedstock_tools.platforms import Platform
    from feedstock_tools.recipe.written.document import Document
    from feedstock_tools.report.pins.answer import answer_config, answer_json, answer_text
    from feedstock_tools.rerender.configuration import Configuration, read_configurations
    from feedstock_tools.rerender.many import RerenderedFeedstock, rerender_many
    from feedstock_tools.rerender.outputs import PackageFile
    from feedstock_tools.rerender.outputs import output_files as outputs
    from feedstock_tools.rerender.rerendering import Rerender, rerender
    from feedstock_tools.rerender.rules import Rules
    from feedstock_tools.rerender.smithy import Release, find_release
    from feedstock_tools.rerender.why.absence import why_not
    from feedstock_tools.rerender.why.model import Absence, Explanation, FileLine, Loss, Use, ValueOrigin, VariantStep
    from feedstock_tools.rerender.why.reasons import explain
    from feedstock_tools.to_v1 import to_v1

__all__ = [
    "CUDA",
    "PYTHON",
    "SOLVING",
    "Absence",
    "Agenda",
    "Answer",
    "BoundError",
    "Bounds",
    "BuildRecord",
    "BuildResult",
    "Capacity",
    "Changes",
    "ChoiceChange",
    "Collected",
    "Configuration",
    "ConfigurationState",
    "Conflict",
    "Demand",
    "Difference",
    "Differences",
    "Document",
    "Draft",
    "Ended",
    "Environment",
    "Explanation",
    "FeedstockError",
    "FileChange",
    "FileDifference",
    "FileLine",
    "Finding",
    "Generated",
    "GpuWishes",
    "Imported",
    "InputError",
    "JobChange",
    "Limits",
    "LintFinding",
    "Loss",
    "Matrix",
    "Mistake",
    "Needs",
    "Observer",
    "Outcome",
    "OutputState",
    "PackageChange",
    "PackageComparison",
    "PackageFile",
    "PackageRecord",
    "Pick",
    "PlannedConfiguration",
    "PlannedOutput",
    "PlannedRow",
    "Platform",
    "Progress",
    "PublishObserver",
    "Published",
    "Rehearsal",
    "RehearsalChannels",
    "Release",
    "Rerender",
    "RerenderMessage",
    "RerenderedFeedstock",
    "Review",
    "Row",
    "Rules",
    "Running",
    "Stale",
    "Target",
    "TestOptions",
    "TestRecord",
    "TestWatcher",
    "TestedPackage",
    "Updated",
    "Use",
    "ValueOrigin",
    "VariantStep",
    "VerbatimBlock",
    "Wanted",
    "Where",
    "WorkError",
    "Workspace",
    "add_maintainer",
    "add_platform",
    "add_requirement",
    "add_version",
    "answer_config",
    "answer_json",
    "answer_text",
    "build",
    "built_packages",
    "check",
    "collect",
    "compare_feedstocks",
    "compare_packages",
    "drop_maintainer",
    "drop_requirement",
    "drop_version",
    "enable_gpu",
    "explain",
    "find_release",
    "generate",
    "import_recipe",
    "lacking",
    "limit_requirement",
    "lint_feedstock",
    "open_draft",
    "open_workspace",
    "outputs",
    "packages_in_files",
    "parse_target",
    "pin_requirement",
    "plan",
    "publish",
    "raise_build_number",
    "read_configurations",
    "read_matrix",
    "rehearse",
    "rerender",
    "rerender_feedstock",
    "rerender_many",
    "resolve",
    "review_feedstock",
    "run_tests",
    "set_build_number",
    "set_provider",
    "set_version",
    "to_v1",
    "update_spec",
    "why_not",
]

#: Module → the names that it provides; `name=other` if the module calls it differently.
_WHERE = {
    "bot": "RerenderMessage rerender_feedstock",
    "bounds.limits": "BoundError Bounds SOLVING",
    "builds.ledger.records": "BuildRecord PackageRecord TestRecord",
    "builds.matrix.matrix": "ConfigurationState Matrix OutputState read_matrix",
    "builds.plan.agenda": "Agenda",
    "builds.plan.hosts": "Capacity Limits",
    "builds.plan.needs": "Needs",
    "builds.plan.row": "Ended Row Running Wanted",
    "builds.plan.workspace": "Workspace open_workspace",
    "builds.publish.collect": "Collected collect",
    "builds.publish.publish": "PublishObserver Published publish",
    "builds.runs.observer": "Observer Progress",
    "builds.runs.run": "BuildResult Outcome build=run",
    "builds.runs.site": "plan=agenda_here",
    "builds.testing.tests": "TestOptions TestWatcher TestedPackage built_packages packages_in_files run_tests",
    "channel.packages.archive": "FileDifference PackageComparison compare_packages",
    "channel.repodata": "lacking",
    "channel.targets": "Target parse_target",
    "check.against_facts": "check=check_feedstock",
    "check.findings": "Finding",
    "check.choices": "ChoiceChange Pick",
    "check.differences": "Differences JobChange PackageChange compare_feedstocks",
    "check.linting.lint": "lint_feedstock",
    "check.linting.subject": "LintFinding",
    "check.rehearsal": "Environment Rehearsal RehearsalChannels rehearse=rehearse_configurations",
    "check.reviewing": "Review Stale review_feedstock",
    "edit.draft": "Draft open_draft",
    "edit.keys": "add_maintainer drop_maintainer",
    "edit.platforms": "add_platform set_provider",
    "edit.requirements": "Where add_requirement drop_requirement limit_requirement pin_requirement",
    "edit.variants.lists": "CUDA PYTHON",
    "edit.variants.versions": "add_version drop_version",
    "edit.version": "raise_build_number set_build_number set_version",
    "enable_gpu": "GpuWishes enable_gpu",
    "errors": "FeedstockError InputError Mistake WorkError",
    "feedstock.planned": "PlannedConfiguration PlannedOutput PlannedRow",
    "generate.generating": "FileChange Generated generate",
    "importing": "Difference Imported Updated VerbatimBlock import_recipe update_spec",
    "pins.graph.answers": "Answer resolve",
    "pins.graph.explain": "Conflict",
    "pins.graph.kinds": "Demand",
    "platforms": "Platform",
    "recipe.written.document": "Document",
    "report.pins.answer": "answer_config answer_json answer_text",
    "rerender.configuration": "Configuration read_configurations",
    "files.changes": "Changes",
    "rerender.outputs": "PackageFile outputs=output_files",
    "rerender.many": "RerenderedFeedstock rerender_many",
    "rerender.rerendering": "Rerender rerender",
    "rerender.rules": "Rules",
    "rerender.smithy": "Release find_release",
    "rerender.why.absence": "why_not",
    "rerender.why.model": "Absence Explanation Loss FileLine VariantStep Use ValueOrigin",
    "rerender.why.reasons": "explain",
    "to_v1": "to_v1",
}
_NAMES = {
    name: (f"feedstock_tools.{module}", other or name)
    for module, names in _WHERE.items()
    for name, _, other in (entry.partition("=") for entry in names.split())
}


if not TYPE_CHECKING:  # type checkers must report unknown names

    def __getattr__(name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _NAMES[name]
        value = globals()[name] = getattr(import_module(module), attribute)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
