"""What commands of a fleet need beyond the program itself."""

from __future__ import annotations

from feedstock_tools.errors import InputError

__all__ = ["refuse_without_extra"]


def refuse_without_extra(*more: str) -> None:
    """Refuse to go on without the packages of the extra `fleet`.

    Args:
        more: packages that this command needs besides.

    Raises:
        InputError: one is missing.
    """
    from importlib.util import find_spec

    missing = [name for name in ("distributed", "cryptography", *more) if find_spec(name) is None]
    if missing:
        hint = "Install the extra: pip install 'feedstock-tools[fleet]'"
        raise InputError(f"a fleet needs {' and '.join(missing)}", hint=hint)
