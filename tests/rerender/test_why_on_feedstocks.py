"""`why` checked on real feedstocks: after a change of the lines that it names, the value or the key changes.

It needs rerenders laid out in the folder that FEEDSTOCK_TOOLS_CASES names: `<case>/feedstock` and `<case>/pinning`.
Values from no file (the platform itself, built-in defaults) and keys without a line offer nothing to change; they are
not drawn.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.why.model import Explanation, FileLine, ValueOrigin
from feedstock_tools.rerender.why.reasons import explain
from tests.support.needs import needs

CASES = os.environ.get("FEEDSTOCK_TOOLS_CASES", "")
pytestmark = needs("fetched", CASES, "rerenders laid out in the folder that FEEDSTOCK_TOOLS_CASES names")

SEED = 3
FEEDSTOCKS, DRAWS = 10, 5
GONE = "zz_gone"
LISTED = {"requirement", "compiler", "stdlib", "cdt", "pin", "force_use_keys", "use_keys", "always kept"}

Edit = Callable[[str], str | None]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, tuple[Configuration, ...]]]:
    """Ten feedstocks that today's rules can rerender, each of another project, as copies with their pinnings."""
    draw = random.Random(SEED)  # noqa: S311 - draws, no secrets
    by_project: dict[str, list[Path]] = {}
    for case in sorted(Path(CASES).glob("*/feedstock")):
        by_project.setdefault(case.parent.name.rsplit("-", 1)[0], []).append(case.parent)
    found = []
    for project in draw.sample(sorted(by_project), len(by_project)):
        case = draw.choice(by_project[project])
        copy = tmp_path_factory.mktemp(project)
        shutil.copytree(case / "feedstock", copy / "feedstock", symlinks=True)
        shutil.copytree(case / "pinning", copy / "pinning", symlinks=True)
        try:
            made = rerender(copy / "feedstock", pinning=copy / "pinning").configurations
        except InputError:
            continue
        if len({key for one in made for key in one.values}) > 2 * DRAWS:
            found.append((copy, made))
        if len(found) == FEEDSTOCKS:
            break
    return found


def _asked(copy: Path, configuration: Configuration, key: str) -> Explanation:
    (answer,) = explain(copy / "feedstock", key, pinning=copy / "pinning", configurations=[configuration.name])
    return answer


def _drawn(
    copies: list[tuple[Path, tuple[Configuration, ...]]], places: Callable[[Explanation], bool], seed: int
) -> Iterator[tuple[Path, Configuration, Explanation]]:
    draw = random.Random(seed)  # noqa: S311 - draws, no secrets
    for copy, made in copies:
        pairs = [(one, key) for one in made for key in sorted(one.values)]
        draw.shuffle(pairs)
        taken = 0
        for configuration, key in pairs:
            answer = _asked(copy, configuration, key)
            if taken < DRAWS and places(answer):
                taken += 1
                yield copy, configuration, answer
            if taken == DRAWS:
                break


def _after(copy: Path, configuration: Configuration, edits: dict[FileLine, Edit]) -> dict[str, Configuration] | None:
    """The configurations of the platform once the lines are edited, which is then taken back; None if refused."""
    before: dict[Path, str] = {}
    for path in {place.path for place in edits}:
        before[path] = path.read_bytes().decode("utf-8")
        lines: list[str | None] = list(before[path].splitlines())
        for place, edit in edits.items():
            if place.path == path:
                lines[place.line - 1] = edit(lines[place.line - 1] or "")
        path.write_text("\n".join(line for line in lines if line is not None) + "\n", encoding="utf-8")
    try:
        made = rerender(copy / "feedstock", pinning=copy / "pinning", platforms=[configuration.platform])
    except InputError:
        return None
    finally:
        for path, text in before.items():
            path.write_bytes(text.encode())
    return {one.name: one for one in made.configurations}


def _replaced(old: str, new: str) -> Edit:
    return lambda line: line.replace(old, new)


def _deleted(_: str) -> None:
    return None


def _value_changes(
    copy: Path, configuration: Configuration, answer: Explanation, origin: ValueOrigin
) -> tuple[bool, str]:
    others = [one for step in answer.settings[-1:] for one in step.values if one != origin.value]
    if answer.key == "target_platform":  # the lines have the platform rendered, and do not hold its subdir
        attempts = (_deleted, lambda line: re.sub(rf"({configuration.platform.name}\s*:\s*)\w+", r"\1null", line))
        return any(not _after(copy, configuration, dict.fromkeys(origin.places, one)) for one in attempts), "deleted"
    for new in (f"{origin.value}.1", f"{origin.value}1", *others):
        found = _after(copy, configuration, dict.fromkeys(origin.places, _replaced(origin.value, new)))
        if found is not None:
            break
    else:
        found = _after(copy, configuration, dict.fromkeys(origin.places, _deleted))
        if found is None:
            return True, "refused"
    now = found.get(configuration.name)
    return now is None or now.values.get(answer.key) != configuration.values[answer.key], "changed"


def test_what_why_names_for_a_value_decides_it(copies: list[tuple[Path, tuple[Configuration, ...]]]) -> None:
    drawn, wrong, refused = 0, [], 0
    draw = random.Random(SEED)  # noqa: S311 - draws, no secrets
    for copy, configuration, answer in _drawn(copies, lambda one: any(v.places for v in one.values), SEED + 1):
        origin = draw.choice([value for value in answer.values if value.places])
        drawn += 1
        changed, how = _value_changes(copy, configuration, answer, origin)
        refused += how == "refused"
        if not changed:
            wrong.append((copy.name, configuration.name, answer.key, origin))
    print(f"{drawn} values, {refused} edits refused, {len(wrong)} unchanged")  # noqa: T201 - the figures, with -s
    assert not wrong, "\n".join(map(str, wrong))
    assert drawn == FEEDSTOCKS * DRAWS


def _edits(answer: Explanation, quote: str) -> dict[FileLine, Edit]:
    """Take the key out of each line: its value stands for it, list items go, quoted names and scripts' get another."""
    value = f"({quote}{answer.values[0].value}{quote})"
    key = re.escape(answer.key)
    language = answer.key.partition("_compiler")[0].partition("_stdlib")[0]

    def without(line: str) -> str:
        line = re.sub(rf"(?<=['\"]){key}(?=['\"])", GONE, line)
        line = re.sub(rf"\b(compiler|stdlib)\((['\"]){language}\2\)", f"{quote}gone{quote}", line)
        return re.sub(rf"(?<![\w$]){key}(?!\w)", value, line)

    def without_longer(line: str) -> str:  # conda-build takes a longer name for the key, too
        return re.sub(rf"(?<!['\"\w])\w*{key}\w*", value, without(line))

    of_kind: dict[str, Edit] = {
        "condition": without_longer,
        "assignment": without_longer,
        "script": _replaced(answer.key, GONE),
        **dict.fromkeys(LISTED, _deleted),
    }
    return {use.place: of_kind.get(use.kind, without) for use in answer.uses if use.place is not None}


def _key_goes(copy: Path, configuration: Configuration, answer: Explanation) -> str:
    places = [use.place for use in answer.uses if use.place is not None]
    kinds = {use.kind for use in answer.uses}
    attempts: list[dict[FileLine, Edit]] = [_edits(answer, "'"), _edits(answer, '"'), dict.fromkeys(places, _deleted)]
    if kinds & LISTED:
        attempts.append(dict.fromkeys(places, _edits(answer, "'")[places[0]]))
        attempts.append(dict.fromkeys(places, lambda line: re.sub(r"\$\{\{.*?\}\}", "gone", line)))
    if answer.key == "target_platform":
        return "platform goes" if _value_changes(copy, configuration, answer, answer.values[0])[0] else "stays"
    how = "refused"
    for attempt in attempts:
        found = _after(copy, configuration, attempt)
        if found and all(answer.key not in one.values for one in found.values()):
            return "goes"
        if found is not None and how != "platform goes":  # without the compiler for CUDA all may be skipped
            how = "stays" if found else "platform goes"
    if how != "platform goes" and kinds & {"always kept"}:
        return "value changes" if _value_changes(copy, configuration, answer, answer.values[0])[0] else "stays"
    return how


def test_without_the_lines_that_why_names_a_key_goes(copies: list[tuple[Path, tuple[Configuration, ...]]]) -> None:
    drawn, wrong = 0, []
    counted: dict[str, int] = {}
    for copy, configuration, answer in _drawn(copies, lambda one: any(use.place for use in one.uses), SEED + 2):
        drawn += 1
        how = _key_goes(copy, configuration, answer)
        counted[how] = counted.get(how, 0) + 1
        if how in ("stays", "refused"):
            wrong.append((how, copy.name, configuration.name, answer.key, [(u.kind, u.place) for u in answer.uses]))
    print(f"{drawn} keys: {counted}")  # noqa: T201 - the figures, with -s
    assert not wrong, "\n".join(map(str, wrong))
    assert drawn == FEEDSTOCKS * DRAWS


def test_no_key_is_without_a_reason_and_no_value_without_an_origin(
    copies: list[tuple[Path, tuple[Configuration, ...]]],
) -> None:
    for copy, made in copies:
        for configuration in {one.platform: one for one in made}.values():
            for answer in explain(copy / "feedstock", configuration.name, pinning=copy / "pinning"):
                assert answer.uses, answer
                assert all(value.places or value.rule for value in answer.values), answer
