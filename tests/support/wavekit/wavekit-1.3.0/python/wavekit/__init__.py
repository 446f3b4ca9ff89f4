"""Waves of the C++ library, from Python."""

import ctypes
import sys
from pathlib import Path

_SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"
_LIBRARY = ctypes.CDLL(str(Path(sys.prefix, "lib", f"libwavekit{_SUFFIX}")))
_LIBRARY.wavekit_height.argtypes = [ctypes.c_double]
_LIBRARY.wavekit_height.restype = ctypes.c_double


def height(place: float) -> float:
    """The height of a wave of length 1 at a place, from -1 to 1."""
    return float(_LIBRARY.wavekit_height(place))
