"""The metadata of a package without what others must not see or what differs between two builds of the same inputs.

The former are credentials of channels, which engines write into packages; the latter are paths, times and kernels.

Channels that are folders get names in place of their paths; `names_of` gives them, and `with_paths` puts the paths
back for the checks of a package before it is delivered.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from feedstock_tools.channel.properties import KINDS, REAL, ChannelProperties
from feedstock_tools.redaction import redacted

#: The time in a package, in seconds since 1970, where neither the environment nor a commit gives one: the first that
#: a zip archive can hold (1980-01-01).
DEFAULT_EPOCH = 315532800

_FOLDER = "file:///feedstock-tools/"
#: The build's time in a rendered recipe, and what the kernel, the C library and the processor of a machine are.
_TIME = re.compile(rb"^(  timestamp: ).*$", re.MULTILINE)
_MACHINE = re.compile(rb"^ *- __(?:linux|glibc|archspec|osx|win)=[^\n]*\n", re.MULTILINE)
#: The path of the environment that becomes the package, which the engine makes as long as conda's packages allow.
_PREFIX = re.compile(rb"^(    host_prefix: )(.+/host_env)(?:_[placehod]*)+$", re.MULTILINE)
_LENGTH_OF_PREFIX, _FILLING = 255, b"_placehold" * 25
#: In the solved environments: a list, and one of its items. The engine has them in any order.
_LISTS = re.compile(rb"(?:^    - .*\n(?:^      .*\n)*)+", re.MULTILINE)
_ITEM = re.compile(rb"^    - .*\n(?:^      .*\n)*", re.MULTILINE)
_HASHES = re.compile(rb"^      (?:md5|sha256|size): .*\n", re.MULTILINE)
_MADE_HERE = re.compile("|".join(f"channel: {_FOLDER}{kind.origin}" for kind in KINDS if kind.made_here).encode())
_BYTECODE_HEAD = 16
_ABOUT, _EXPORTS, _INDEX, _RENDERED = NORMALISED = (
    "info/about.json",
    "info/run_exports.json",
    "info/index.json",
    "info/recipe/rendered_recipe.yaml",
)
#: The files of a package that name the channels of its build.
_DOCUMENTS = (
    "info/about.json",
    "info/recipe/conda_build_config.yaml",
    "info/recipe/meta.yaml",
    "info/recipe/rendered_recipe.yaml",
    "info/recipe/variant_config.yaml",
)


def names_of(channels: Sequence[str], private: str, built_on: ChannelProperties = REAL) -> dict[str, str]:
    """The URLs of channels that are folders, each with its name in packages.

    Args:
        channels: the URLs that a build solves in.
        private: the URL of its private channel.
        built_on: the properties of the channels.

    >>> names_of(["https://conda.anaconda.org/conda-forge", "file:///home/me/mine"], "file:///build")
    {'file:///build': 'file:///feedstock-tools/private', 'file:///home/me/mine': 'file:///feedstock-tools/2'}
    """
    names = {private.rstrip("/"): f"{_FOLDER}private"}
    for number, url in enumerate(channels, 1):
        if url.startswith("file:"):
            names.setdefault(url.rstrip("/"), f"{_FOLDER}{built_on.origin if built_on.made_here else number}")
    return names


def with_paths(document: bytes, names: Mapping[str, str]) -> bytes:
    """A document with the URLs of channels in place of their names."""
    for url, name in names.items():
        document = re.sub(re.escape(name.encode()) + rb"(?![\w-])", lambda _, url=url: url.encode(), document)  # type: ignore[misc]
    return document


def normalised_document(name: str, content: bytes, names: Mapping[str, str], epoch: int) -> bytes:
    """A document of a package's metadata as every build of the same inputs has it.

    Args:
        name: its path in the package.
        names: as of `names_of`, and of the build's folder.
        epoch: the time in the package, in seconds since 1970.
    """
    if name == _INDEX:
        index = json.loads(content)
        lists = {key: sorted(index[key]) for key in ("depends", "constrains") if index.get(key)}
        return _json({**index, **lists, "timestamp": epoch * 1000})
    if name == _EXPORTS:
        return _json({kind: sorted(specs) for kind, specs in json.loads(content).items()})
    for url in sorted(names, key=len, reverse=True):
        content = re.sub(re.escape(url.encode()) + rb"(?![\w.-])", names[url].encode(), content)
    if name == _RENDERED:
        moment = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        content = _MACHINE.sub(b"", _TIME.sub(rb"\g<1>" + moment.encode(), content))
        content = _PREFIX.sub(lambda found: found[1] + (found[2] + _FILLING)[:_LENGTH_OF_PREFIX], content)
        head, key, solved = content.partition(b"\nfinalized_dependencies:\n")
        content = head + key + _LISTS.sub(_sorted_items, solved)
    return content


def normalised_bytecode(content: bytes, source: str, epoch: int) -> bytes:
    """A `.pyc` file as every build of the same source has it: with the path of its source in the package.

    The engine compiles in a temporary folder, whose path is in each file; Python puts the real one in its place when it
    loads it. The time in it is that of its source in the package, without which Python would compile again.

    Args:
        source: the path of its source in the package.
        epoch: the time of the source, in seconds since 1970.
    """
    if len(content) < _BYTECODE_HEAD:
        return content
    head, code = content[:_BYTECODE_HEAD], content[_BYTECODE_HEAD:]
    if head[4:8] == bytes(4):  # known by the time of its source (PEP 552)
        head = head[:8] + (epoch & 0xFFFFFFFF).to_bytes(4, "little") + head[12:]
    end = b"/" + source.encode()
    for marked, form, length in ((b"zZ", "B", 1), (b"aAu", "<I", 4)):
        kinds = b"".join(re.escape(bytes([kind, kind | 0x80])) for kind in marked)
        pattern = re.compile(rb"([%s])(.{%d})(/[^\0]{0,4096}?%s)" % (kinds, length, re.escape(end)), re.DOTALL)
        code = pattern.sub(lambda found, form=form: _renamed(found, form, source.encode()), code)  # type: ignore[misc]
    return head + code


def _renamed(found: re.Match[bytes], form: str, source: bytes) -> bytes:
    """A string in the format of `marshal`: its type, which follows from its length, its length, its characters."""
    (length,) = struct.unpack(form, found[2])
    if length != len(found[3]):
        return found[0]
    flag, kind = found[1][0] & 0x80, found[1][0] & 0x7F
    if len(source) < 256 and source.isascii():
        return bytes([flag | _SHORT.get(kind, kind), len(source)]) + source
    return bytes([flag | _LONG.get(kind, kind)]) + struct.pack("<I", len(source)) + source


#: The types of texts of up to 255 characters of ASCII, and of longer ones.
_SHORT = {ord("a"): ord("z"), ord("A"): ord("Z"), ord("u"): ord("z")}
_LONG = {short: long for long, short in _SHORT.items() if long != ord("u")}


def with_digests(paths: bytes, changed: Mapping[str, bytes]) -> bytes:
    """`info/paths.json` of a package some of whose files have changed.

    Args:
        changed: path → new content.
    """
    document = json.loads(paths)
    for entry in document.get("paths", ()):
        content = changed.get(entry["_path"])
        if content is not None:
            entry |= {"sha256": sha256(content).hexdigest(), "size_in_bytes": len(content)}
    return json.dumps(document, indent=2).encode()


def _sorted_items(found: re.Match[bytes]) -> bytes:
    """The items of a list in order, each a line that begins with a dash and the deeper lines after it.

    The hash of a package that is made on the machine that builds, for its compilers, says nothing.
    """
    items = [_HASHES.sub(b"", item) if _MADE_HERE.search(item) else item for item in _ITEM.findall(found[0])]
    return b"".join(sorted(items))


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=2, sort_keys=True).encode()


def hide_credentials(package: Path, channels: Sequence[str]) -> bool:
    """Put stars in place of users, passwords and tokens in the URLs of a package's metadata.

    Args:
        channels: the URLs that the package was built with; without credentials there is nothing to hide.

    Returns:
        Whether the package has changed.
    """
    if all(redacted(url) == url for url in channels):
        return False
    from feedstock_tools.channel.packages.archive import replace_document
    from feedstock_tools.channel.packages.reading import read_documents

    changed = False
    for name, content in read_documents(package, _DOCUMENTS).items():
        if content is None:
            continue
        plain = redacted(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if plain != content:
            replace_document(package, name, plain)
            changed = True
    return changed
