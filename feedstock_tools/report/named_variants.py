"""The named variant files as a list: the row of conda-forge's pinning that each was made from."""

from __future__ import annotations

import json
from collections.abc import Collection

from feedstock_tools.facts import PinningRow
from feedstock_tools.wording import aligned


def variants_table(rows: Collection[PinningRow]) -> str:
    """The rows as a table for people."""
    head = ("name", "pinning", "compiler", "C library", "CUDA compiler", "cuDNN", "image")
    return "\n".join(aligned([head, *(_cells(row) for row in rows)]))


def _cells(row: PinningRow) -> tuple[str, ...]:
    def cell(*keys: str) -> str:
        return " ".join(row.values[key] for key in keys if key in row.values)

    return (
        row.name,
        row.date,
        cell("c_compiler", "c_compiler_version"),
        cell("c_stdlib", "c_stdlib_version"),
        cell("cuda_compiler") if row.cuda else "",
        cell("cudnn") if row.cuda else "",
        cell("docker_image").removeprefix("quay.io/condaforge/"),
    )


def variants_json(rows: Collection[PinningRow]) -> str:
    """The rows as a JSON list: name, platform, cuda, origin, commit, date, note and values of each."""
    entries = [
        {
            "name": row.name,
            "platform": row.platform.subdir,
            "cuda": row.cuda,
            "origin": row.origin,
            "commit": row.commit,
            "date": row.date,
            "note": row.note,
            "values": dict(row.values),
        }
        for row in rows
    ]
    return json.dumps(entries, indent=2)
