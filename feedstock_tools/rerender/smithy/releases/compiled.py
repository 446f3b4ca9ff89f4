"""Compiled templates, kept in memory and in a private folder of this user, by the hash of their texts."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import CodeType

import jinja2
from jinja2.bccache import Bucket, BytecodeCache

from feedstock_tools.files.temporary import owned_name
from feedstock_tools.rerender.smithy.releases.known_values import used_values

#: The maximum number of compiled templates in memory: those of about 20 releases.
_MOST = 512
_LARGEST = 4 * 1024 * 1024
_codes: dict[str, CodeType] = {}
_used: dict[str, tuple[str, ...]] = {}


class CompiledTemplates(BytecodeCache):
    """The bytecode of templates, and the values that each uses.

    Python runs the code in the folder, so only files of this user that nobody else can write are read, from such a
    folder. A file's name is the hash of everything that its content depends on: the template's text and name, the
    versions of Jinja and Python (which the bytecode's header repeats).
    """

    def __init__(self, folder: Path | None) -> None:
        """Read nothing yet; without a folder, templates are kept in memory alone."""
        self._folder = folder if folder is not None and _is_private(folder) else None

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Only the name: the checksum tells texts apart."""
        return name

    def get_source_checksum(self, source: str) -> str:
        """The hash of a text."""
        return sha256(source.encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Find the code of a template in memory, else in the folder."""
        key = _key(bucket.key, bucket.checksum)
        bucket.code = _codes.get(key)
        if bucket.code is None and (content := self._read(f"{key}.code")):
            with suppress(Exception):  # a damaged file costs only time
                bucket.load_bytecode(BytesIO(content))
                _keep(key, bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template."""
        key = _key(bucket.key, bucket.checksum)
        _keep(key, bucket)
        stream = BytesIO()
        bucket.write_bytecode(stream)
        self._write(f"{key}.code", stream.getvalue())

    def used_values(self, environment: jinja2.Environment, name: str, source: str) -> tuple[str, ...]:
        """The values that a template uses (`known_values.used_values`), found once for each text.

        Raises:
            TemplateError: the text is not a template.
        """
        key = _key(name, self.get_source_checksum(source))
        if key not in _used:
            kept = self._read(f"{key}.used")
            used = _texts(kept) if kept else None
            if used is None:
                used = used_values(environment, source)
                self._write(f"{key}.used", json.dumps(used).encode())
            if len(_used) >= _MOST:
                _used.clear()
            _used[key] = used
        return _used[key]

    def _read(self, name: str) -> bytes | None:
        if self._folder is None:
            return None
        try:
            with os.fdopen(os.open(self._folder / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as stream:
                return stream.read(_LARGEST) if _is_own(os.fstat(stream.fileno())) else None
        except OSError:
            return None

    def _write(self, name: str, content: bytes) -> None:
        if self._folder is None:
            return
        part = self._folder / owned_name()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(content)
            part.replace(self._folder / name)
        except OSError:  # a cache that cannot be written costs only time
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _key(name: str, checksum: str) -> str:
    return sha256(f"{jinja2.__version__}\0{name}\0{checksum}".encode()).hexdigest()


def _keep(key: str, bucket: Bucket) -> None:
    if isinstance(bucket.code, CodeType):
        if len(_codes) >= _MOST:
            _codes.clear()
        _codes[key] = bucket.code


def _texts(content: bytes) -> tuple[str, ...] | None:
    try:
        texts = json.loads(content)
    except ValueError:
        return None
    return tuple(texts) if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else None


def _is_private(folder: Path) -> bool:
    """Whether a folder is this user's alone; one that does not exist yet will be."""
    try:
        state = folder.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and _is_own(state)


def _is_own(state: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)
