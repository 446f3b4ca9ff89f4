"""The process that creates the environments for `--debug`, with the engine's own debug session."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from feedstock_tools.builds.engines.contract import BuildRequest


def main(request_file: str) -> int:
    """Set up the first wanted output of a request; the folders go to standard output, as JSON, on the last line."""
    from rattler_build import DebugSession, RattlerBuildError

    from feedstock_tools.builds.engines.embedded.crossing import alone, crossing
    from feedstock_tools.errors import FeedstockError
    from feedstock_tools.platforms import Platform
    from feedstock_tools.recipe.v1_engine import read_v1, render_row

    request = BuildRequest.from_json(json.loads(Path(request_file).read_text(encoding="utf-8")))
    platforms = Platform.parse(request.target), Platform.parse(request.builder)
    try:
        rendered = render_row(read_v1(request.recipe), request.name, request.values, *platforms)
        variant = next(output for output in rendered if output.recipe.package.name == request.wanted[0])
        if request.target in (request.builder, "noarch"):
            # The engine's debug session does not know an output's siblings, and refuses an output that pins them.
            by_itself = alone(variant, rendered, request.recipe)
            (single,) = render_row(by_itself, request.name, request.values, *platforms)
        else:
            single = crossing(variant, rendered, request)
        session = DebugSession.create(single, output_dir=request.output, channels=list(request.channels))
    except (FeedstockError, RattlerBuildError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    paths = {
        "work": session.paths.work_dir,
        "host prefix": session.paths.host_prefix,
        "build prefix": session.paths.build_prefix,
        "build script": session.paths.build_script,
    }
    sys.stdout.write("\n" + json.dumps({name: str(path) for name, path in paths.items()}) + "\n")
    return 0
