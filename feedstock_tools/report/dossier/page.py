"""The page of a dossier: the builds, their machines and inputs, and every package's hash, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from feedstock_tools import __version__
from feedstock_tools.builds.ledger.records import BuildRecord, TestRecord
from feedstock_tools.builds.matrix.matrix import Matrix
from feedstock_tools.builds.matrix.states import ConfigurationState
from feedstock_tools.builds.stand_in.choice import STAND_IN
from feedstock_tools.data import text_templates
from feedstock_tools.redaction import redacted
from feedstock_tools.report.matrix.view import printable
from feedstock_tools.report.run.verifying import are_same, comparison_words
from feedstock_tools.units import size_text
from feedstock_tools.wording import duration, moment

if TYPE_CHECKING:
    from feedstock_tools.channel.targets import Target


def dossier_page(
    matrix: Matrix,
    chosen: Sequence[ConfigurationState],
    left_out: Sequence[str],
    tests: Sequence[TestRecord],
    *,
    with_packages: bool,
    uploaded: Target | None = None,
) -> str:
    """The page for some finished configurations.

    Args:
        left_out: the names of configurations that are not in the dossier.
        tests: the runs of `test` on their packages; `log` is empty for one whose log is gone.
        uploaded: the target with the packages.
    """
    # Markdown, which HTML escaping would spoil: `cell` escapes each text.
    environment = text_templates()
    environment.filters |= {"cell": cell, "duration": duration, "moment": moment, "size": size_text}
    views = [_view(matrix, state, tests) for state in chosen]
    files = sorted({package.file for view in views for record in view["records"] for package in record.packages})
    return environment.get_template("dossier.md.j2").render(
        matrix=matrix,
        version=__version__,
        views=views,
        left_out=left_out,
        with_packages=with_packages,
        commits=sorted({record.commit_id for view in views for record in view["records"]}),
        stand_in=any(record.marks.get("channel") == STAND_IN for view in views for record in view["records"]),
        count=len(files),
        uploaded=uploaded,
        copying=copying(uploaded, files),
    )


def cell(text: str) -> str:
    """A text escaped for a line or a table of Markdown."""
    plain = " ".join(printable(text.replace("\n", " ")).split())
    for special, instead in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("`", "'"), ("[", "\\["), ("@", "@\u200b")):
        plain = plain.replace(special, instead)
    return plain


def copying(uploaded: Target | None, files: Sequence[str]) -> list[str]:
    """The commands that copy packages from a maintainer's channel at anaconda.org, by conda-forge's proposal 3."""
    from feedstock_tools.channel.targets import ServiceTarget

    if not isinstance(uploaded, ServiceTarget) or uploaded.kind != "anaconda":
        return []
    releases = dict.fromkeys("/".join(file.rpartition("/")[2].rsplit("-", 2)[:2]) for file in files)
    words = f"anaconda copy --from-label {uploaded.label} --to-label main --to-owner conda-forge"
    return [f"{words} {uploaded.channel}/{release}" for release in releases]


def _view(matrix: Matrix, state: ConfigurationState, tests: Sequence[TestRecord]) -> dict[str, Any]:
    by_number: dict[int | None, BuildRecord] = {
        output.record.id: output.record for output in state.outputs if output.record
    }
    records = list(by_number.values())
    hashes = {package.sha256 for record in records for package in record.packages}
    return {
        "configuration": state.configuration,
        "tests": [test for test in tests if test.sha256 in hashes],
        "records": records,
        "compared": [
            (comparison.file, comparison_words(comparison), are_same([comparison]))
            for record in records
            for comparison in matrix.compared(record)[-1:]
        ],
        "logs": list(dict.fromkeys(record.log.rpartition("/")[2] for record in records)),
        "engines": _each(record.engine for record in records),
        "machines": _each(record.machine for record in records),
        "channels": _each(redacted(channel) for record in records for channel in record.channels),
        "begin": min(record.started for record in records),
        "end": max(record.ended or record.started for record in records),
        "seconds": sum(record.seconds or 0.0 for record in records),
        "untested": [
            (record.output, record.marks.get("tests-reason", ""))
            for record in records
            if record.marks.get("tests") == "left out"
        ],
    }


def _each(texts: Any) -> list[str]:
    return sorted({text for text in texts if text})
