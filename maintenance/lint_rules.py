"""Write the table of conda-forge's rules into docs/lint.md, from the rules themselves.

python -m maintenance.lint_rules    write the table between its marks
"""

from __future__ import annotations

from pathlib import Path

from feedstock_tools.check.linting import feedstock_files  # noqa: F401 - adds its rules to those of conda-forge
from feedstock_tools.check.linting.conda_forge import SMITHY_RULES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "lint.md"
_BEGIN = "<!-- rules: drawn by `python -m maintenance.lint_rules` from the code; do not edit -->\n"
_END = "<!-- end of rules -->"


def updated(page: str) -> str:
    """The page with the table of today's rules between its marks."""
    before, _, rest = page.partition(_BEGIN)
    rows = ["| rule | conda-smithy's | weight | what it finds |", "|---|---|---|---|"]
    for name, each in sorted(SMITHY_RULES.items()):
        only = f" (`{each.format}`)" if each.format else ""
        rows.append(f"| `{name}` | {each.rule.smithy} | {each.weight} | {each.rule.meaning}{only} |")
    return "\n".join([before + _BEGIN, *rows, "", _END + rest.partition(_END)[2]])


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
