"""`feedstock-tools rerender`: write `.ci_support` from recipe, pinning and migrations."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command()
@click.argument("feedstock", type=click.Path(path_type=Path), default=".")
@click.option("--pinning", type=click.Path(path_type=Path), help="The pinning: a folder or a conda_build_config.yaml.")
@click.option("--rules", metavar="SMITHY[+CONDA_BUILD]", help="Behave as these versions; default the newest.")
@click.option("--platform", "platforms", multiple=True, help="Rerender this platform alone (repeatable).")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 and name the files that would change.")
@click.option("--diff", "show_diff", is_flag=True, help="Print what changes.")
def command(
    feedstock: Path, pinning: Path | None, rules: str | None, platforms: tuple[str, ...], check: bool, show_diff: bool
) -> None:
    """Write .ci_support of FEEDSTOCK as conda-smithy does.

    Without --pinning the recipe's own conda_build_config.yaml is all there is.
    """
    from feedstock_tools.platforms import Platform
    from feedstock_tools.rerender.rerendering import rerender
    from feedstock_tools.rerender.rules import Rules

    result = rerender(
        feedstock,
        pinning=pinning,
        rules=Rules.parse(rules) if rules else Rules.newest(),
        platforms=[Platform.parse(name) for name in platforms] or None,
    )
    changes = result.changes()
    if show_diff:
        for line in changes.diff():
            click.echo(line, nl=False)
    for path, content in sorted(changes.files.items()):
        verb = "delete" if content is None else "change" if path.is_file() else "add"
        click.echo(f"{verb} {path.relative_to(feedstock).as_posix()}", err=show_diff)
    if check:
        if changes:
            raise SystemExit(1)
    else:
        changes.apply()
    click.echo(f"{len(result.configurations)} configurations, {len(changes.files)} changes", err=True)
