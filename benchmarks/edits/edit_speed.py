"""What an edit of a recipe of 1,000 lines costs besides start-up.

    python -m benchmarks.edits.edit_speed [--lines 1000] [--repeat 5]

Each edit is a command of its own on a feedstock made here, with a meta.yaml or a recipe.yaml of many outputs; from its
processor time, the least of several, that of `feedstock-tools edit --help` is taken, which starts the same program.
Exits with 1 if an edit costs 0.3 s or more.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 0.3
HASH = "a" * 64
V0_HEAD = """\
{% set version = "1.2.3" %}  # follows upstream
{% set build = 4 %}
{% set build = build + 100 %}  # [cuda_compiler_version != "None"]

package:
  name: demo-split
  version: {{ version }}

source:
  url: https://example.org/demo-{{ version }}.tar.gz
  sha256: HASH

build:
  number: {{ build }}
  skip: true  # [py<39]

outputs:
"""
V0_OUTPUT = """\
  - name: demo-NUMBER
    build:
      string: cuda_h{{ PKG_HASH }}_{{ build }}  # [cuda_compiler_version != "None"]
      string: cpu_h{{ PKG_HASH }}_{{ build }}   # [cuda_compiler_version == "None"]
    requirements:
      build:
        - {{ compiler('c') }}
        - {{ compiler('cuda') }}  # [cuda_compiler_version != "None"]
      host:
        - python
        - numpy    # keep in step with pyproject.toml
        - libdemo-NUMBER >=1
      run:
        - python
        - numpy
    test:
      commands:
        - demo-NUMBER --version  # [unix]
        - if not exist %PREFIX%\\demo-NUMBER.exe exit 1  # [win]

"""
V1_HEAD = """\
context:
  version: "1.2.3"  # follows upstream
  build: 4

recipe:
  name: demo-split
  version: ${{ version }}

source:
  url: https://example.org/demo-${{ version }}.tar.gz
  sha256: HASH

build:
  number: ${{ build }}
  skip:
    - match(python, "<3.9")

outputs:
"""
V1_OUTPUT = """\
  - package:
      name: demo-NUMBER
    build:
      string: ${{ "cuda" if cuda_compiler_version != "None" else "cpu" }}_h${{ hash }}_${{ build }}
    requirements:
      build:
        - ${{ compiler('c') }}
        - if: cuda_compiler_version != "None"
          then: ${{ compiler('cuda') }}
      host:
        - python
        - numpy    # keep in step with pyproject.toml
        - libdemo-NUMBER >=1
      run:
        - python
        - numpy
    tests:
      - script:
          - if: unix
            then: demo-NUMBER --version

"""
TAIL = """\
about:
  license: MIT

extra:
  recipe-maintainers:
    - anna
    - zoe
"""
EDITS = (
    ("version", "1.3.0", "--sha256", "b" * 64),
    ("build-number", "+1"),
    ("maintainer", "add", "berta"),
    ("requirement", "add", "scipy", "--section", "run", "--of", "demo-7"),
    ("requirement", "pin", "numpy >=2"),
    ("requirement", "drop", "numpy"),
    ("drop-python", "3.9"),
    ("drop-cuda", "12.8"),
    ("platform", "add", "linux-aarch64"),
    ("provider", "linux-64", "github_actions"),
)


def recipe(head: str, output: str, lines: int) -> str:
    """A recipe with at least this number of lines."""
    text, number = head.replace("HASH", HASH), 0
    while (text + TAIL).count("\n") < lines:
        text += output.replace("NUMBER", str(number))
        number += 1
    return text + TAIL


def seconds(words: list[str], repeat: int) -> float:
    """The processor time of a command, the least of several."""
    times = []
    for _ in range(repeat):
        before = os.times()
        subprocess.run([sys.executable, "-m", "feedstock_tools", *words], check=True, capture_output=True)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    slowest = 0.0
    start = seconds(["edit", "--help"], given.repeat)
    print(f"start-up: {start:.2f} s")
    with tempfile.TemporaryDirectory() as place:
        for name, head, output in (("meta.yaml", V0_HEAD, V0_OUTPUT), ("recipe.yaml", V1_HEAD, V1_OUTPUT)):
            folder = Path(place) / name
            (folder / "recipe").mkdir(parents=True)
            text = recipe(head, output, given.lines)
            (folder / "recipe" / name).write_text(text, "utf-8")
            print(f"{name}, {text.count(chr(10))} lines")
            for edit in EDITS:
                cost = seconds(["edit", *edit, "--feedstock", str(folder)], given.repeat) - start
                slowest = max(slowest, cost)
                print(f"  {cost:5.2f} s  edit {' '.join(word[:12] for word in edit)}")
    print(f"slowest: {slowest:.2f} s besides start-up")
    return slowest >= LIMIT


if __name__ == "__main__":
    sys.exit(main())
