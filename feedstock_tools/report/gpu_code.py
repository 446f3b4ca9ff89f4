"""The GPU code of packages and libraries, file by file."""

from __future__ import annotations

import json
from collections.abc import Mapping

from feedstock_tools.gpu_code.archives import Unread
from feedstock_tools.gpu_code.code import GpuCode, architecture_names
from feedstock_tools.wording import counted


def gpu_code_text(codes_of_files: Mapping[str, tuple[GpuCode, ...] | Unread]) -> str:
    """A line for each file: its architectures and the number of pieces of code, or why it cannot be read."""
    if not codes_of_files:
        return "It contains no GPU code."
    lines = []
    for name, codes in codes_of_files.items():
        if isinstance(codes, Unread):
            lines.append(f"{name}\n  not read: {codes.reason}")
            continue
        packed = sum(code.compressed for code in codes)
        note = f", {packed} of them compressed" if packed else ""
        pieces = counted(len(codes), "piece")
        lines.append(f"{name}\n  {' '.join(architecture_names(codes))}  ({pieces} of GPU code{note})")
    return "\n".join(lines)


def gpu_code_json(codes_of_files: Mapping[str, tuple[GpuCode, ...] | Unread]) -> str:
    """The same for programs, with each piece of code."""
    document: dict[str, object] = {
        name: {"architectures": [], "code": [], "not_read": codes.reason}
        if isinstance(codes, Unread)
        else {
            "architectures": architecture_names(codes),
            "code": [
                {
                    "architecture": str(code.architecture),
                    "kind": code.kind,
                    "compressed": code.compressed,
                    "offset": code.offset,
                }
                for code in codes
            ],
        }
        for name, codes in codes_of_files.items()
    }
    return json.dumps(document, indent=2)
