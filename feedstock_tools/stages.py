"""What a command is doing, in a few words: to be shown when it takes long.

The library says it here; by default nobody listens. The command line shows it (`cli/progress.py`).
"""

from __future__ import annotations

from collections.abc import Callable


def _discard(text: str) -> None:
    """Discard a stage."""


_show: Callable[[str], None] = _discard


def stage(text: str) -> None:
    """Say what begins now, such as `solving 12 environments`."""
    _show(text)


def listen(show: Callable[[str], None]) -> None:
    """Pass the stages of this process to a function."""
    global _show
    _show = show
