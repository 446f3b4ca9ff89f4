"""Waiting for py-rattler, whose functions are coroutines that its own threads complete.

One of its threads may still be releasing Python objects when the last coroutine has ended. An interpreter
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
    """Run a coroutine to its end, and keep the process from exiting right after it."""
    import asyncio

    _rest_at_exit()
    return asyncio.run(work)


@cache
def _rest_at_exit() -> None:
    atexit.register(time.sleep, _SECONDS_TO_LET_GO)
