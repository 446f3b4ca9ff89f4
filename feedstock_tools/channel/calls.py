"""Calls of py-rattler: its client, access to repodata, and waiting for its coroutines, which its own threads complete.

One of its threads may still be releasing Python objects when the last coroutine has ended. An interpreter
that exits in that moment crashes: with py-rattler 0.28, 5 of 60 processes that solved and exited at once did, and none
of 60 that slept for 20 ms before they exited.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Coroutine
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from feedstock_tools.errors import WorkError
from feedstock_tools.files.locks import SAID_AFTER, say_wait
from feedstock_tools.redaction import redacted
from feedstock_tools.stages import stage

if TYPE_CHECKING:
    from rattler import Gateway
    from rattler.networking import Client

_Result = TypeVar("_Result")
_RETRIES = 2
#: The time limit of one request, its answer included, in seconds: repodata of 100 MB at 350 KB/s.
_REQUEST_SECONDS = 300
_SECONDS_TO_LET_GO = 0.05
#: The number of files that the threads of py-rattler open before any of a channel.
_FILES = 12
#: The default limit in seconds: above the time of the largest environments.
_LONGEST = 4 * 3600.0


def rattler_client() -> Client:
    """The client for all requests to channels, with stored credentials and a time limit for each request."""
    return _client(_RETRIES, _REQUEST_SECONDS)


@cache
def _client(retries: int, seconds: int) -> Client:
    from rattler.networking import Client

    _refuse_few_files()
    return Client.default_client(retries, timeout=seconds)


def _refuse_few_files() -> None:
    """Where too few files may be opened, py-rattler 0.28 panics, with a message of its own on stderr."""
    opened: list[int] = []
    try:
        while len(opened) < _FILES:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        hint = "Allow this process more open files (`ulimit -n`)."
        raise WorkError(f"channels cannot be read: {error.strerror}", hint=hint) from error
    finally:
        for file in opened:
            os.close(file)


def unsharded_gateway() -> Gateway:
    """Access to repodata that does not use shards.

    On a second request for shards, a plain file server answers "not modified", which py-rattler 0.28 treats as an
    error.
    """
    from rattler import Gateway, SourceConfig

    return Gateway(default_config=SourceConfig(sharded_enabled=False), client=rattler_client())


def wait_for(work: Coroutine[Any, Any, _Result], awaited: str = "", seconds: float = _LONGEST) -> _Result:
    """Run a coroutine to its end, and keep the process from exiting right after it.

    Args:
        awaited: what it waits for, such as `https://example.org to answer`; it is named if that takes long.
        seconds: the time limit.
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
        say_wait(awaited, seconds if seconds < _LONGEST else None)
        done, _ = await asyncio.wait({task}, timeout=seconds - SAID_AFTER)
    if not done:
        task.cancel()
        raise WorkError(f"gave up waiting for {awaited} after {seconds:g} s")
    return task.result()


@cache
def _rest_at_exit() -> None:
    atexit.register(time.sleep, _SECONDS_TO_LET_GO)
