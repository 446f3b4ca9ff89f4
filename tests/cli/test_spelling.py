"""Unknown commands and options get the nearest names."""

import pytest
from click.testing import CliRunner, Result

from feedstock_tools.cli import program


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program._group, arguments)


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["rerendr"], "Did you mean rerender?"),
        (["cuda", "resolv"], "Did you mean resolve?"),
        (["pinning", "fecth"], "Did you mean fetch?"),
        (["build", "--lits"], "--fleet, --list"),  # the words before them are click's
        (["linux_64_cuda11.2"], "feedstock-tools build linux_64_cuda11.2"),
    ],
)
def test_unknown_names_get_the_nearest(arguments: list[str], nearest: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert nearest in result.stderr.replace("'", "")


def test_help_lists_every_command_in_a_group() -> None:
    by_option, alone = run("--help"), run()
    assert by_option.stdout == alone.stdout
    for title, commands in program.MENU.items():
        section = by_option.stdout.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [name for name in commands if f"  {name} " not in section] == []
