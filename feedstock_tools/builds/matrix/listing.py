"""The list of configurations: platform, accelerator, Python, what would be built, and whether it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from feedstock_tools.builds.plan.identity import candidates_in
from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.builds.stand_in.choice import STAND_IN
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput
from feedstock_tools.wording import table

__all__ = ["list_text", "listed"]

Entry = Mapping[str, Any]
#: Gives the channels that an output was built on; None where it is not built.
Finder = Callable[[PlannedOutput], str | None]


def listed(setting: Setting, configurations: Sequence[PlannedConfiguration]) -> list[Entry]:
    """One entry for each configuration, of values that JSON has.

    Its outputs say whether they are built, and on which channels: without channels given, those of the configuration
    and the stand-in channel both count, since no channel is asked here which of them a build would use.
    """
    if not setting.artifacts.ledger.is_file():
        return [_entry(configuration, lambda output: None) for configuration in configurations]
    from feedstock_tools.builds.ledger import Ledger

    with Ledger(setting.artifacts.ledger) as ledger:
        done = ledger.identities_done()
        candidates = candidates_in(setting)

        def find(configuration: PlannedConfiguration, output: PlannedOutput) -> str | None:
            for candidate in candidates(configuration, output):
                if candidate.identity in done and ledger.done(candidate.identity):
                    return ", ".join(candidate.channels)
            return None

        return [_entry(configuration, partial(find, configuration)) for configuration in configurations]


def _entry(configuration: PlannedConfiguration, built_on: Finder) -> Entry:
    outputs = {
        output.stem: {
            "name": output.name,
            "version": output.version,
            "build": output.build,
            "file": f"{output.subdir}/{output.file_name}" if output.identity else None,
            "python": row.python if output.uses_python else None,
            "built_on": built_on(output),
        }
        for row in configuration.rows
        for output in row.outputs
    }
    return {
        "name": configuration.name,
        "short_name": configuration.short_name,
        "platform": configuration.platform,
        "accelerator": f"CUDA {configuration.cuda}" if configuration.cuda else "CPU",
        "pythons": list(configuration.pythons),
        "built": bool(outputs) and all(output["built_on"] for output in outputs.values()),
        "outputs": list(outputs.values()),
        "refusal": configuration.refusal,
    }


def list_text(entries: Sequence[Entry]) -> str:
    """The list as a table."""
    head = ("name", "platform", "accelerator", "Python", "would be built", "built", "file in .ci_support")
    rows = [
        (
            entry["short_name"],
            entry["platform"],
            entry["accelerator"],
            " ".join(entry["pythons"]) or "-",
            _packages(entry),
            _built(entry["outputs"]),
            entry["name"],
        )
        for entry in entries
    ]
    return table(head, rows) if rows else "The feedstock has no configurations."


def _packages(entry: Entry) -> str:
    """`libgpuprobe, gpuprobe-base x4`: each output with the number of packages of that name."""
    names = [output["name"] for output in entry["outputs"]]
    if not names:
        return "unknown" if entry["refusal"] else "nothing"
    counts = {name: names.count(name) for name in names}
    return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())


def _built(outputs: Sequence[Entry]) -> str:
    done = [output for output in outputs if output["built_on"]]
    if not done:
        return "no"
    where = sorted({output["built_on"] for output in done})
    note = f" ({', '.join(where)})" if where == [STAND_IN] else ""
    return f"yes{note}" if len(done) == len(outputs) else f"{len(done)} of {len(outputs)}{note}"
