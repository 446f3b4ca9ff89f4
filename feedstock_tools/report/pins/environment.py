"""An environment as `conda env create` reads it: environment.yml, with comments on how to create and check it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from feedstock_tools.pins.channels import channel_anywhere
from feedstock_tools.pins.environments import Environment, specs_of

_NAMED_TOO = ("python", "cudatoolkit", "cuda-version", "pip")
_BRACKETS = re.compile(r"(?P<name>[^\[]+)\[(?:version='(?P<version>[^']*)')?,?(?:build='(?P<build>[^']*)')?\]")


def document(environment: Environment, *, name: str, prefix: PurePath | None, exact: bool) -> dict[str, Any]:
    """The contents of environment.yml, as a value.

    Args:
        prefix: the folder of the environment; without it, variables with the folder are left out.
        exact: every solved package, not only the requested ones and those that determine their build.
    """
    conda = list(_exactly(environment, exact) if environment.records else _unsolved(environment))
    pip = [text for part in environment.parts for text in part.pip]
    variables = {
        key: value.replace("{prefix}", str(prefix))
        for key, value in _variables(environment).items()
        if prefix or "{prefix}" not in value
    }
    content: dict[str, Any] = {"name": name}
    content["channels"] = [*map(channel_anywhere, environment.request.channels), "nodefaults"]
    content["dependencies"] = [*conda, {"pip": pip}] if pip else conda
    if variables:
        content["variables"] = variables
    if prefix:
        content["prefix"] = str(prefix)
    return content


def as_yaml(environment: Environment, *, name: str, prefix: PurePath | None, exact: bool, file: str) -> str:
    """The text of environment.yml; `file` is its file name."""
    import yaml

    comments = "\n".join(f"# {line}".rstrip() for line in _comments(environment, name, prefix, file))
    content = document(environment, name=name, prefix=prefix, exact=exact)
    return f"{comments}\n{yaml.safe_dump(content, sort_keys=False, width=200, allow_unicode=True)}"


def as_json(environment: Environment, *, name: str, prefix: PurePath | None, exact: bool, file: str) -> str:
    """The environment, its solution, and the commands to create and check it, for programs."""
    return json.dumps(
        {
            "environment": document(environment, name=name, prefix=prefix, exact=exact),
            "platform": environment.request.target.platform.subdir,
            "accelerator": environment.request.target.accelerator,
            "virtual": list(environment.request.machine_has),
            "solved": [
                {"name": record.name, "version": record.version, "build": record.build, "url": record.url}
                for record in environment.records
            ],
            "notes": list(environment.notes),
            "create": list(_create(environment, name, prefix, file)),
            "check": list(_checks(environment, name, prefix)),
        },
        indent=2,
    )


def _exactly(environment: Environment, every: bool) -> Iterator[str]:
    requested = {named for part in environment.parts for named in part.named}
    for record in environment.records:
        if every or record.name in requested:
            yield f"{record.name}={record.version}={record.build}"
        elif record.name in _NAMED_TOO:
            yield record.name if record.name == "pip" else f"{record.name}={record.version}"


def _unsolved(environment: Environment) -> Iterator[str]:
    cuda = environment.request.target.cuda
    if cuda is not None and any(
        part.setup and part.setup.package and part.setup.channel is None for part in environment.parts
    ):
        yield f"{'cuda-version' if int(cuda.split('.')[0]) >= 12 else 'cudatoolkit'}={cuda}"
    for spec in specs_of(environment.parts, environment.request):
        match = _BRACKETS.fullmatch(spec)
        if match is None:
            yield spec
        else:
            build = f"={match['build']}" if match["build"] else ""
            yield f"{match['name']}={match['version'] or '*'}{build}"


def _variables(environment: Environment) -> Mapping[str, str]:
    return {key: value for part in environment.parts for key, value in part.variables.items()}


def _comments(environment: Environment, name: str, prefix: PurePath | None, file: str) -> Iterator[str]:
    request = environment.request
    packages = ", ".join(request.packages)
    machine = ", ".join(text for text in request.machine_has if text.startswith(("__cuda", "__glibc", "__osx")))
    by_pip = [part.package.name for part in environment.parts if part.pip]
    state = "solved" if environment.records and not by_pip else "NOT solved,"
    if environment.records and by_pip:
        state = f"NOT solved (pip installs {', '.join(by_pip)}; the rest is solved)"
    state = f"{state} for {request.target.platform}"
    yield f"{packages} for the {request.target.accelerator.upper()}, {state}" + (
        f" with {machine}." if machine else "."
    )
    yield from environment.notes
    yield "Create it with"
    for line in _create(environment, name, prefix, file):
        yield f"  {line}"
    checks = tuple(_checks(environment, name, prefix))
    if checks:
        yield f"and check whether it {'works' if request.target.accelerator == 'cpu' else 'finds the GPU'} with"
    for line in checks:
        yield f"  {line}"


def _create(environment: Environment, name: str, prefix: PurePath | None, file: str) -> Iterator[str]:
    """The commands that create the environment; the virtual package is set for machines without a GPU."""
    where = f"-p {prefix}" if prefix else f"-n {name}"
    cuda = environment.request.driver_cuda if environment.request.target.accelerator == "gpu" else None
    command = f"conda env create {where} -f {file}"
    if cuda is None:
        yield command
    elif environment.request.target.platform.os == "win":
        yield f'set "CONDA_OVERRIDE_CUDA={cuda}" && {command}'
    else:
        yield f"CONDA_OVERRIDE_CUDA={cuda} {command}"
    if prefix is None:
        for key, value in _variables(environment).items():
            if "{prefix}" in value:
                # conda writes the values of `variables` in single quotes, so a folder must be written in full.
                setting = value.replace("{prefix}", "$CONDA_PREFIX")
                yield f'conda activate {name} && conda env config vars set {key}="{setting}"'


def _checks(environment: Environment, name: str, prefix: PurePath | None) -> Iterator[str]:
    where = f"-p {prefix}" if prefix else f"-n {name}"
    for framework in (part.package.framework for part in environment.parts):
        if framework is not None and environment.request.target.accelerator == "gpu":
            yield f"conda run {where} {framework.check}"
        elif framework is not None:
            yield f'conda run {where} python -c "import {_IMPORTS.get(framework.name, framework.name)}"'


#: The module of a framework, if it differs from its name.
_IMPORTS = {"pytorch": "torch"}
