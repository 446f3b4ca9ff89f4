"""What conda-smithy's linter reports of feedstocks, as lines of JSON; runs in an environment with conda-smithy.

    python smithy_driver.py PINNING FOLDER…

Each line has the feedstock, and the identifiers of its lints and hints with their texts, or the error that the linter
ended with. Nothing asks the network: maintainers exist, and hints and `python_min` are those of the clone PINNING.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from typing import Any

from conda_smithy import lint_recipe
from conda_smithy.linter import hints
from conda_smithy.linter.messages.base import LinterMessage


def named(message: Any) -> str:
    return f"{message.identifier}\t{message._render()}"


def offline(pinning: str) -> None:
    """Have the linter name its messages, and take from files what it would fetch."""
    LinterMessage.as_string = LinterMessage.__str__ = named

    def file(name: str) -> str:
        return subprocess.check_output(["git", "-C", pinning, "show", f"HEAD:recipe/{name}"], text=True)

    toml = tomllib.loads(file("linter_hints/hints.toml"))
    (least,) = re.findall(r"^python_min:\n(?:  #.*\n)*  - '([\d.]+)'", file("conda_build_config.yaml"), re.MULTILINE)
    replaced: dict[str, Callable[..., Any]] = {
        "_maintainer_exists": lambda _: True,
        "_team_exists": lambda _: True,
        "load_linter_toml_metadata": lambda: toml,
    }
    for name, function in replaced.items():
        setattr(lint_recipe, name, function)
    hints.get_global_pinning_python_min = lambda: least


def main() -> None:
    offline(sys.argv[1])
    for folder in sys.argv[2:]:
        try:
            lints, remarks = lint_recipe.main(f"{folder}/recipe", conda_forge=True, return_hints=True)
            found = {"lints": lints, "hints": remarks}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"feedstock": folder, **found}), flush=True)


if __name__ == "__main__":
    main()
