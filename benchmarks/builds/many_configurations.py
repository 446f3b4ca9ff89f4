"""Measure how the cost of commands grows with the number of configurations of one recipe with two outputs.

Makes a feedstock with as many configurations in `.ci_support`, and prints for each command and number the processor
time, the greatest memory, and how the time grew against the number before.

    python -m benchmarks.builds.many_configurations [--numbers 500 2000] [--recipe meta.yaml] [--only outputs]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.support import command
from tests.support.channels import make_tiny_channel

RECIPES = {
    "recipe.yaml": """\
schema_version: 1
context:
  version: "1.0"
recipe:
  name: many
  version: ${{ version }}
build:
  number: 0
outputs:
  - package:
      name: libmany
    build:
      script: echo ${{ flavor }} > $PREFIX/flavor
    requirements:
      run_exports:
        - libmany
  - package:
      name: many
    build:
      script: echo ${{ flavor }} > $PREFIX/many
    requirements:
      host:
        - python
        - ${{ pin_subpackage("libmany", exact=true) }}
      run:
        - python
about:
  license: BSD-3-Clause
""",
    "meta.yaml": """\
{% set version = "1.0" %}
package:
  name: many-split
  version: {{ version }}
build:
  number: 0
outputs:
  - name: libmany
    script: build-lib.sh  # {{ flavor }}
    build:
      run_exports: [libmany]
  - name: many
    script: build-many.sh
    requirements:
      host:
        - python
        - {{ pin_subpackage("libmany", exact=True) }}
      run:
        - python
about:
  license: BSD-3-Clause
""",
}
_CONFIGURATION = """\
channel_sources:
- {channel}
channel_targets:
- conda-forge main
docker_image:
- quay.io/condaforge/linux-anvil-x86_64:alma9
flavor:
- f{number:05d}
pin_run_as_build:
  python:
    min_pin: x.x
    max_pin: x.x
python:
- {python}.* *_cpython
target_platform:
- linux-64
"""
COMMANDS = (("outputs",), ("lint",), ("build", "--list"), ("plan",), ("status",))


def make_feedstock(folder: Path, number: int, channel: Path, recipe: str = "recipe.yaml") -> Path:
    """A feedstock with a number of configurations, each of one row with two outputs."""
    (folder / "recipe").mkdir(parents=True)
    (folder / ".ci_support").mkdir()
    (folder / "recipe" / recipe).write_text(RECIPES[recipe])
    tool = "conda_build_tool: rattler-build\n" if recipe == "recipe.yaml" else ""
    (folder / "conda-forge.yml").write_text(f"{tool}provider: {{linux_64: default}}\n")
    for script in ("build-lib.sh", "build-many.sh"):
        (folder / "recipe" / script).write_text('echo "$flavor" > "$PREFIX/$PKG_NAME"\n')
    (folder / "recipe" / "conda_build_config.yaml").write_text("flavor:\n- f00000\n")
    for each in range(number):
        python = ("3.11", "3.12")[each % 2]
        text = _CONFIGURATION.format(number=each // 2, python=python, channel=channel.as_uri())
        (folder / ".ci_support" / f"linux_64_flavorf{each // 2:05d}python{python}.____cpython.yaml").write_text(text)
    return folder


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--numbers", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--recipe", choices=RECIPES, default="recipe.yaml")
    parser.add_argument("--only", nargs="*", help="commands by their first words")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        make_tiny_channel(place / "channel")
        before: dict[tuple[str, ...], float] = {}
        for number in arguments.numbers:
            folder = make_feedstock(place / str(number), number, place / "channel", arguments.recipe)
            print(f"{number} configurations; load {os.getloadavg()[0]:.1f}", flush=True)
            for words in COMMANDS:
                if arguments.only and words[0] not in arguments.only:
                    continue
                ended = command.measured(command.tool(*words, "--feedstock", str(folder)), folder)
                if ended.returncode not in (0, 1):
                    sys.exit(f"{' '.join(words)}: {ended.stderr}")
                grew = f", {ended.seconds / before[words]:.1f} times" if words in before else ""
                before[words] = ended.seconds
                print(f"  {' '.join(words):14} {ended.seconds:7.2f} s, {ended.memory >> 20} MiB{grew}", flush=True)


if __name__ == "__main__":
    main()
