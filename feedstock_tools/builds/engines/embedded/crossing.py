"""The guard against a fault of the embedded engine: its cross builds solve for the build machine.

It reads the platform of the host environment only from a variant key `host_platform` that an output uses
(docs/engine.md). Using that key would change the hash, so each rendered output, its build string included, becomes a
recipe of its own that uses that key too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from feedstock_tools.builds.engines.contract import BuildRequest
from feedstock_tools.recipe.v1_engine import Rendering

_KEY = "host_platform"
_HASH_INPUT = "info/hash_input.json"


def crossing(variant: Rendering, row: Sequence[Rendering], request: BuildRequest) -> Rendering:
    """An output of a row, rendered so that its host environment is solved for the target platform."""
    from feedstock_tools.builds.engines.embedded.alone import alone
    from feedstock_tools.platforms import Platform
    from feedstock_tools.recipe.v1_engine import render_row, text_of

    single = alone(variant, row, request.recipe, (_KEY,))
    used = {key: text_of(value) for key, value in dict(variant.variant).items()}
    values = {**request.values, **used, _KEY: request.target}
    platforms = Platform.parse(request.target), Platform.parse(request.builder)
    (rendered,) = render_row(single, request.name, values, *platforms)
    return rendered


def without_host_platform(package: Path, request: BuildRequest) -> None:
    """Restore the hash contents of a package in the private channel, without the key added for the engine.

    Raises:
        WorkError: the package cannot be read or written.
    """
    from feedstock_tools.channel.archive import read_documents, replace_document

    contents = json.loads(read_documents(package, [_HASH_INPUT])[_HASH_INPUT] or b"{}")
    if _KEY in contents and _KEY not in request.values:
        del contents[_KEY]
        replace_document(package, _HASH_INPUT, json.dumps(contents, sort_keys=True).encode())
