"""Hostile recipes against every command that renders: one message, exit status 2, little time and little memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.command import Measured
from tests.support.needs import needs
from tests.support.pairs import pairs
from tests.support.smithy_release import write_release

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    pytest.mark.slow,
    needs("system", hasattr(os, "wait4"), "one that says what a process used"),
]

#: The most that a refusal may take, the start of the command included.
SECONDS = 2.0 * (3 if os.environ.get("COVERAGE_RUN") else 1)  # measuring coverage takes time
MEMORY = 500 * 1024 * 1024

HUGE = "${{ 'a' * 10 ** 9 }}"
HEAD = "package: {name: p, version: '1'}\n"
DOUBLED = "context:\n  a0: 'aaaaaaaaaaaaaaaa'\n" + "".join(
    f"  a{number}: ${{{{ a{number - 1} ~ a{number - 1} }}}}\n" for number in range(1, 40)
)

#: Places of a recipe.yaml → a recipe with a template there that would take gigabytes, or minutes.
BOMBS = {
    "name": f'package: {{name: "{HUGE}", version: "1"}}\n',
    "version": "package: {name: p, version: \"${{ '1' * 10 ** 9 }}\"}\n",
    "build string": HEAD + f'build: {{string: "{HUGE}"}}\n',
    "context": f'context: {{a: "{HUGE}"}}\n{HEAD}',
    "doubled context": f"{DOUBLED}{HEAD}build: {{string: '${{{{ a39 }}}}'}}\n",
    "requirements": HEAD + f'requirements: {{host: ["{HUGE}"]}}\n',
    "source": HEAD + f'source: {{url: "https://example.com/{HUGE}", sha256: "{"0" * 64}"}}\n',
    "tests": HEAD + f'tests: [{{script: ["{HUGE}"]}}]\n',
    "skip": HEAD + "build: {skip: [\"('a' * 10 ** 9) == 'b'\"]}\n",
    "condition": HEAD + "requirements: {host: [{if: \"('a' * 10 ** 9) == 'b'\", then: zlib}]}\n",
    "list": HEAD + "build: {string: \"x${{ (['a'] * 10 ** 9) | length }}\"}\n",
    "loop": HEAD + 'build: {string: "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"}\n',
    "negations": HEAD + f"build: {{skip: ['{'not ' * 20_000}linux']}}\n",
    "brackets": HEAD + f'build: {{string: "${{{{ {"(" * 5000}1{")" * 5000} }}}}"}}\n',
}
COMMANDS = {
    "list": ("build", "--list"),
    "build": ("build", "linux_64_"),
    "status": ("status",),
    "plan": ("plan",),
    "rehearse": ("rehearse", "--channel", "./channel"),
    "outputs": ("outputs",),
    "rerender": ("rerender", "--pinning", "pinning"),
    "why": ("why", "python", "--pinning", "pinning"),
}


def run(folder: Path, *arguments: str) -> Measured:
    """Run a command of feedstock-tools in a folder."""
    return command.measured(command.tool(*arguments), folder)


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    """A feedstock with one configuration, which lacks a recipe; a pinning and an empty channel lie beside it."""
    for name, text in {
        "conda-forge.yml": "conda_build_tool: rattler-build\n",
        ".ci_support/linux_64_.yaml": "python: ['3.12']\ntarget_platform: [linux-64]\n",
        "pinning/conda_build_config.yaml": "python: ['3.12']\n",
        "channel/noarch/repodata.json": "{}",
        "recipe/README": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return tmp_path


def assert_refused(ended: Measured) -> None:
    """Check that a command reported one error, ended, and took little."""
    assert ended.returncode == 2, ended
    assert (ended.stdout + ended.stderr).count("error:") == 1, ended
    assert "Traceback" not in ended.stderr
    assert ended.seconds < SECONDS, ended
    assert ended.memory < MEMORY, ended


@pytest.mark.parametrize(("place", "name"), pairs(BOMBS, COMMANDS, 3))
def test_a_template_that_would_grow_is_refused(feedstock: Path, place: str, name: str) -> None:
    (feedstock / "recipe" / "recipe.yaml").write_text(BOMBS[place])
    assert_refused(run(feedstock, *COMMANDS[name]))


@pytest.mark.parametrize("name", ["rehearse", "rerender"])
def test_templates_that_double_are_refused_where_many_are_rendered(feedstock: Path, name: str) -> None:
    (feedstock / "recipe" / "recipe.yaml").write_text(BOMBS["doubled context"])
    assert_refused(run(feedstock, *COMMANDS[name]))


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_templates_of_a_variants_yaml_are_texts(feedstock: Path, arguments: tuple[str, ...]) -> None:
    (feedstock / "recipe" / "recipe.yaml").write_text(HEAD + "build: {string: \"${{ x | replace('$', '') }}\"}\n")
    (feedstock / "recipe" / "variants.yaml").write_text(f'x: ["{HUGE}"]\n')
    ended = run(feedstock, *arguments)
    assert ended.seconds < 2 * SECONDS  # nothing is refused, so that `build` makes a stand-in channel and builds
    assert ended.memory < MEMORY


#: A guard measures values, and the text that a loop repeats is not one.
REPEATED = "{% set a %}{% for i in range(90000) %}\n" + f"{'x' * 9000}\n" * 40 + "{% endfor %}{% endset %}\n"

#: Templates of a meta.yaml that take gigabytes, or minutes, where nothing measures values.
V0_BOMBS = {
    "bytes": "{{ 'a'.encode() * 3000000000 }}",
    "lists": "{% for i in range(90000) %}{% set x = ('a' * 90000)|list %}{% endfor %}",
}
#: The commands that render a meta.yaml.
V0_COMMANDS = {
    **{name: COMMANDS[name] for name in ("outputs", "rerender", "why", "rehearse", "build")},
    "rerender --smithy": (*COMMANDS["rerender"], "--smithy", "smithy"),
}


def run_v0(feedstock: Path, recipe: str, *arguments: str, before: str = "") -> Measured:
    """Run a command on a meta.yaml, beside a release of conda-smithy and with a program called conda-build.

    before: statements to run before it.
    """
    (feedstock / "conda-forge.yml").write_text("{}\n")
    (feedstock / "recipe" / "meta.yaml").write_text(recipe)
    write_release(feedstock / "smithy")
    program = feedstock / "bin" / "conda-build"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho conda-build 26.1.0\n")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return command.measured(command.patched(before, *arguments), feedstock, command.environment(PATH=path))


#: Statements after which a template may make a tenth of what it otherwise may.
NARROW = "from feedstock_tools.recipe.v0 import jinja\njinja._LARGEST_TOTAL //= 10"


@pytest.mark.parametrize(("name", "bomb"), pairs(V0_COMMANDS, V0_BOMBS, 1))
def test_a_template_of_a_meta_yaml_that_would_grow_is_refused(feedstock: Path, bomb: str, name: str) -> None:
    recipe = f"{V0_BOMBS[bomb]}\npackage:\n  name: p\n  version: 1\n"
    before = "" if name == "rerender" else NARROW  # the true bound takes seconds in all
    assert_refused(run_v0(feedstock, recipe, *V0_COMMANDS[name], before=before))


@needs("system", sys.platform == "linux", "only Linux has all of the limits")
@pytest.mark.parametrize("arguments", V0_COMMANDS.values(), ids=V0_COMMANDS)
def test_what_no_guard_counts_meets_the_limits_of_the_system(feedstock: Path, arguments: tuple[str, ...]) -> None:
    recipe = f"{REPEATED}package:\n  name: p{{{{ a|length }}}}\n  version: 1\n"
    ended = run_v0(feedstock, recipe, *arguments)
    output = ended.stdout + ended.stderr
    assert "Traceback" not in output
    assert "memory" in output, output
    assert output.count("meta.yaml") <= 2
    assert ended.seconds < 8
    assert ended.memory < MEMORY
