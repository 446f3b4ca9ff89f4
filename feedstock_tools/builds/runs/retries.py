"""Which failures may pass on a retry: those of the network, and of builds that ran out of memory.

A compiler error does not; retrying it only costs hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from feedstock_tools.builds.engines.contract import Failed

#: Network failures in the wording of py-rattler-build, curl and git.
_NETWORK = re.compile(
    r"error sending request|connection (?:reset|refused|closed|timed out|aborted)|timed? ?out|dns error"
    r"|temporary failure in name resolution|could not resolve host|name or service not known|network is unreachable"
    r"|(?:status|error|http(?:/[\d.]+)?)[^\n/]{0,20}\b(?:429|500|502|503|504)\b|early eof|unexpected end of file"
    r"|incomplete message|ssl_error_syscall|the remote end hung up|error decoding response body"
    r"|request failed after \d+ retries",
    re.IGNORECASE,
)
#: The messages of compilers and kernels when memory runs out.
_MEMORY = re.compile(
    r"out of memory|cannot allocate memory|virtual memory exhausted|bad_alloc|memoryerror|its limit of \d+ MiB"
    r"|\bkilled\b[^\n]*(?:cc1|cc1plus|collect2|\bld\b|program|signal)|fatal error: killed|(?:^|\W)killed\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_KILLED = re.compile(r"ended with signal 9\b|signal:? 9\b|SIGKILL")
#: The first wait before the network is tried again, in seconds; each further one is three times as long.
_FIRST_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Retry:
    """Advice to try again: the reason in words, the seconds to wait, and whether with fewer jobs."""

    because: str
    wait: float = 0.0
    fewer_jobs: bool = False


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """The event that another attempt follows: its number, the reason, and the number of jobs if lower than before."""

    attempt: int
    because: str
    jobs: int | None = None


def retry_of(failed: Failed, last_lines: Iterable[str], attempt: int) -> Retry | None:
    """The retry that may succeed after a failure; None if none may.

    Args:
        failed: the end of the build.
        last_lines: the end of its log.
        attempt: the number of the attempt that failed, from 1.
    """
    text = "\n".join([failed.reason, *last_lines])
    if failed.during in ("script", "engine", "memory"):
        if _MEMORY.search(text):
            return Retry("it ran out of memory", fewer_jobs=True)
        if _KILLED.search(failed.reason):
            return Retry("it was killed", fewer_jobs=True)
    if failed.during in ("solve", "packages", "engine") and _NETWORK.search(text):
        return Retry("the network failed", wait=_FIRST_WAIT * 3 ** (attempt - 1))
    return None
