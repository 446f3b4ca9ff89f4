"""Small recipes of the format `meta.yaml`, converted to `recipe.yaml` and compared."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from feedstock_tools.recipe.written.document import read_document
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.to_v1 import Converted, compare_recipes, convert_recipe

CONFIGURATIONS = {
    "linux_64_cuda12.9": {"cuda_compiler_version": ["12.9"], "cuda_compiler": ["cuda-nvcc"]},
    "linux_64_cudaNone": {"cuda_compiler_version": ["None"], "cuda_compiler": ["None"]},
}
COMMON = {
    "c_compiler": ["gcc"],
    "c_compiler_version": ["14"],
    "c_stdlib": ["sysroot"],
    "c_stdlib_version": ["2.17"],
    "channel_targets": ["conda-forge main"],
    "python": ["3.11.* *_cpython", "3.12.* *_cpython"],
    "python_min": ["3.10"],
    "target_platform": ["linux-64"],
}
HEAD = """\
{% set version = "1.2.3" %}
package:
  name: demo
  version: {{ version }}
"""


def feedstock(folder: Path, meta: str, files: tuple[str, ...] = ("build.sh",)) -> Path:
    (folder / "recipe").mkdir(exist_ok=True)
    (folder / "recipe" / "meta.yaml").write_text(dedent(meta))
    for name in files:
        (folder / "recipe" / name).write_text("")
    (folder / ".ci_support").mkdir(exist_ok=True)
    for name, values in CONFIGURATIONS.items():
        (folder / ".ci_support" / f"{name}.yaml").write_text(yaml.safe_dump({**COMMON, **values}))
    return folder


def convert(folder: Path, meta: str, files: tuple[str, ...] = ("build.sh",)) -> Converted:
    made = feedstock(folder, meta, files)
    document = read_document(made / "recipe" / "meta.yaml", within=made)
    return convert_recipe(document, read_configurations(made))


def content(folder: Path, meta: str, files: tuple[str, ...] = ("build.sh",)) -> dict[str, Any]:
    converted = convert(folder, meta, files)
    assert converted.problems == ()
    assert compare_recipes(folder, converted.text, read_configurations(folder)) == ()
    loaded: dict[str, Any] = yaml.safe_load(converted.text)
    return loaded
