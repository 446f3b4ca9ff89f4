"""Check files of facts, and write the JSON Schemas that editors read.

python -m maintenance.facts check                       the files in variants/
python -m maintenance.facts check cuda.yaml mine.yaml   a file of your own, in the form of cuda.yaml
python -m maintenance.facts schemas                     variants/*.schema.json, from the models
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from feedstock_tools.data import data_folder
from feedstock_tools.errors import FeedstockError
from feedstock_tools.facts import load_cuda
from feedstock_tools.facts.frameworks import load_frameworks, load_wheels
from feedstock_tools.facts.gpus import load_gpus
from feedstock_tools.facts.messages import load_messages
from feedstock_tools.facts.models import FILES, json_schema
from feedstock_tools.facts.packages import read_packages

#: The function that reads, and thereby checks, each file.
READERS: Mapping[str, Callable[[Path], object]] = {
    "cuda.yaml": load_cuda,
    "frameworks.yaml": load_frameworks,
    "gpus.yaml": load_gpus,
    "messages.yaml": load_messages,
    "packages.yaml": read_packages,
    "wheels.yaml": load_wheels,
}


def check(name: str, path: Path) -> int:
    """Print the mistakes in a file of facts of the kind of `name`; return 0, or 2 if there are any."""
    try:
        READERS[name](path)
    except FeedstockError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{path}: no mistakes\n")
    return 0


def write_schemas(folder: Path) -> int:
    """Write the JSON Schema of each file of facts beside it."""
    for name, model in FILES.items():
        path = (folder / name).with_suffix(".schema.json")
        path.write_text(json.dumps(json_schema(model), indent=2) + "\n", encoding="utf-8")
        sys.stdout.write(f"{path}\n")
    return 0


def main(arguments: list[str]) -> int:
    """The exit code of a command: see the docstring of this file."""
    folder = data_folder("variants")
    match arguments:
        case ["schemas"]:
            return write_schemas(folder)
        case ["check"]:
            return max(check(name, folder / name) for name in FILES)
        case ["check", name, path] if name in FILES:
            return check(name, Path(path))
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
