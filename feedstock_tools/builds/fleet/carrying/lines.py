"""Questions and answers over one connection, in both directions, any number at a time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from feedstock_tools.builds.fleet.carrying.transport import Closed, Connection

Message = Mapping[str, Any]
Answer = Callable[[Message], Awaitable[Message]]
#: The number of questions of a peer that are answered at a time; further ones wait in its socket.
_MOST_AT_ONCE = 256


async def no_questions(question: Message) -> Message:
    """For a side that is asked nothing."""
    return {"refused": "nothing can be asked here"}


class Line:
    """A connection on which both sides ask and answer; `run` must be running meanwhile.

    Attributes:
        connection: beneath it.
    """

    def __init__(self, connection: Connection, answer: Answer = no_questions) -> None:
        """Begin to use a connection.

        Args:
            answer: called with each question of the peer; returns the answer.
        """
        self.connection = connection
        self._answer = answer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)

    async def ask(self, question: Message, seconds: float) -> Message:
        """The peer's answer.

        Raises:
            CommClosedError: the connection ended before it came.
            TimeoutError: there was none within the time.
        """
        number = next(self._numbers)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(seconds):
                await self._write({"id": number, "ask": question})
                return await answer
        finally:
            self._waiting.pop(number, None)

    async def run(self) -> None:
        """Read until the connection ends; unanswered questions then fail.

        Raises:
            CommClosedError: always, at the end.
        """
        try:
            while True:
                self._take(await self.connection.read())
                await self._room.acquire()
                self._room.release()
        finally:
            for task in self._tasks:
                task.cancel()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(Closed("the connection ended"))
            self.connection.abort()

    async def end(self, reading: asyncio.Task[None]) -> None:
        """End the connection, and wait for the end of the task of `run`.

        Raises:
            asyncio.CancelledError: this task was cancelled meanwhile; that `run` is cancelled raises nothing.
        """
        self.connection.abort()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    def _take(self, message: object) -> None:
        if not isinstance(message, dict) or type(message.get("id")) is not int:
            raise Closed("a message is neither a question nor an answer")
        content = message.get("ask", message.get("answer"))
        if not isinstance(content, dict):
            raise Closed("a message has no content")
        if "ask" in message:
            task = asyncio.get_running_loop().create_task(self._reply(message["id"], content))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        waiting = self._waiting.get(message["id"])
        if waiting is not None and not waiting.done():
            waiting.set_result(content)

    async def _reply(self, number: int, question: Message) -> None:
        async with self._room:
            answer = await self._answer(question)
        try:
            await self._write({"id": number, "answer": answer})
        except Closed:  # `run` ends too
            return

    async def _write(self, message: Message) -> None:
        async with self._writing:
            await self.connection.write(message)
