"""Why an environment of a build could not be made, or a source not fetched: the engine does not say, so it is tried
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from feedstock_tools.errors import FeedstockError
from feedstock_tools.platforms import Platform
from feedstock_tools.redaction import without_credentials

if TYPE_CHECKING:
    from feedstock_tools.channel.metadata import Record

_PLATFORM = re.compile(r"^\s*Platform: (?P<subdir>\S+) \[(?P<virtual>.*)\]$")
_ITEM = re.compile(r"^\s+- (?P<text>.+)$")
_FETCHED = re.compile(r"Failed to fetch from (\S+?):? ")
#: What the engine says of any request that gets no answer.
_NO_CAUSE = "Request failed after"
#: How long an address has for its answer, in seconds.
_ANSWERS = 5.0


def last_question(log: Iterable[str]) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]] | None:
    """Subdir, virtual packages, channels and specs of the last environment in a log of the engine."""
    log = list(log)
    starts = [at for at, text in enumerate(log) if _PLATFORM.match(text)]
    if not starts:
        return None
    match = _PLATFORM.match(log[starts[-1]])
    lists: dict[str, list[str]] = {"Channels:": [], "Specs:": []}
    current: list[str] | None = None
    for text in log[starts[-1] + 1 :]:
        if text.strip() in lists:
            current = lists[text.strip()]
        elif current is not None and (item := _ITEM.match(text)):
            current.append(item["text"])
        else:
            current = None
    if match is None:
        return None
    virtual = tuple(package.strip() for package in match["virtual"].split(",") if package.strip())
    return match["subdir"], virtual, tuple(lists["Channels:"]), tuple(lists["Specs:"])


def named_in(log: Iterable[str]) -> set[str]:
    """The names of the packages that the environments in a log had to contain."""
    names: set[str] = set()
    inside = False
    for text in log:
        if text.strip() == "Specs:":
            inside = True
        elif inside and (item := _ITEM.match(text)):
            names.add(re.split(r"[\s=<>!~\[]", item["text"].strip(), maxsplit=1)[0])
        else:
            inside = False
    return names


def explain_solve(log: Iterable[str], target: str, urls: Sequence[str] = ()) -> str | None:
    """A short reason why the last environment in a log has no solution; None if it has one, or no environment is
    found.

    Args:
        urls: the URLs of channels, whose credentials the log does not have.
    """
    try:
        _solved_again(log, target, urls)
    except FeedstockError as error:
        return str(error)
    return None


def explain_fetch(log: Iterable[str]) -> str | None:
    """The last address in a log that could not be fetched; where the log does not say why, what it answers now."""
    from feedstock_tools.channel.http import NoAnswerError, ask

    found = [(match[1], _NO_CAUSE in text) for text in log for match in _FETCHED.finditer(text)]
    if not found:
        return None
    address, unclear = found[-1]
    if not unclear:
        return f"{address} cannot be fetched"
    try:
        status = ask(address, seconds=_ANSWERS, method="HEAD").status
    except NoAnswerError as error:
        return f"{address} cannot be fetched: {error}"
    return f"{address} cannot be fetched: it answers " + (f"with HTTP status {status}" if status >= 400 else "now")


def explain_unpacking(log: Iterable[str], target: str, urls: Sequence[str] = ()) -> str | None:
    """Which package of the last environment in a log cannot be unpacked; None if all can, or none is found.

    Packages of channels on this machine are read; of others the message has the names. The arguments are those of
    `explain_solve`.
    """
    from feedstock_tools.channel.packages.reading import read_package
    from feedstock_tools.channel.properties import local_folder
    from feedstock_tools.digests import sha256_of

    try:
        records = _solved_again(log, target, urls)
    except FeedstockError:
        return None
    fetched: list[str] = []
    for record in records:
        path = local_folder(record.url)
        if path is None:
            fetched.append(record.file_name)
            continue
        try:
            read_package(path)
        except FeedstockError as error:
            return str(error)
        if record.sha256 and sha256_of(path) != record.sha256:
            return f"{path}: this is not the package of the channel's index: it has another SHA-256"
    return f"It is one of the fetched ones: {', '.join(sorted(fetched))}" if fetched else None


def _solved_again(log: Iterable[str], target: str, urls: Sequence[str]) -> Sequence[Record]:
    """The last environment in a log of the engine; nothing if there is none."""
    from feedstock_tools.channel.properties import local_folder, why_no_channel
    from feedstock_tools.channel.solving import solve

    question = last_question(log)
    if question is None:
        return ()
    subdir, virtual, logged, specs = question
    by_name = {without_credentials(f"{url}/"): url for url in urls}
    named = (by_name.get(without_credentials(f"{url.rstrip('/')}/"), url) for url in logged)
    # The folder for the row's own packages may have no index any more.
    channels = [url for url in named if (folder := local_folder(url)) is None or not why_no_channel(folder)]
    return solve(specs, channels, Platform.parse(target if subdir == "noarch" else subdir), virtual=virtual)
