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

from feedstock_tools.errors import WorkError
from feedstock_tools.files.locks import SAID_AFTER, say_wait
from feedstock_tools.redaction import redacted
from feedstock_tools.stages import stage

_Result = TypeVar("_Result")
_SECONDS_TO_LET_GO = 0.05
#: The default limit in seconds: above the time of the largest environments.
_LONGEST = 4 * 3600.0


def wait_for(work: Coroutine[Any, Any, _Result], awaited: str = "", seconds: float = _LONGEST) -> _Result:
    """Run a coroutine to its end, and keep the process from exiting right after it.

    Args:
        awaited: what it waits for, such as `https://example.org to answer`; it is named if that takes long.
        seconds: the time limit.

    Raises:
        WorkError: it takes longer.
    """
    import asyncio

    _rest_at_exit()
    if awaited:
        stage(f"waiting for {redacted(awaited)}")
    return asyncio.run(_limited(work, redacted(awaited or "a package or channel to be read"), seconds))


async def _limited(work: Coroutine[Any, Any, _Result], awaited: str, seconds: float) -> _Result:
    import asyncio

    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=min(SAID_AFTER, seconds))
    if not done and seconds > SAID_AFTER:
        say_wait(awaited, seconds)
        done, _ = await asyncio.wait({task}, timeout=seconds - SAID_AFTER)
    if not done:
        task.cancel()
        raise WorkError(f"gave up waiting for {awaited} after {seconds:g} s")
    return task.result()


@cache
def _rest_at_exit() -> None:
    atexit.register(time.sleep, _SECONDS_TO_LET_GO)
