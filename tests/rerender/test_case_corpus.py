"""Real rerenders, where they are laid out: FEEDSTOCK_TOOLS_CASES names the folder with one folder a case.

A case holds `feedstock/`, `pinning/`, `case.json` with the versions that ran, the `expected/` files of the time, and
`current/` those of the newest tools.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from tests.support.needs import needs

#: A few of many, so that this takes seconds; the whole corpus is compared by a command of its own.
CHOSEN = (
    "tensorflow-feedstock-b3ddb995",
    "tensorflow-feedstock-528618e4",
    "faiss-split-feedstock-0c5ba4e3",
    "python-feedstock-3ed26b55",
    "nccl-feedstock-8cba160d",
    "nvcc-feedstock-4ce54ab1",
    "numpy-feedstock-dd666916",
    "xgboost-feedstock-c588dde2",
)
CASES = Path(os.environ.get("FEEDSTOCK_TOOLS_CASES", "no-such-folder"))

pytestmark = needs("fetched", CASES.is_dir(), "rerenders laid out in the folder that FEEDSTOCK_TOOLS_CASES names")


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("kind", ["expected", "current"])
def test_a_real_rerender_comes_out_byte_for_byte(name: str, kind: str) -> None:
    case = CASES / name
    told = json.loads((case / "case.json").read_text())
    files = {path.name: path.read_bytes() for path in (case / kind).glob("*.yaml")}
    then = Rules.parse(f"{told['conda_smithy']}+{told['conda_build'] or ''}")

    found = rerender(case / "feedstock", pinning=case / "pinning", rules=then if kind == "expected" else Rules.newest())

    assert files
    assert dict(found.files) == files


def test_what_conda_smithy_refuses_is_refused_with_the_reason() -> None:
    case = CASES / "nccl-feedstock-3197cf5f"

    with pytest.raises(InputError, match=r"is not in the migration's ordering"):
        rerender(case / "feedstock", pinning=case / "pinning")
