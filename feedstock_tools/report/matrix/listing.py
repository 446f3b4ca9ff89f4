"""The list of configurations as a table, and as values for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from feedstock_tools.builds.stand_in.choice import STAND_IN
from feedstock_tools.wording import table

if TYPE_CHECKING:
    from feedstock_tools.builds.matrix.listing import Listed, ListedOutput

#: What is shown in place of a table without lines.
NO_CONFIGURATIONS = "The feedstock has no configurations; 'feedstock-tools rerender' writes them."


def list_text(listed: Sequence[Listed], rows: Mapping[str, int]) -> str:
    """A table with a line for each configuration.

    Args:
        rows: the number of rows, and so of builds, that each short name selects.
    """
    head = ("name", "builds", "platform", "accelerator", "Python", "would be built", "built", "file in .ci_support")
    lines = [
        (
            entry.configuration.short_name,
            str(rows[entry.configuration.short_name]),
            entry.configuration.platform,
            _accelerator(entry),
            " ".join(entry.configuration.pythons) or "-",
            _packages(entry),
            _built(entry.outputs),
            entry.configuration.name,
        )
        for entry in listed
    ]
    return table(head, lines, right=frozenset({1})) if lines else NO_CONFIGURATIONS


def list_json(listed: Sequence[Listed], rows: Mapping[str, int]) -> list[Mapping[str, Any]]:
    """An object for each configuration; `builds` is the number that the short name selects."""
    return [
        {
            "name": entry.configuration.name,
            "short_name": entry.configuration.short_name,
            "builds": rows[entry.configuration.short_name],
            "platform": entry.configuration.platform,
            "accelerator": _accelerator(entry),
            "pythons": list(entry.configuration.pythons),
            "built": entry.is_built,
            "outputs": [_output(output) for output in entry.outputs],
            "refusal": entry.configuration.refusal,
        }
        for entry in listed
    ]


def _output(listed: ListedOutput) -> Mapping[str, Any]:
    output = listed.output
    return {
        "name": output.name,
        "version": output.version,
        "build": output.build,
        "file": f"{output.subdir}/{output.file_name}" if output.identity else None,
        "python": listed.python,
        "built_on": listed.built_on,
    }


def _accelerator(listed: Listed) -> str:
    return f"CUDA {listed.configuration.cuda}" if listed.configuration.cuda else "CPU"


def _packages(listed: Listed) -> str:
    """`libgpuprobe, gpuprobe-base x4`: each output with the number of packages of that name."""
    names = [entry.output.name for entry in listed.outputs]
    if not names:
        return "unknown" if listed.configuration.refusal else "nothing"
    counts = {name: names.count(name) for name in names}
    return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())


def _built(outputs: Sequence[ListedOutput]) -> str:
    done = [output for output in outputs if output.built_on]
    if not done:
        return "no"
    where = sorted({output.built_on for output in done if output.built_on})
    note = f" ({', '.join(where)})" if where == [STAND_IN] else ""
    return f"yes{note}" if len(done) == len(outputs) else f"{len(done)} of {len(outputs)}{note}"
