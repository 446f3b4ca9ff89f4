"""A list of GPU architectures in the form of a build system, and how GPUs run builds for it."""

from __future__ import annotations

import json
from typing import Any

from feedstock_tools.pins.gpu.architectures import Chosen

_WORDS = {"native": "native", "ptx": "PTX at first start", "no": "not at all"}


def architectures_text(chosen: Chosen, form: str) -> str:
    """The list, then a table of coverage."""
    lines = [chosen.written(form), "", f"CUDA {chosen.toolkit.version}, preset '{chosen.preset}':"]
    for capability, support, gpus in chosen.coverage():
        unique = list(dict.fromkeys(gpu.name for gpu in gpus))
        names = ", ".join(unique[:3]) + (", …" if len(unique) > 3 else "")
        by = f"({support.by})" if support.by else ""
        lines.append(f"  {capability:>4}  {_WORDS[support.how]:<18} {by:<13} {gpus[0].generation}: {names}")
    numbers = chosen.numbers()
    left = [name for name in chosen.toolkit.architectures if name.isdigit() and int(name) not in numbers]
    if left:
        lines.append(f"Known to this nvcc but not in the preset: {', '.join(f'sm_{name}' for name in left)}.")
    return "\n".join(lines)


def architectures_json(chosen: Chosen, form: str) -> str:
    """The same for programs."""
    document: dict[str, Any] = {
        "cuda": chosen.toolkit.version,
        "preset": chosen.preset,
        "architectures": [str(architecture) for architecture in chosen.architectures],
        "written": chosen.written(form),
        "coverage": [
            {
                "capability": capability,
                "runs": support.how,
                "by": str(support.by) if support.by else None,
                "gpus": list(dict.fromkeys(gpu.name for gpu in gpus)),
            }
            for capability, support, gpus in chosen.coverage()
        ],
    }
    return json.dumps(document, indent=2)
