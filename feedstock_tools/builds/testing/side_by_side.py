"""Parallel tests, each on a seat of its own, all of which end with the run."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace

from feedstock_tools.builds.ledger import TestRecord
from feedstock_tools.builds.testing.running import Conditions


def side_by_side(
    numbers: Iterable[int], seats: Sequence[Conditions], test: Callable[[int, Conditions], TestRecord]
) -> Iterator[tuple[int, TestRecord]]:
    """Run tests in parallel, one per seat, and yield each with its record as it ends.

    If the caller leaves by Ctrl-C or an error, running tests are ended first.

    Args:
        numbers: the numbers of the tests, in starting order.
        seats: the conditions for tests; no two tests share one at a time.
    """
    stop, stopping = os.pipe()
    free: queue.SimpleQueue[Conditions] = queue.SimpleQueue()
    for seat in seats:
        free.put(replace(seat, stop=stop))

    def seated(number: int) -> TestRecord:
        seat = free.get()
        try:
            return test(number, seat)
        finally:
            free.put(seat)

    pool = ThreadPoolExecutor(len(seats))
    try:
        running = {pool.submit(seated, number): number for number in numbers}
        for ended in as_completed(running):
            yield running[ended], ended.result()
    finally:
        os.close(stopping)
        pool.shutdown(cancel_futures=True)
        os.close(stop)
