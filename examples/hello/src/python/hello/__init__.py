"""Says hello through libhello."""

import ctypes
import sys
from pathlib import Path

_NAME = "libhello.dylib" if sys.platform == "darwin" else "libhello.so"
_LIBRARY = ctypes.CDLL(str(Path(sys.prefix, "lib", _NAME)))
_LIBRARY.hello.restype = ctypes.c_char_p


def hello() -> str:
    """The greeting of the library."""
    return _LIBRARY.hello().decode()
