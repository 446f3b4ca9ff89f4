"""Why a step failed on a host, in a line: what was tried, what came of it, and what a person can do about it."""

from __future__ import annotations

import json
import re
from contextlib import suppress

#: Before the reason in messages of Ansible's.
_PREFIX = re.compile(r"^((Task|Module) failed: |Failed to connect to the host via (ssh|scp|sftp|piped): )+")
_ACCOUNT = (
    "Check ansible_host, ansible_user and its key or password (ansible_ssh_private_key_file, ansible_password) "
    "in the inventory."
)
#: What a message of SSH's, sudo's, or of a program on a host contains → what to do.
_ADVICE = (
    (r"no space left on device|enough free space|disk quota exceeded", "Free some there; `df -h` shows which is full."),
    (r"permission denied \(|incorrect password|authentication fail", _ACCOUNT),
    (
        r"host key verification failed|host identification has changed|host key is unknown",
        "Compare its key with the one that its provider shows, then correct ~/.ssh/known_hosts.",
    ),
    (
        r"sudo: |sudo password|incorrect sudo",
        "Set ansible_become_password, or let the account use sudo without a password.",
    ),
    (
        r"connection refused|no route to host|timed out|network is unreachable|could not resolve|connection closed"
        r"|connection reset|unreachable",
        "Check that the machine runs, its address (ansible_host, ansible_port) and its firewall.",
    ),
)


def reason_of(result: str, step: str, *, absent: bool) -> str:
    """Why a step failed: what it wrote to stderr, else its message, with the step and what to do.

    Args:
        result: what Ansible says of it, as JSON.
        step: its name.
        absent: the host could not be reached.
    """
    lines = _lines(result)
    for pattern, advice in _ADVICE:
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return f"{_tried(line, step, absent=absent)}. {advice}"
    return _tried(" ".join(lines[-3:]), step, absent=absent)


def _tried(found: str, step: str, *, absent: bool) -> str:
    """What was tried, and what came of it."""
    what = "cannot be reached by SSH" if absent else step
    return f"{what}: {found.rstrip('.')}" if what else found


def _lines(result: str) -> list[str]:
    """The lines of what a step wrote to stderr; without any, those of its message."""
    content: object = None
    with suppress(ValueError):
        content = json.loads(result)
    if not isinstance(content, dict):
        return [result.strip()]
    written = [line.strip() for line in str(content.get("stderr") or "").splitlines() if line.strip()]
    said = [line.strip() for line in str(content.get("msg") or result).splitlines() if line.strip()]
    return written or [_PREFIX.sub("", line) for line in said]
