"""A folder of small feedstocks, as a rerender leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

#: Lists are blocks: conda-build takes what stands in brackets at the end of a line for a selector.
_META = """\
package:
  name: {name}
  version: "1.0"
build:
  number: 0
outputs:
"""
_OUTPUT = """\
  - name: {name}
    requirements:
      host:
{host}
"""
_RECIPE = """\
package: {{name: {name}, version: "1.0"}}
build: {{number: 0}}
requirements:
  host:
{host}
"""


def feedstock(
    folder: Path,
    name: str,
    *,
    host: Sequence[str] = (),
    makes: Sequence[str] = (),
    jobs: Mapping[str, Mapping[str, str]] | None = None,
    v1: bool = False,
) -> Path:
    """Write a feedstock.

    Args:
        makes: its packages besides that of its name.
        jobs: the values of each file of `.ci_support` by its name after `linux_64_`.
    """
    (folder / "recipe").mkdir(parents=True)
    (folder / ".ci_support").mkdir()
    (folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n" if v1 else "{}\n")
    requires = "\n".join(f"        - {each}" for each in host)
    if v1:
        (folder / "recipe" / "recipe.yaml").write_text(_RECIPE.format(name=name, host=requires))
    else:
        outputs = "".join(_OUTPUT.format(name=each, host=requires) for each in (name, *makes))
        (folder / "recipe" / "meta.yaml").write_text(_META.format(name=name) + outputs)
    for job, values in (jobs or {"": {}}).items():
        lines = [f"{key}:\n- '{value}'\n" for key, value in sorted({**values, "target_platform": "linux-64"}.items())]
        (folder / ".ci_support" / f"linux_64_{job}.yaml").write_text("".join(lines))
    return folder


def workspace(folder: Path) -> None:
    """Three feedstocks: `base` makes a library with zlib, `app` (recipe.yaml) and `gpu` (CUDA) build with that."""
    feedstock(folder / "base-feedstock", "base", host=("zlib",), makes=("libbase",), jobs={"": {"zlib": "1"}})
    feedstock(folder / "app-feedstock", "app", host=("libbase",), v1=True)
    cuda = {version: {"cuda_compiler_version": version} for version in ("None", "12.9")}
    feedstock(folder / "gpu-feedstock", "gpu", host=("libbase", "cuda-version {{ cuda_compiler_version }}"), jobs=cuda)
