"""Environments: which packages of some channels satisfy some specs, or why none do; and installing them.

The solver's tree of conflicts is reduced to its leaves, which are the causes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.channel.calls import rattler_client, unsharded_gateway, wait_for
from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.repodata import channel_url, first_cause
from feedstock_tools.channel.specs import match_spec
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from rattler import (
        Channel,
        Gateway,
        GenericVirtualPackage,
        MultiSource,
        NoArchLiteral,
        RepoDataRecord,
        SparseRepoData,
        Subdir,
    )

#: The time limit of the solver alone.
_LIMIT = timedelta(minutes=5)
#: The time limit of a solve with reading repodata, in seconds.
_MOST_SECONDS = 1800
_MOST = 6
_LINE = re.compile(r"^(?P<indent>[│├└─ ]*)(?P<text>.*)$")
_PREAMBLE = re.compile(r"^Cannot solve the request because of: ?")
_MISSING = re.compile(r"^(?P<spec>.+?),? for which no candidates were found\.?$")
_ABSENT = re.compile(r"^No candidates were found for (?P<spec>.+?)\.?$")
_WOULD_REQUIRE = re.compile(r"^(?P<packages>.+?) would (?:require|constrain)$")
_CONFLICT = re.compile(
    r"^(?P<packages>.+?),? which conflicts with "
    r"(?:any installable versions previously reported|the versions reported above)\.?$"
)
_CONSTRAINT = re.compile(r"^the constraint (?P<spec>.+?) cannot be fulfilled\.?$")
_TOGETHER = "The following packages are incompatible"
_NOARCH: dict[str, NoArchLiteral] = {"generic": "generic", "python": "python"}


class SolveError(WorkError):
    """No environment satisfies the specs; the message is short, and `explanation` is the solver's full output."""

    def __init__(self, message: str, explanation: str) -> None:
        super().__init__(message)
        self.explanation = explanation


def virtual_packages(platform: Platform, *, cuda: str | None = None, glibc: str = "2.28") -> tuple[str, ...]:
    """The virtual packages of a machine of some platform, as `name=version`, for `solve`.

    Args:
        cuda: the newest CUDA version that the machine's driver runs; None for a machine without a GPU.
        glibc: the version on a Linux machine; default: that of conda-forge's images of 2025.

    >>> virtual_packages(Platform.parse("linux-64"), cuda="12.9")
    ('__unix=0', '__linux=5.10', '__glibc=2.28', '__archspec=1=x86_64', '__cuda=12.9')
    """
    arch = {"64": "x86_64", "32": "x86"}.get(platform.arch, platform.arch)
    by_system = {
        "linux": ("__unix=0", "__linux=5.10", f"__glibc={glibc}"),
        "osx": ("__unix=0", "__osx=14.0"),
        "win": ("__win=10.0",),
    }
    gpu = (f"__cuda={cuda}",) if cuda is not None else ()
    return (*by_system.get(platform.os, ()), f"__archspec=1={arch}", *gpu)


def solve(
    specs: Sequence[str],
    channels: Sequence[str],
    platform: Platform,
    *,
    virtual: Sequence[str] = (),
    constraints: Sequence[str] = (),
) -> tuple[Record, ...]:
    """The packages of an environment, sorted by name.

    Args:
        specs: match specifications as conda reads them: `python 3.12.*`, `gpuprobe =1.0=cuda112*`.
        channels: names, URLs or folders, the first has strict priority.
        virtual: the virtual packages of the machine, as `name=version` or `name=version=build`: see `virtual_packages`.
        constraints: specifications that apply to a package only if it is needed.

    Raises:
        SolveError: nothing satisfies the specs.
    """
    from rattler import Channel

    sources = [Channel(channel_url(channel)) for channel in channels]
    question = Question(tuple(specs), platform, tuple(virtual), tuple(constraints))
    question.check()

    async def work(gateway: Gateway) -> tuple[Record, ...]:
        solved = await solved_records(question, sources, gateway)
        return tuple(sorted(map(_record, solved), key=lambda record: record.name))

    with plain_errors():
        return _with_plain_repodata(work)


@dataclass(frozen=True, slots=True)
class Question:
    """The specs of an environment and its machine: the arguments of `solve` as one value."""

    specs: tuple[str, ...]
    platform: Platform
    virtual: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse invalid questions.

        Raises:
            InputError: a spec, a constraint or a virtual package is invalid.
        """
        for spec in (*self.specs, *self.constraints):
            match_spec(spec)
        for text in self.virtual:
            _virtual_package(text)


async def solved_records(
    question: Question, sources: Sequence[Channel | SparseRepoData | MultiSource], gateway: Gateway
) -> list[RepoDataRecord]:
    """The records of rattler that answer a question; for programs that solve many in parallel, with `plain_errors`."""
    import rattler

    subdirs = [rattler.Subdir(question.platform.subdir), rattler.Subdir("noarch")]
    solved = await rattler.solve(
        sources,
        [match_spec(spec) for spec in question.specs],
        gateway,
        platforms=subdirs,
        virtual_packages=[_virtual_package(text) for text in question.virtual],
        timeout=_LIMIT,
        constraints=[match_spec(spec) for spec in question.constraints],
    )
    await _refuse_other_channels(solved, sources, subdirs, gateway)
    return solved


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn the errors of rattler's solver into ours.

    Raises:
        SolveError: nothing satisfies the specs.
        WorkError: a channel cannot be read.
    """
    from rattler.exceptions import FetchRepoDataError, GatewayError, SolverError

    try:
        yield
    except SolverError as error:
        raise SolveError(short_reason(str(error)), str(error)) from error
    except (FetchRepoDataError, GatewayError, OSError) as error:
        raise WorkError(f"cannot read the channels: {first_cause(error)}") from error


def _with_plain_repodata(work: Callable[[Gateway], Coroutine[None, None, tuple[Record, ...]]]) -> tuple[Record, ...]:
    """Do the work; if reading a channel fails, repeat it without sharded repodata."""
    from rattler import Gateway
    from rattler.exceptions import GatewayError

    awaited = "an environment to be solved"
    try:
        return wait_for(work(Gateway(client=rattler_client())), awaited, _MOST_SECONDS)
    except GatewayError:
        return wait_for(work(unsharded_gateway()), awaited, _MOST_SECONDS)


async def _refuse_other_channels(
    solved: Sequence[RepoDataRecord],
    sources: Sequence[Channel | SparseRepoData | MultiSource],
    subdirs: Sequence[Subdir],
    gateway: Gateway,
) -> None:
    """Apply strict priority to the requested packages too: py-rattler 0.28 applies it only to dependencies."""
    from rattler import Channel

    channels = [source for source in sources if isinstance(source, Channel)]
    for chosen in solved:
        before = []
        for channel in channels:
            if channel.base_url.rstrip("/") == chosen.channel.rstrip("/"):
                break
            before.append(channel)
        if not before or len(before) == len(channels):
            continue
        name = chosen.name.normalized
        earlier = await gateway.query(before, subdirs, [name], recursive=False)
        for other in (record for records in earlier for record in records):
            place, first = chosen.channel.rstrip("/"), other.channel.rstrip("/")
            message = f"{name} {chosen.version} is in {place}, but {first} has {name} too and comes first"
            raise SolveError(message, message)


def _record(record: RepoDataRecord) -> Record:
    entry = json.loads(record.to_json())
    url, _, file_name = record.url.rpartition("/")
    channel, _, subdir = url.rpartition("/")
    return Record.from_repodata(file_name, entry, channel=channel, subdir=subdir)


def _virtual_package(text: str) -> GenericVirtualPackage:
    from rattler import BuildString, GenericVirtualPackage, PackageName, Version
    from rattler.exceptions import InvalidPackageNameError, InvalidVersionError

    name, _, rest = text.partition("=")
    version, _, build = rest.partition("=")
    try:
        return GenericVirtualPackage(PackageName(name), Version(version or "0"), BuildString(build or "0"))
    except (InvalidPackageNameError, InvalidVersionError) as error:
        raise InputError(
            f"'{text}' is not a virtual package: {error}", hint="Write for example __cuda=12.9."
        ) from error


def short_reason(explanation: str) -> str:
    """The causes of a conflict that py-rattler explained as a tree, one a line, at most six.

    >>> print(short_reason("Cannot solve the request because of: No candidates were found for cudnn 9.*.\\n"))
    no channel has 'cudnn 9.*'
    """
    lines = list(_tree(explanation))
    causes = list(dict.fromkeys(_causes(lines)))
    if not causes:
        return "\n".join(explanation.strip().splitlines()[:_MOST])
    if any(text == _TOGETHER for _, text in lines):
        specs = [
            text.split(" can be installed")[0].split(" cannot be installed")[0] for depth, text in lines if depth == 1
        ]
        causes.insert(0, f"these are incompatible: {', '.join(specs)}")
    more = len(causes) - _MOST
    return "\n".join(causes[:_MOST] + ([f"(and {more} more causes)"] if more > 0 else []))


def only_lacks(reason: str) -> bool:
    """Whether a short reason consists only of packages that channels lack.

    >>> only_lacks("no channel has 'cudnn 9.*'"), only_lacks("these are incompatible: a, b")
    (True, False)
    """
    return all("no channel has" in line for line in reason.splitlines())


def _tree(explanation: str) -> Iterator[tuple[int, str]]:
    """Depth and text of each line; a root has the depth 0."""
    for line in _PREAMBLE.sub("", explanation.strip()).splitlines():
        match = _LINE.match(line)
        if match and match["text"].strip():
            yield len(match["indent"]) // 3, match["text"].strip()


def _causes(lines: list[tuple[int, str]]) -> Iterator[str]:
    path: list[str] = []
    for depth, text in lines:
        path[depth:] = [text]
        match = _WOULD_REQUIRE.match(path[depth - 1]) if depth else None
        if absent := _ABSENT.match(text):
            spec = _readable(absent["spec"])
            yield f"{_lack(spec)} '{spec}'"
        elif missing := _MISSING.match(text):
            spec = _readable(missing["spec"])
            yield f"{match['packages']} requires {spec}, which {_lack(spec)}" if match else f"{_lack(spec)} '{spec}'"
        elif constraint := _CONSTRAINT.match(text):
            needing = match["packages"] if match else "a package"
            yield f"{needing} needs {_readable(constraint['spec'])}, which is not available"
        elif conflict := _CONFLICT.match(text):
            spec = conflict["packages"]
            yield f"{match['packages']} requires {spec}, which conflicts" if match else f"{spec} conflicts"


def _readable(spec: str) -> str:
    return spec.rstrip(",").removesuffix(" *")


def _lack(spec: str) -> str:
    return "this machine does not have" if spec.startswith("__") else "no channel has"


def install(records: Sequence[Record], prefix: Path, platform: Platform, *, cache: Path | None = None) -> None:
    """Make the environment `prefix` contain exactly these packages; their scripts are not run.

    Args:
        records: the result of `solve`.
        cache: the cache of unpacked packages; default: rattler's. Packages of the stand-in
            channel need a cache of their own, as real packages have the same names.

    Raises:
        WorkError: a package cannot be fetched, is damaged, or cannot be linked.
    """
    import rattler
    from rattler.exceptions import InstallerError, TransactionError

    solved = [_repodata_record(record) for record in records]
    try:
        wait_for(
            rattler.install(
                solved,
                prefix,
                cache_dir=cache,
                platform=rattler.Subdir(platform.subdir),
                execute_link_scripts=False,
                show_progress=False,
                client=rattler_client(),
            ),
            "packages to be fetched and installed",
        )
    except (InstallerError, TransactionError, OSError) as error:
        raise WorkError(f"cannot create the environment: {first_cause(error)}", path=prefix) from error


def _repodata_record(record: Record) -> RepoDataRecord:
    from rattler import BuildString, PackageRecord, RepoDataRecord

    package = PackageRecord(
        record.name,
        record.version,
        BuildString(record.build),
        record.build_number,
        record.subdir,
        noarch=_NOARCH.get(record.noarch or ""),
        depends=list(record.depends),
        constrains=list(record.constrains),
        sha256=bytes.fromhex(record.sha256) or None,
        size=record.size or None,
    )
    return RepoDataRecord(package, record.file_name, record.url, record.channel)
