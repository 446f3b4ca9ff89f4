"""The planned builds as plain values: configurations, their rows, the outputs of each row.

`--list` and a run with nothing to do need no more than this, so it imports nothing heavy; the values are kept as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

#: Subdir and file name without extension: a package of a channel, equal for rows that make the same one.
PackageId = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PlannedOutput:
    """One package of a row, according to its rendered recipe.

    `identity` is a hash of all its inputs except the channel; `inputs` has the digest of each part. `siblings` are
    the outputs of the same row that it needs, by name. `pins` are the outputs of the row that it must depend on
    exactly, as `version build`. `uses_python`: its tests run the row's Python. `staging` are the staging
    outputs whose files it inherits. `whole`: its pins and features are known; those of a `meta.yaml` are not. `tools`
    are the tools of the stand-in channel among its requirements and those of its siblings, each with its digest.
    """

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    identity: str
    siblings: tuple[str, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    track_features: tuple[str, ...] = ()
    uses_python: bool = False
    staging: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True
    tools: Mapping[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The name of the package's file without extension."""
        return f"{self.name}-{self.version}-{self.build}"

    @property
    def package_id(self) -> PackageId:
        return self.subdir, self.stem

    @property
    def file_name(self) -> str:
        return f"{self.stem}.conda"


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One variant of a configuration and its outputs, in build order."""

    name: str
    values: Mapping[str, str]
    python: str | None
    cuda: str | None
    outputs: tuple[PlannedOutput, ...] = ()

    @property
    def build_python(self) -> str | None:
        """The Python that its builds run: its own, else that of noarch packages, `python_min` of the configuration."""
        return self.python or self.values.get("python_min")


@dataclass(frozen=True, slots=True)
class PlannedConfiguration:
    """A file of `.ci_support` and its rows.

    `rendered`: the outputs of its rows are known; `refusal` is the reason if they cannot be determined.
    """

    name: str
    platform: str
    rows: tuple[PlannedRow, ...]
    channels: tuple[str, ...] = ()
    refusal: str | None = None
    rendered: bool = False

    @property
    def cuda(self) -> str | None:
        """The CUDA version of its rows; None for a CPU build."""
        return next((row.cuda for row in self.rows if row.cuda), None)

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.python for row in self.rows if row.python))

    @property
    def short_name(self) -> str:
        """`linux_64_cuda11.2`, with `_py3.12` if it has one Python: the short name."""
        python = f"_py{self.pythons[0]}" if len(self.pythons) == 1 else ""
        return f"{self.platform.replace('-', '_')}_{f'cuda{self.cuda}' if self.cuda else 'cpu'}{python}"

    def to_json(self) -> dict[str, Any]:
        """For a cache of plans."""
        from feedstock_tools.variants.model import values_to_json

        rows = [
            {**_members(row), "values": values_to_json(row.values), "outputs": [_members(each) for each in row.outputs]}
            for row in self.rows
        ]
        return {**_members(self), "rows": rows}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> PlannedConfiguration:
        """The inverse of `to_json`; `KeyError` or `TypeError` for any other document."""
        rows = tuple(
            PlannedRow(
                **{
                    **row,
                    "values": _values(row["values"]),
                    "outputs": tuple(_output(output) for output in row["outputs"]),
                }
            )
            for row in content["rows"]
        )
        return cls(**{**content, "rows": rows, "channels": tuple(content["channels"])})


def _members(value: PlannedOutput | PlannedRow | PlannedConfiguration) -> dict[str, Any]:
    return {member.name: getattr(value, member.name) for member in fields(value)}


def _values(content: Mapping[str, Any]) -> Mapping[str, str]:
    if not any(isinstance(value, dict) for value in content.values()):
        return content  # most have no numbers, and --list must be fast
    from feedstock_tools.variants.model import values_from_json

    return values_from_json(content)


def _output(content: Mapping[str, Any]) -> PlannedOutput:
    lists = {key: tuple(content[key]) for key in ("siblings", "track_features", "staging")}
    return PlannedOutput(**{**content, **lists})
