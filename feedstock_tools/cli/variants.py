"""`feedstock-tools variants`: show or write the named variant files."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Command
from feedstock_tools.cli.printing import say, say_json


@click.command("variants", cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@options.output("none: the files are listed", kind="folder")
@click.option("--print", "printed", is_flag=True, help="Print the contents of the files; write nothing.")
@options.check
@options.as_json
def command(names: tuple[str, ...], output: Path | None, printed: bool, check: bool, as_json: bool) -> int:
    """List the named variant files, such as linux_64_cuda11.2 and osx_arm64_cpu, or write them with --output.

    Each file lists the compilers, cuDNN, image and glibc that conda-forge's pinning last had for a platform and CUDA
    version, and is a variant file for `conda build -m`. A NAME is a name or a glob; without one: all files.
    --check compares the files in the folder of --output.
    """
    from feedstock_tools.facts import load_cuda
    from feedstock_tools.generate.named_variants import choose, variant_files
    from feedstock_tools.report.named_variants import variants_json, variants_table

    if check and output is None:
        raise click.UsageError("--check needs the folder of the files: --output PATH")
    facts = load_cuda()
    files = variant_files(facts)
    chosen = choose(names, files)
    if output is not None:
        return _check(output, files, chosen, as_json) if check else _write(output, files, chosen, as_json)
    if printed:
        contents = {name: files[name] for name in chosen}
        say(json.dumps(contents, indent=2) if as_json else "\n".join(contents.values()), nl=as_json)
        return 0
    rows = [row for row in facts.rows if row.name in chosen]
    say(variants_json(rows) if as_json else variants_table(rows))
    return 0


def _check(folder: Path, files: Mapping[str, str], chosen: Collection[str], as_json: bool) -> int:
    from feedstock_tools.generate.named_variants import compare

    differences = compare(folder, files, chosen)
    if as_json:
        entries = [{"file": str(difference.path), "state": difference.kind} for difference in differences]
        say_json(entries)
    else:
        for difference in differences:
            say(f"{difference.path}: {difference.kind}")
    return 1 if differences else 0


def _write(folder: Path, files: Mapping[str, str], chosen: Collection[str], as_json: bool) -> int:
    from feedstock_tools.generate.named_variants import write

    written = write(folder, files, chosen)
    if as_json:
        say_json([{"file": str(path), "state": "written"} for path in written])
    else:
        for path in written:
            say(str(path))
    say(f"{len(written)} written, {len(chosen) - len(written)} unchanged", err=True)
    return 0
