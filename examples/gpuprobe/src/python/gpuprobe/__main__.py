"""`python -m gpuprobe [--json]`: what the command `gpuprobe` prints."""

import argparse
import sys

from . import GpuprobeError, report_text


def main() -> int:
    """Print the report; 1 where the library cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m gpuprobe", description="Which NVIDIA GPUs this machine has.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    try:
        sys.stdout.write(report_text(options.json))
    except GpuprobeError as error:
        print(f"gpuprobe: {error}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
