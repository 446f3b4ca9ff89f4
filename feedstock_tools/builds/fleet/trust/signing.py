"""Signatures of orders: a host performs what the fleet's client has signed for it, whoever delivers it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.builds.fleet.trust.certificates import write_private
from feedstock_tools.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNING_KEY, PUBLIC_KEY = "orders.key", "orders.pub"
#: Bytes of an order: a row with hundreds of outputs takes a tenth of it.
_LARGEST = 8 << 20


class Refused(Exception):  # noqa: N818 - not an error of the program
    """A host does not do what it was sent; the message gives the reason."""


class Busy(Refused):
    """A host cannot begin a row now, but may later."""


@dataclass(frozen=True, slots=True)
class Signed:
    """The JSON of a request to one host, and the signature of these bytes."""

    text: bytes
    signature: bytes


def make_signing_key(folder: Path) -> None:
    """Make the key for orders, and its public half, in the private folder of a fleet.

    Raises:
        WorkError: the folder cannot be written.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    write_private(folder / SIGNING_KEY, key.private_bytes_raw().hex().encode())
    write_private(folder / PUBLIC_KEY, key.public_key().public_bytes_raw().hex().encode())


def signing_key(folder: Path) -> Ed25519PrivateKey:
    """The key for orders in the private folder of a fleet.

    Raises:
        InputError: it cannot be read.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(_read(folder / SIGNING_KEY))


def public_key(folder: Path) -> Ed25519PublicKey:
    """The public half, in the folder of a host.

    Raises:
        InputError: it cannot be read.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(_read(folder / PUBLIC_KEY))


def sign(key: Ed25519PrivateKey, host: str, operation: str, arguments: Mapping[str, Any]) -> Signed:
    """A request to one host: no other host performs it."""
    content = {"host": host, "operation": operation, "arguments": dict(arguments)}
    text = json.dumps(content, sort_keys=True).encode()
    return Signed(text, key.sign(text))


def verified(key: Ed25519PublicKey, host: str, text: object, signature: object) -> tuple[str, dict[str, Any]]:
    """The operation and the arguments of a request to this host.

    Raises:
        Refused: the client did not sign it, it is for another host, or not a request.
    """
    from cryptography.exceptions import InvalidSignature

    if not isinstance(text, bytes) or not isinstance(signature, bytes) or len(text) > _LARGEST:
        raise Refused("it is not a signed request")
    try:
        key.verify(signature, text)
    except InvalidSignature:
        raise Refused("the client of the fleet did not sign it") from None
    try:
        content = json.loads(text)
        host_meant, operation, arguments = content["host"], str(content["operation"]), dict(content["arguments"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refused("it is not a request") from None
    if host_meant != host:
        raise Refused(f"it is for another host, {host_meant!r}")
    return operation, arguments


def _read(path: Path) -> bytes:
    try:
        content = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise InputError(f"the key for orders cannot be read: {error}", path=path) from error
    if len(content) != 32:
        raise InputError("the key for orders is damaged", path=path)
    return content
