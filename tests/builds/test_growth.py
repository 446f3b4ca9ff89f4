"""What commands do grows with the number of configurations, and not with its square: counted, not timed."""

from __future__ import annotations

import sys
import threading
from itertools import count
from pathlib import Path
from types import FrameType

import pytest

from benchmarks.builds.many_configurations import COMMANDS, RECIPES, make_feedstock
from tests.support import command
from tests.support.channels import make_tiny_channel

#: More outputs, which rules of `lint` compare with the builds of all other jobs.
_MORE = {
    "recipe.yaml": """\
  - package:
      name: many-doc
    build:
      noarch: generic
      script: touch $PREFIX/doc
    requirements:
      run:
        - ${{ pin_subpackage("libmany", exact=true) }}
  - package:
      name: many-all
    requirements:
      run:
        - many 1.0.* *_0
about:
""",
    "meta.yaml": """\
  - name: many-doc
    script: doc.sh
    build:
      noarch: generic
    requirements:
      run:
        - {{ pin_subpackage("libmany", exact=True) }}
  - name: many-all
    requirements:
      run:
        - many 1.0.* *_0
about:
""",
}


def calls(*words: str) -> int:
    """The number of functions that a command calls, built-in ones included."""
    called = count()

    def see(_: FrameType, event: str, __: object) -> None:
        if event in ("call", "c_call"):
            next(called)

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        ended = command.here(*words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert ended.returncode in (0, 1), ended.stderr
    return next(called)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_twice_as_many_configurations_cost_twice_as_much(tmp_path: Path, recipe: str) -> None:
    make_tiny_channel(tmp_path / "channel")
    folders = {}
    for number in (2, 25, 50, 100):
        folders[number] = make_feedstock(tmp_path / str(number), number, tmp_path / "channel", recipe)
        written = folders[number] / "recipe" / recipe
        written.write_text(written.read_text().replace("about:\n", _MORE[recipe]))
    for words in COMMANDS:
        # the first call also imports modules and reads facts
        _, few, some, many = (calls(*words, "--feedstock", str(folder)) for folder in folders.values())
        assert many - some < 2.1 * (some - few), words
