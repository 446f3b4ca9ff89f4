"""What a client has done on a host: a row is built as a task, and requests are answered beside the tasks.

Both give back plain values and never raise, since a client does not unpickle what hosts send.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from feedstock_tools.builds.fleet.orders.order import Order, Refused

if TYPE_CHECKING:
    from distributed import Scheduler

    from feedstock_tools.builds.fleet.host.builds import Builds

#: The topic of the messages of hosts to clients.
TOPIC = "feedstock-tools"
#: Where the scheduler keeps the state of each kind of job: what it has submitted, and what is wrong.
JOBS = "feedstock-tools jobs"
#: The states of tasks of Dask's scheduler that have not ended.
UNFINISHED = ("released", "waiting", "no-worker", "queued", "processing")
#: What reading an order or a request of another form raises.
_OTHER_FORM = (LookupError, TypeError, ValueError, AttributeError)


class Served:
    """The builds of the host that this process is the worker of; None in any other process."""

    builds: Builds | None = None


async def build_row(content: Mapping[str, Any]) -> dict[str, Any]:
    """Perform an order; how it ended.

    Raises:
        Reschedule: the host is at fault, and takes no rows until that is mended; Dask begins the row elsewhere.
    """
    from distributed import Reschedule

    if Served.builds is None:
        return {"how": "broken", "reason": "this process is not the worker of a host"}
    try:
        end = await Served.builds.run(Order.from_json(content))
    except _OTHER_FORM as error:
        return {"how": "broken", "reason": f"the order has another form: {error!r}"}
    if end.how == "unfit":
        await Served.builds.set_aside(end.reason)
        raise Reschedule
    return {"how": end.how, "reason": end.reason}


def unfinished(keys: Iterable[str], dask_scheduler: Scheduler) -> list[str]:
    """Those of some tasks that wait or run, as the scheduler knows."""
    return [key for key in keys if key in dask_scheduler.tasks and dask_scheduler.tasks[key].state in UNFINISHED]


async def answer(operation: str, arguments: Mapping[str, Any], data: bytes = b"") -> dict[str, Any]:
    """The answer to a request, or why it is refused."""
    if Served.builds is None:
        return {"refused": "this process is not the worker of a host"}
    try:
        return await _answered(Served.builds, operation, arguments, data)
    except Refused as error:
        return {"refused": str(error)}
    except _OTHER_FORM as error:
        return {"refused": f"the request has another form: {error!r}"}
    except OSError as error:
        return {"refused": f"the host cannot do it: {error.strerror or error}"}


async def _answered(builds: Builds, operation: str, arguments: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    match operation:
        case "events":
            return await builds.events(arguments["key"], arguments["start"], int(arguments["offset"]))
        case "file":
            part = builds.part(arguments["key"], arguments["content"], int(arguments["offset"]), int(arguments["size"]))
            return {"data": part}
        case "lacks":
            return {"lacks": builds.lacks(arguments["bundles"], arguments["files"])}
        case "put":
            builds.store.put(arguments["content"], int(arguments["offset"]), data, int(arguments["size"]))
        case "begun":
            return {"begun": builds.begun(arguments["key"])}
        case "keys":
            return {"keys": builds.keys()}
        case "stop":
            return {"stopped": builds.stop(arguments["keys"])}
        case "unshare":
            builds.unshare(arguments["names"])
        case "forget":
            builds.forget(arguments["key"])
        case _:
            raise Refused(f"there is no operation {operation!r}")
    return {}
