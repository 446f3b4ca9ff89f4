"""Ends of lines between clients, hub and hosts."""

from __future__ import annotations

import asyncio

import pytest

from feedstock_tools.builds.fleet.carrying.lines import Line


class _ClosesSlowly:
    """A connection that nothing is read from, and that takes a moment to close."""

    async def read(self) -> object:
        try:
            return await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)

    def abort(self) -> None:
        """Close it."""


def test_a_task_that_is_cancelled_while_it_ends_a_line_is_cancelled() -> None:
    async def hold() -> None:
        line = Line(_ClosesSlowly())  # type: ignore[arg-type]
        reading = asyncio.create_task(line.run())
        await asyncio.sleep(0)
        await line.end(reading)
        await asyncio.Event().wait()

    async def cancelled_while_it_ends() -> None:
        holding = asyncio.create_task(hold())
        await asyncio.sleep(0.05)
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(holding, 5)

    asyncio.run(cancelled_while_it_ends())
