"""The courier of a client: a process with Dask's client in it, and nothing else that a host could be after.

    python -m feedstock_tools.builds.fleet.carrying.courier FOLDER

Dask unpickles what messages mark as pickled, so a host could run code in the process that reads them. This process
refuses every pickle that names a function or a class, has neither the ledger nor the user's environment, and passes on
plain values: a line of JSON for each request on its standard input, and for each answer on its standard output.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from feedstock_tools.builds.fleet.certificates import is_name, security
from feedstock_tools.builds.fleet.host.tasks import JOBS, TOPIC, answer, build_row, unfinished
from feedstock_tools.builds.fleet.results.events import Damaged
from feedstock_tools.errors import FeedstockError
from feedstock_tools.wording import size_text

if TYPE_CHECKING:
    from distributed import Client, Future

#: Bytes of a file that travel at once.
_PART = 4 << 20
#: How long the scheduler may take to answer, and a host; how often this process reads the state of both, in seconds.
_CONNECTS_WITHIN, _ANSWERS_WITHIN, _EVERY = 20.0, 60.0, 0.25
#: How long a task waits for the host that has begun it and is away, in seconds: workers join again one by one.
_RETURNS_WITHIN = 20.0
#: Orders of which it is known that a host has them.
_MOST_KEYS = 1_000_000
#: Characters of a line: an order of a row with hundreds of outputs takes a tenth of it.
LONGEST_LINE = 64 << 20
#: Characters of a host's report (one with a hundred builds takes a tenth) and of its answer besides `data`, as JSON.
LARGEST_REPORT, LARGEST_ANSWER = 256 << 10, 16 << 20
#: Bytes of this process, for what Dask reads before it can be counted here.
_MEMORY = 2 << 30
_TOO_MUCH = f"it does not fit into {size_text(_MEMORY)} of memory"


def refuse_pickles(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook that lets no pickle name a function or a class.

    The scheduler pickles its own errors too, such as that a host is away: whoever asked takes all of them for that.

    Raises:
        RuntimeError: one does.
    """
    if event == "pickle.find_class":
        raise RuntimeError(f"a host or the scheduler sent a pickle of {'.'.join(map(str, arguments))}")


class _Courier:
    """Dask's client, for one connection to the scheduler."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._futures: dict[str, Future] = {}
        self._workers: dict[str, str] = {}
        self._has: dict[str, str] = {}
        self._begun: set[str] = set()
        self._asking: set[asyncio.Task[None]] = set()
        self._turns: dict[str, asyncio.Lock] = {}
        self._echo = uuid4().hex
        self._echoed = time.monotonic()

    async def serve(self, requests: asyncio.StreamReader) -> None:
        """Serve until the requests end."""
        self._client.subscribe_topic(TOPIC, self._heard)
        looking = asyncio.ensure_future(self._look())
        while not looking.done():
            reading = asyncio.ensure_future(requests.readline())
            await asyncio.wait([reading, looking], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
            elif line := reading.result():
                task = asyncio.ensure_future(self._answer(json.loads(line)))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
            else:
                looking.cancel()
                return
        looking.result()

    async def _answer(self, request: Mapping[str, Any]) -> None:
        try:
            _write({"to": request["id"], "found": await getattr(self, f"do_{request['do']}")(**request["with"])})
        except (Damaged, MemoryError) as error:
            _write({"to": request["id"], "damaged": str(error)[:1000] or _TOO_MUCH})
        except Exception as error:  # whatever Dask raises: the client tries again
            _write({"to": request["id"], "away": f"{type(error).__name__}: {error}"[:1000]})

    async def do_submit(self, key: str, **task: Any) -> None:
        """Have a row built; see `_submit`."""
        async with self._turns.setdefault(key, asyncio.Lock()):
            await self._submit(key, **task)

    async def _submit(
        self,
        key: str,
        order: Mapping[str, Any],
        resources: Mapping[str, float],
        priority: int,
        run: str,
        host: str,
        without: list[str],
    ) -> None:
        """Have a row built, by a task that goes on without this client, on the host that has it already if one has.

        Args:
            host: the one that has begun it; empty for none.
            without: those that must not build it.
        """
        from distributed import fire_and_forget

        waits = _RETURNS_WITHIN
        while host and host not in self._workers and waits > 0:
            await asyncio.sleep(_EVERY)
            waits -= _EVERY
        host = host or self._has.get(key, "")
        there = self._workers.get(host) if host not in without else None
        others = [address for name, address in self._workers.items() if name not in without] if without else None
        self._begun.discard(key)
        self._futures[key] = future = self._client.submit(
            build_row,
            order,
            key=key,
            resources=dict(resources),
            priority=priority,
            workers=[there] if there else others,
            allow_other_workers=bool(there),
            pure=False,
        )
        fire_and_forget(future)
        await self._client.set_metadata([TOPIC, run, key], value=True)
        if there:
            await self._ask_begun(key)

    async def do_release(self, key: str, cancel: bool) -> None:
        """Let the scheduler forget a task, unless other clients wait for it, or it is cancelled for all."""
        async with self._turns.setdefault(key, asyncio.Lock()):
            future = self._futures.pop(key, None)
            if future is not None and cancel:
                await self._client.cancel([future], force=True)
            elif future is not None:
                future.release()

    async def do_runs(self) -> dict[str, int]:
        """The runs of this fleet, with the number of their tasks."""
        return {run: len(keys) for run, keys in (await self._runs()).items()}

    async def do_stop(self, run: str) -> int:
        """End a run: its builds, and the rows that wait; returns the number of the builds."""
        keys = (await self._runs()).get(run, [])
        for key in keys:
            # Under its key, Dask knows the task; if it does not any more, this one can begin nowhere.
            future = self._client.submit(build_row, {}, key=key, resources={"nowhere": 1}, pure=False)
            await self._client.cancel([future], force=True)
        asking = [self._ask(host, "stop", {"keys": keys}) for host in self._workers]
        stopped = 0
        for found in await asyncio.gather(*asking, return_exceptions=True):  # one that fails keeps none from ending
            if isinstance(found, BaseException):
                raise found
            stopped += int(found.get("stopped", 0))
        return stopped

    async def do_ask(self, host: str, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of a host; bytes as text in base 64."""
        found = await self._ask(host, operation, arguments)
        if isinstance(data := found.get("data"), bytes):
            found["data"] = base64.b64encode(data).decode()
        return found

    async def do_fetch(self, host: str, key: str, content: str, size: int, path: str) -> dict[str, Any]:
        """Append to a file what it lacks of a file of an attempt, in pieces."""
        with Path(path).open("ab") as stream:
            while (offset := stream.tell()) < size:
                request = {"key": key, "content": content, "offset": offset, "size": min(_PART, size - offset)}
                found = await self._ask(host, "file", request)
                data = found.get("data")
                if not isinstance(data, bytes) or not 0 < len(data) <= min(_PART, size - offset):
                    return {"refused": found.get("refused", f"the file does not have {size} bytes")}
                stream.write(data)
        return {}

    async def do_put(self, host: str, content: str, path: str, text: str) -> dict[str, Any]:
        """Send a host a file, or a text, in pieces."""
        if not path:
            return await self._put(host, content, 0, text.encode(), len(text.encode()))
        size, offset = Path(path).stat().st_size, 0
        with Path(path).open("rb") as stream:
            while True:
                data = stream.read(_PART)
                found = await self._put(host, content, offset, data, size)
                offset += len(data)
                if "refused" in found or offset >= size or not data:
                    return found

    async def _put(self, host: str, content: str, offset: int, data: bytes, size: int) -> dict[str, Any]:
        return await self._ask(host, "put", {"content": content, "offset": offset, "size": size}, data)

    async def _ask(self, host: str, operation: str, arguments: Mapping[str, Any], data: bytes = b"") -> dict[str, Any]:
        address = self._workers[host]
        asking = self._client.run(answer, operation, dict(arguments), data, workers=[address])
        found = (await asyncio.wait_for(asking, _ANSWERS_WITHIN))[address]
        if not isinstance(found, dict) or not isinstance(found.get("data", b""), bytes):
            raise Damaged("its answer has another form")
        if len(found.get("data", b"")) > _PART:
            raise Damaged(f"its answer has more than {size_text(_PART)}")
        _text({key: value for key, value in found.items() if key != "data"}, LARGEST_ANSWER)
        return dict(found)

    async def _runs(self) -> dict[str, list[str]]:
        given = await self._client.get_metadata([TOPIC], default={})
        left = set(await self._client.run_on_scheduler(unfinished, [key for keys in given.values() for key in keys]))
        return {run: kept for run, keys in given.items() if (kept := [key for key in keys if key in left])}

    def _heard(self, event: tuple[float, Any]) -> None:
        """A host has begun a task."""
        message = event[1]
        if isinstance(message, dict) and message.get("echo") == self._echo:
            self._echoed = time.monotonic()
        elif isinstance(message, dict) and "key" in message:
            self._report_begun(message)

    def _report_begun(self, message: dict[str, Any]) -> None:
        with suppress(Damaged):
            _write({"begun": message})
            self._begun.add(str(message["key"]))
            self._note([message["key"]], message.get("host"))

    async def _ask_begun(self, key: str) -> None:
        """Report a task that had begun before this client came. Dask begins it no second time, so its host is silent.

        One that its host has ended, while Dask has not, begins again.
        """
        with suppress(Exception):  # the host is about to be gone
            host = self._has[key]
            found = (await asyncio.wait_for(self._ask(host, "begun", {"key": key}), 5)).get("begun")
            if isinstance(found, dict) and (found["goes_on"] or self._futures[key].status != "pending"):
                self._report_begun({**found, "key": key, "host": host})

    async def _look(self) -> None:
        """Report hosts and the ends of tasks, until the scheduler is away."""
        ended: set[str] = set()
        while self._client.status == "running" and time.monotonic() - self._echoed < _CONNECTS_WITHIN:
            # Dask does not tell when it reads no more messages.
            await asyncio.wait_for(self._client.log_event(TOPIC, {"echo": self._echo}), _CONNECTS_WITHIN)
            found = await asyncio.wait_for(self._client.scheduler.identity(n_workers=-1), _CONNECTS_WITHIN)
            _write({"jobs": await asyncio.wait_for(self._client.get_metadata([JOBS], default={}), _CONNECTS_WITHIN)})
            _write({"dashboard": found["services"].get("dashboard")})
            await self._meet(found["workers"])
            for key, future in list(self._futures.items()):
                if future.status != "pending" and key not in ended:
                    if key not in self._begun:
                        await self._ask_begun(key)
                    ended.add(key)
                    _write({"ended": key, "how": future.status})
            ended &= self._futures.keys()
            await asyncio.sleep(_EVERY)

    async def _meet(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        """Take note of the hosts, and ask new ones what they have."""
        named = {address: each for address, each in workers.items() if is_name(each["name"])}
        known, self._workers = self._workers, {each["name"]: address for address, each in named.items()}
        new = [self._learn(host) for host, address in self._workers.items() if known.get(host) != address]
        await asyncio.gather(*new)
        _write({"hosts": _reports({each["name"]: each["metrics"].get(TOPIC) or {} for each in named.values()})})

    async def _learn(self, host: str) -> None:
        with suppress(Exception):  # it is about to be gone
            self._note((await asyncio.wait_for(self._ask(host, "keys", {}), 5)).get("keys", []), host)

    def _note(self, keys: Iterable[object], host: object) -> None:
        """A host has what it says of some orders; of a million only, which takes 200 MB."""
        known = [key for key in keys if isinstance(key, str) and len(key) < 100] if is_name(host) else []
        self._has.update(dict.fromkeys(known[: max(0, _MOST_KEYS - len(self._has))], str(host)))


def _reports(given: Mapping[str, Any]) -> dict[str, Any]:
    """The reports of hosts, or what is wrong with those that are too large, alone or together: the largest of them."""
    sizes, reports, room = {}, {}, LONGEST_LINE // 2
    for host, report in given.items():
        try:
            sizes[host] = len(_text(report, LARGEST_REPORT))
        except Damaged as error:
            reports[host] = {"damaged": f"its report is damaged: {error}"}
    for host in sorted(sizes, key=lambda each: sizes[each]):
        room -= sizes[host]
        reports[host] = given[host] if room > 0 else {"damaged": "the reports of all hosts are too large together"}
    return reports


def _text(message: object, most: int) -> str:
    """A value as JSON.

    Raises:
        Damaged: JSON cannot hold it, or it has too many characters.
    """
    try:
        text = json.dumps(message, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Damaged(f"it is not JSON: {error}") from None
    if len(text) > most:
        raise Damaged(f"it has {size_text(len(text))}, more than {size_text(most)}")
    return text


def _write(message: Mapping[str, Any]) -> None:
    sys.stdout.write(_text(message, LONGEST_LINE) + "\n")
    sys.stdout.flush()


async def _serve(folder: Path, address: str) -> None:
    from distributed import Client

    loop, requests = asyncio.get_running_loop(), asyncio.StreamReader(limit=LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    plain = ["msgpack"]
    async with Client(
        f"tls://{address}",
        asynchronous=True,
        security=security(folder, "client"),
        timeout=_CONNECTS_WITHIN,
        set_as_default=False,
        serializers=plain,
        deserializers=plain,
    ) as client:
        await _Courier(client).serve(requests)


def main(folder: str, address: str) -> int:
    """Serve until the standard input ends, or the scheduler is away."""
    sys.addaudithook(refuse_pickles)
    if find_spec("resource") is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    try:
        asyncio.run(_serve(Path(folder), address))
    except (FeedstockError, OSError, TimeoutError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        _write({"away": str(getattr(cause, "strerror", None) or cause or type(cause).__name__)[:1000]})
        return 1
    except (Damaged, MemoryError) as error:
        _write({"away": f"the scheduler sends too much: {str(error)[:1000] or _TOO_MUCH}"})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
