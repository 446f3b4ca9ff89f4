"""The configurations of `.ci_support` that names mean, for commands that do not build."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.names import select
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow
from feedstock_tools.rerender.configurations.configuration import CI_SUPPORT, Configuration, read_configurations
from feedstock_tools.rerender.configurations.own_variants import with_own_values
from feedstock_tools.rerender.configurations.rows import cuda_version, python_version, rows_of

__all__ = ["choose", "configurations_of"]


def configurations_of(feedstock: Path, names: Sequence[str] = ()) -> tuple[Configuration, ...]:
    """The configurations of a feedstock that names mean, as `choose` finds them, with all values that a build takes.

    Raises:
        InputError: the feedstock has no configurations, they cannot be read, or a name means none.
    """
    known = read_configurations(feedstock)
    if not known:
        hint = "`feedstock-tools rerender` writes them."
        raise InputError("the feedstock has no configurations", path=feedstock / CI_SUPPORT, hint=hint)
    return choose(names, with_own_values(Feedstock(feedstock).recipe, known))


def choose(names: Sequence[str], configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """The configurations that the names mean, each once; all of them where no name is given.

    A name is that of a file without `.yaml`, a glob, or a short name such as `linux_64_cuda11.2`.

    Raises:
        InputError: a name means none; all such names at once, each with the nearest that there are.
    """
    if not names:
        return tuple(configurations)
    known = {configuration.name: configuration for configuration in configurations}
    planned = [
        PlannedConfiguration(
            configuration.name,
            configuration.platform.subdir,
            tuple(
                PlannedRow(row.name, row.values, python_version(row.values), cuda_version(row.values), ())
                for row in rows_of(configuration)
            ),
        )
        for configuration in configurations
    ]
    return tuple(known[one.name] for one in select(names, planned))
