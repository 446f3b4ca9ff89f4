"""Read facts from their sources, compare them with the files in `variants/`, and check these files.

    python -m maintenance.facts COMMAND --help

`toolkits`, `libraries` and `frameworks` read wheels of an index. A wheel that was read before is not read again, so
that a rerun reads what is new. The exit code is 1 if a fact or a record differs, or a wheel cannot be read.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from feedstock_tools.data import data_folder
from feedstock_tools.errors import FeedstockError
from feedstock_tools.facts.content import checked
from feedstock_tools.facts.models import FILES, json_schema
from feedstock_tools.facts.packages import checked_packages
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.checking import model_of
from feedstock_tools.yaml_reading.nodes import parse_document, parse_texts
from maintenance.facts import (
    conda_builds,
    feedstocks,
    framework_wheels,
    gpus,
    libraries,
    pinning_rows,
    toolkits,
    tools,
    updating,
    wheel_verdicts,
)


def _check_tools(path: Path) -> None:
    text = read_text(path, within=None)
    model_of(parse_document(text, path), parse_texts(text, path), FILES["tools.yaml"], "the file")


#: The function that checks each file.
READERS: Mapping[str, Callable[[Path], object]] = {
    **{name: partial(checked, model=model) for name, model in FILES.items()},
    "packages.yaml": checked_packages,
    "tools.yaml": _check_tools,
}
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


_INDEX = "A simple index that answers in JSON (PEP 691); by default the one that pip reads."


def _of_index(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of the commands that read wheels."""
    again = click.option("--again", is_flag=True, help="Read every wheel again, and report what differs.")
    return click.option("--index", metavar="URL", default="", help=_INDEX)(again(command))


@click.group(help=__doc__, context_settings={"max_content_width": 120})
def program() -> None:
    pass


@program.command("update")
@click.option("--index", metavar="URL", default="", help=_INDEX)
@click.option("--mirror", type=_FOLDER, help="Read clones of feedstocks too, `<owner>+<name>/repo` in this folder.")
def _update(index: str, mirror: Path | None) -> None:
    """Read what is new on the index and in clones, write it, and print the difference.

    It runs `toolkits`, `libraries`, `frameworks` and, with --mirror, `feedstocks` and `conda-builds`. Each release is
    recorded as it is read: after a stop, the same command goes on. What cannot be written by itself, such as a toolkit
    without facts, is reported, and the exit code is 1.
    """
    sys.exit(min(1, updating.update(index, mirror)))


@program.command("toolkits")
@_of_index
@click.option("--run-ptxas", is_flag=True, help="Run NVIDIA's ptxas on this machine, for the version of PTX.")
def _toolkits(index: str, again: bool, run_ptxas: bool) -> None:
    """What each CUDA compiles for, and with which host compilers, from NVIDIA's wheels of nvcc.

    Reports each fact in `variants/cuda.yaml` that differs, each minor version that the file lacks, and what the first
    wheel of a minor version has otherwise than the last. With --run-ptxas the program of a wheel whose SHA-256 is the
    index's runs here (Linux on x86-64), and `ptxas --help` must list the architectures that were found.
    """
    sys.exit(min(1, toolkits.update(index, again, run_ptxas)))


@program.command("libraries")
@_of_index
@click.option("--largest", type=float, metavar="MB", default=math.inf, help="Leave out larger libraries.")
@click.argument("projects", nargs=-1, metavar="[PROJECT]...")
def _libraries(index: str, again: bool, largest: float, projects: tuple[str, ...]) -> None:
    """Which GPUs cuDNN, NCCL, cuSPARSELt and cuTENSOR hold code for, from NVIDIA's wheels.

    Reports every release whose code contradicts `gpu_code` of the library in `variants/cuda.yaml`.
    """
    sys.exit(min(1, libraries.update(index, again, largest, projects)))


@program.command("frameworks")
@_of_index
@click.argument("names", nargs=-1, type=click.Choice([*framework_wheels.PROJECTS]), metavar="[FRAMEWORK]...")
def _frameworks(index: str, again: bool, names: tuple[str, ...]) -> None:
    """Write `variants/wheels.yaml`: what the wheels of frameworks ask for, and the GPU code that they hold."""
    sys.exit(min(1, framework_wheels.update(index, again, names)))


@program.command("verdicts")
@click.option("--last", type=click.IntRange(1), default=8, show_default=True, help="How many minor versions of each.")
@click.option("--gpu-alone", is_flag=True, help="Ask `gpu` alone: a minute for all versions instead of an hour.")
@click.argument("names", nargs=-1, type=click.Choice([*wheel_verdicts.FRAMEWORKS]), metavar="[FRAMEWORK]...")
def _verdicts(last: int, gpu_alone: bool, names: tuple[str, ...]) -> None:
    """Compare what `cuda resolve` and `gpu` answer about frameworks with the tables of their wheels."""
    sys.exit(min(1, wheel_verdicts.check(names, last, resolves=not gpu_alone)))


@program.command("gpus")
@click.option("--pci-ids", type=_FILE, required=True, help="pci.ids of github.com/pciutils/pciids.")
@click.option("--drivers", type=_FOLDER, required=True, help="A clone of github.com/NVIDIA/open-gpu-kernel-modules.")
@click.option("--branches", type=_FOLDER, required=True, help="The lists of Debian's package nvidia-detect.")
def _gpus(pci_ids: Path, drivers: Path, branches: Path) -> None:
    """Write names of GPUs and the drivers that list them into `variants/gpus.yaml`.

    Prints every chip whose `first_driver` contradicts the lists, or that the file lacks, and every GPU that is new or
    gone.
    """
    sys.exit(min(1, gpus.update(pci_ids, drivers, branches)))


@program.command("feedstocks")
@click.argument("mirror", type=_FOLDER)
def _feedstocks(mirror: Path) -> None:
    """Record what clones of feedstocks, `<owner>+<name>/repo` in MIRROR, say of rows, libraries and packages."""
    feedstocks.update(mirror)


@program.command("conda-builds")
@click.option("--again", is_flag=True, help="Read every version again, and report what differs.")
@click.argument("mirror", type=_FOLDER)
def _conda_builds(mirror: Path, again: bool) -> None:
    """Record for which GPUs conda-forge builds frameworks, by the lists in their recipes and scripts.

    MIRROR has clones of their feedstocks, `conda-forge+<name>-feedstock/repo`; `frameworks` writes what is recorded.
    """
    sys.exit(min(1, conda_builds.update(mirror, again)))


@program.command("row")
@click.argument("clone", type=_FOLDER)
@click.argument("platform")
@click.argument("cuda")
def _row(clone: Path, platform: str, cuda: str) -> None:
    """Print a row for `variants/cuda.yaml` from a clone of conda-forge-pinning-feedstock; CUDA may be `cpu`."""
    click.echo(pinning_rows.as_text(clone, Platform.parse(platform), None if cuda == "cpu" else cuda), nl=False)


@program.command("tools")
@click.argument("folder", type=_FOLDER)
@click.argument("day")
def _tools(folder: Path, day: str) -> None:
    """Print entries of `variants/tools.yaml` for all wheels in a folder.

    `pip download --no-deps --only-binary=:all: --dest FOLDER PROJECT==VERSION …` fetches them. DAY (2026-11-22)
    becomes the time stamp of their packages.
    """
    click.echo("\n".join(tools.entries((tools.read_wheel(path) for path in folder.glob("*.whl")), day)))


@program.command("check")
@click.argument("name", type=click.Choice([*FILES]), required=False)
@click.argument("path", type=_FILE, required=False)
def _check(name: str | None, path: Path | None) -> None:
    """Check the files in `variants/`, or a file of your own in the form of one of them: `check cuda.yaml mine.yaml`."""
    folder = data_folder("variants")
    wrong = 0
    for each in [name] if name else FILES:
        read = path or folder / each
        try:
            READERS[each](read)
            click.echo(f"{read}: no mistakes")
        except FeedstockError as error:
            click.echo(error, err=True)
            wrong = error.exit_code
    sys.exit(wrong)


@program.command("schemas")
def _schemas() -> None:
    """Write variants/*.schema.json, which editors read, from the models."""
    for name, model in FILES.items():
        path = (data_folder("variants") / name).with_suffix(".schema.json")
        path.write_text(json.dumps(json_schema(model), indent=2) + "\n", encoding="utf-8")
        click.echo(path)


if __name__ == "__main__":
    program()
