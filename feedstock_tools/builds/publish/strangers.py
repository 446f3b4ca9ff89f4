"""Finding out which feedstock a ledger belongs to, by its outputs, which belong to only one feedstock.

A configuration's name is not enough (`linux_64_` is in every second feedstock), nor is a commit, since one repository
may contain several feedstocks. Outputs keep their names when configurations change.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from feedstock_tools.builds.plan.rendering import render_outputs
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.feedstock.configurations import outline
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import LEDGER

_HINT = (
    "If it is this feedstock with other output names, check out the commit that was built in another folder, and name"
    " that folder with --feedstock and these artifacts with --output-dir."
)
#: The number of outputs of another feedstock in a message.
_NAMED = 3


def strangers(
    made: Mapping[Path, AbstractSet[str]], own_outputs: AbstractSet[str], feedstock: Feedstock
) -> dict[Path, Mistake]:
    """The artifacts folders of other feedstocks, with none of this one's outputs, each with what is wrong.

    Args:
        made: folder → the names of the outputs with builds in its ledger; a ledger without builds belongs to nobody.
        own_outputs: the outputs with builds in the feedstock's own ledger.
        feedstock: if not all of its outputs can be determined, no folder is strange.
    """
    strange = {root: outputs for root, outputs in made.items() if outputs and outputs.isdisjoint(own_outputs)}
    if not strange:
        return {}
    try:
        configurations = outline(feedstock.folder)
        for part in (configurations[:1], configurations[1:]):  # mostly the first will do
            rendered, _ = render_outputs(part, feedstock.recipe / "recipe.yaml", {})
            if any(each.refusal for each in rendered):
                return {}
            own = {output.name for each in rendered for row in each.rows for output in row.outputs}
            strange = {root: outputs for root, outputs in strange.items() if outputs.isdisjoint(own)}
            if not strange:
                return {}
    except InputError:
        return {}
    return {root: _mistake(root, sorted(outputs)) for root, outputs in strange.items()} if configurations else {}


def _mistake(root: Path, outputs: list[str]) -> Mistake:
    more = f" and {len(outputs) - _NAMED} more" if len(outputs) > _NAMED else ""
    listed = f"{', '.join(outputs[:_NAMED])}{more}"
    return Mistake(
        f"belongs to another feedstock: it built {listed}, which this one does not make", root / LEDGER, hint=_HINT
    )
