"""Release a version of feedstock-tools, up to the upload.

    python -m maintenance.release 0.2.0             commit, build, check and tag
    python -m maintenance.release 0.2.0 --dry-run   the same, but the checkout gets neither commit nor tag
    python -m maintenance.release 0.2.0 --rebuild   build and check again what the tag v0.2.0 holds

The archives and the bill of materials go to `dist/0.2.0/`. Every run builds the archives twice, in another folder, with
another umask and other times of files, and compares the bytes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from feedstock_tools.errors import FeedstockError
from maintenance.release.releasing import rebuild, release

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str]) -> int:
    """Run the command; the exit status is 2 for a checkout or version that does not fit, 1 for a failed step."""
    parser = argparse.ArgumentParser(
        prog="python -m maintenance.release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="leave the checkout as it is")
    parser.add_argument("--rebuild", action="store_true", help="build what has its tag")
    parser.add_argument("--notes", type=Path, metavar="FILE", help="write the changelog's section there")
    parser.add_argument("--sbom", type=Path, metavar="FILE", help="write the bill of materials there too")
    asked = parser.parse_args(arguments)
    target = Path("dist", asked.version)
    try:
        if asked.rebuild:
            made = rebuild(ROOT, asked.version, target)
        else:
            made = release(ROOT, asked.version, datetime.now(UTC).date(), target, dry_run=asked.dry_run)
    except FeedstockError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    if asked.notes:
        asked.notes.write_text(made.notes, encoding="utf-8")
    if asked.sbom:
        asked.sbom.write_bytes(made.sbom.read_bytes())
    lines = [f"feedstock-tools {made.version}, commit {made.commit}", *made.digests(), "", made.notes]
    if not asked.rebuild and not asked.dry_run:
        lines += [f"Tagged v{made.version}. Next: git push --follow-tags (the release workflow uploads),"]
        lines += [f"or by hand: twine upload {target}/*"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
