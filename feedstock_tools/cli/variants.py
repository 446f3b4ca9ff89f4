"""`feedstock-tools variants`: show or write the named variant files."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("variants")
@click.argument("names", nargs=-1)
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("variants"),
    show_default=True,
    help="The folder to write to.",
)
@click.option("--list", "listed", is_flag=True, help="List the files and what is in them; write nothing.")
@click.option("--print", "printed", is_flag=True, help="Print the files; write nothing.")
@click.option("--check", is_flag=True, help="Exit with 1 where files would change; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --list: as JSON.")
def command(names: tuple[str, ...], folder: Path, listed: bool, printed: bool, check: bool, as_json: bool) -> int:
    """Write the named variant files, such as linux_64_cuda11.2 and osx_arm64_cpu.

    Each says which compilers, cuDNN, image and glibc conda-forge's pinning last named for a platform and CUDA version,
    and is a variant file for `conda build -m`. NAMES are names or globs; default: all.
    """
    from feedstock_tools.facts import load_cuda
    from feedstock_tools.generate import named_variants

    facts = load_cuda()
    files = named_variants.variant_files(facts)
    chosen = named_variants.choose(names, files)
    if listed or as_json:
        rows = [row for row in facts.rows if row.name in chosen]
        click.echo(named_variants.as_json(rows) if as_json else named_variants.as_table(rows))
        return 0
    if printed:
        click.echo("\n".join(files[name] for name in chosen), nl=False)
        return 0
    if check:
        differences = named_variants.compare(folder, files, chosen)
        for difference in differences:
            click.echo(f"{difference.path}: {difference.kind}")
        return 1 if differences else 0
    written = named_variants.write(folder, files, chosen)
    for path in written:
        click.echo(path)
    click.echo(f"{len(written)} written, {len(chosen) - len(written)} unchanged", err=True)
    return 0
