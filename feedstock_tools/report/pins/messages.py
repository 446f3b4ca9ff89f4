"""What error messages mean: text and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from feedstock_tools.facts.messages import Explanation


def messages_text(explanations: Sequence[Explanation]) -> str:
    """Each explanation as a paragraph: what it means, what to check, what to run, and the sources."""
    return "\n\n".join("\n".join(_lines(explanation)) for explanation in explanations)


def _lines(explanation: Explanation) -> list[str]:
    return [
        f"{explanation.name}: {explanation.means}",
        *(f"  check {text}" for text in explanation.check),
        *(f"  run   {text}" for text in explanation.commands),
        f"  [{'; '.join(explanation.sources)}]",
    ]


def messages_json(explanations: Sequence[Explanation]) -> str:
    """The same for programs."""
    documents = [
        {
            "name": explanation.name,
            "means": explanation.means,
            "check": list(explanation.check),
            "commands": list(explanation.commands),
            "sources": list(explanation.sources),
        }
        for explanation in explanations
    ]
    return json.dumps(documents, indent=2)
