"""Dask's connections over TLS, with messages of plain values only.

Dask's own reader unpickles parts of every message, whatever serializers it was given (`distributed.protocol.core.loads`
and its `__Pickled__`), so that any peer with a certificate could run code. Here each message is one msgpack document
of limited size without extensions: mappings, lists, texts, bytes, numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import msgpack
from distributed.comm.core import CommClosedError, connect, listen
from distributed.comm.registry import backends
from distributed.comm.tcp import TLS, TLSBackend, TLSConnector, TLSListener, convert_stream_closed_error
from tornado.iostream import StreamClosedError

from feedstock_tools.builds.fleet.trust.certificates import HUB, role_of

if TYPE_CHECKING:
    from ssl import SSLContext

#: Bytes of a message, and of a part of a file in one.
LARGEST = 16 << 20
PART = 1 << 20
_SCHEME = "feedstock"
_LENGTH = struct.Struct("!I")
#: The end of a connection, also for a damaged message.
Closed = CommClosedError


class Connection(TLS):  # type: ignore[misc]
    """A connection of Dask's with a reader and a writer of plain values."""

    async def read(self, deserializers: object = None) -> Any:
        """The next message.

        Raises:
            CommClosedError: the connection has ended, or the message is too large or none.
        """
        stream = self.stream
        if stream is None:
            raise CommClosedError("the connection is closed")
        try:
            (size,) = _LENGTH.unpack(await stream.read_bytes(_LENGTH.size))
            if size > LARGEST:
                raise CommClosedError(f"a message of {size} bytes is too large")
            content = await stream.read_bytes(size)
            return msgpack.unpackb(content, raw=False, use_list=True, strict_map_key=True, ext_hook=_no_extension)
        except StreamClosedError as error:
            self.ended_by = error.real_error
            self.abort()
            convert_stream_closed_error(self, error)
        except BaseException as error:
            self.abort()
            if isinstance(error, (ValueError, msgpack.UnpackException)):
                raise CommClosedError(f"a message is damaged: {error}") from error
            raise

    async def write(self, message: object, serializers: object = None, on_error: object = None) -> int:
        """Send a message.

        Raises:
            CommClosedError: the connection has ended.
        """
        stream = self.stream
        if stream is None:
            raise CommClosedError("the connection is closed")
        content = msgpack.packb(message, use_bin_type=True)
        try:
            await stream.write(_LENGTH.pack(len(content)) + content)
        except StreamClosedError as error:
            self.ended_by = error.real_error
            self.abort()
            convert_stream_closed_error(self, error)
        return len(content)

    #: Why the connection ended, if the system said so; None if the peer closed it.
    ended_by: BaseException | None = None


class _Connector(TLSConnector):  # type: ignore[misc]
    comm_class = Connection


class _Listener(TLSListener):  # type: ignore[misc]
    comm_class = Connection


class _Backend(TLSBackend):  # type: ignore[misc]
    def get_connector(self) -> _Connector:
        return _Connector()

    def get_listener(self, loc: str, handle_comm: Any, deserialize: bool, **arguments: Any) -> _Listener:
        return _Listener(loc, handle_comm, deserialize, **arguments)


def _no_extension(code: int, content: bytes) -> object:
    raise ValueError(f"an extension of type {code}")


@cache
def _registered() -> str:
    backends[_SCHEME] = _Backend()
    return _SCHEME


async def dial(address: str, context: SSLContext, seconds: float) -> Connection:
    """A connection to the hub at `host:port`, whose certificate must be that of its fleet's hub.

    Raises:
        OSError: there is no answer, or the hub is another fleet's.
    """
    made = await connect(
        f"{_registered()}://{address}",
        timeout=seconds,
        ssl_context=context,
        server_hostname=HUB,
        require_encryption=True,
    )
    assert isinstance(made, Connection)  # noqa: S101  (made by the backend above)
    return made


async def open_listener(address: str, context: SSLContext, serve: Callable[[Connection], Awaitable[None]]) -> Any:
    """Listen at `host:port` (port 0: any); `serve` is called with each connection.

    Returns:
        Dask's listener; `get_host_port` returns its address, `stop` ends it.
    """
    return await listen(f"{_registered()}://{address}", serve, ssl_context=context, require_encryption=True)


def peer_of(connection: Connection) -> tuple[str, str]:
    """The role and the name in the peer's certificate."""
    return role_of(connection.extra_info.get("peercert") or {})


def is_cut(connection: Connection) -> bool:
    """Whether a connection ended because the network did not carry it, so that the peer may live on."""
    return isinstance(connection.ended_by, TimeoutError) or getattr(connection.ended_by, "errno", None) in _CUT


_CUT = frozenset({100, 101, 102, 110, 112, 113})  # ENETDOWN, ENETUNREACH, ENETRESET, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH
