"""Waiting for py-rattler, whose functions are coroutines that its own threads complete.

A thread of it may still be letting go of what it passed to Python when the last coroutine has ended. An interpreter
that exits in that moment crashes: with py-rattler 0.28, 5 of 60 processes that solved and exited at once did, and none
of 60 that slept for 20 ms before they exited.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

__all__ = ["wait_for"]

_Result = TypeVar("_Result")
_SECONDS_TO_LET_GO = 0.05


def wait_for(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine to its end, and let the process not exit on its heels."""
    import asyncio

    _rest_at_exit()
    return asyncio.run(work)


@cache
def _rest_at_exit() -> None:
    atexit.register(time.sleep, _SECONDS_TO_LET_GO)
