"""Write `requirements.lock`: what the program and its extras for users run with, in exact versions with hashes.

    python -m maintenance.lock             versions in the file stay, as far as pyproject.toml allows them
    python -m maintenance.lock --upgrade   the newest versions that pyproject.toml allows

For every system and Python that the program supports, in the form of a requirements file: `pip install --require-hashes
--no-deps -r requirements.lock` installs it. A release is tried with it, and its bill of materials lists it. Other
arguments go to `uv pip compile`.
"""

import os
import sys
from pathlib import Path

from feedstock_tools.bootstrap import run_in_environment

COMPILE = (
    *("pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--extra", "fleet", "--extra", "s3"),
    *("--generate-hashes", "--no-annotate", "--no-emit-index-url"),
    *("--custom-compile-command", "python -m maintenance.lock"),
    *("--output-file", "requirements.lock", "pyproject.toml"),
)

if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[1])
    sys.exit(run_in_environment("release", "uv", [*COMPILE, *sys.argv[1:]]))
