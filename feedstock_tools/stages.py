"""What a command is doing, in a few words: to be shown when it takes long.

The library says it here; by default nobody listens. The command line shows it (`cli/pulse.py`).
"""

from __future__ import annotations

from collections.abc import Callable


def _unheard(text: str) -> None:
    """Discard a stage."""


_heard: Callable[[str], None] = _unheard


def stage(text: str) -> None:
    """Say what begins now, such as `solving 12 environments`."""
    _heard(text)


def listen(hear: Callable[[str], None]) -> None:
    """Pass the stages of this process to a function."""
    global _heard
    _heard = hear
