"""`feedstock-tools schema`: the JSON Schema of the spec."""

from __future__ import annotations

import click

from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say_json


@click.command("schema", cls=Command)
def command() -> int:
    """Print the JSON Schema of feedstock.yaml."""

    from feedstock_tools.generate.spec.model import json_schema

    say_json(json_schema())
    return 0
