"""The kinds of steps by which a machine becomes a host. `ansible` and `script` write the same steps in two languages.

Texts of steps may contain `{{ name }}`: the value of a host (`values`). Each step can be done again, changes nothing
then, and is undone by removing what it made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

#: Variable → its value for a host; a switch is a bool.
Values = Mapping[str, str | bool]
_PLACEHOLDER = re.compile(r"\{\{ (\w+) \}\}")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with a mode and an owner, who is its group, too."""

    name: str
    path: str
    mode: str = "0755"
    owner: str = "root"
    when: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A file with a text.

    Attributes:
        restarts: the service that is restarted if it has changed; empty for none.
    """

    name: str
    path: str
    content: str
    mode: str = "0644"
    owner: str = "root"
    restarts: str = ""
    when: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """A file of the client: `source` is its path there, or beside the script."""

    name: str
    path: str
    source: str
    mode: str = "0644"
    owner: str = "root"
    when: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """A user with a group of the same name, without a password."""

    name: str
    user: str
    home: str
    when: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """A service of systemd that starts with the machine, and runs now."""

    name: str
    unit: str
    when: str = ""


@dataclass(frozen=True, slots=True)
class Shell:
    """Statements of bash: they print `changed` if they have changed something, and fail with a message on stderr.

    Attributes:
        undo: the statements that undo them; empty where other steps' removal does.
    """

    name: str
    statements: str
    undo: str = ""
    when: str = ""


Step = Folder | Text | Sent | Account | Service | Shell


@dataclass(frozen=True, slots=True)
class Role:
    """Steps that belong together; all begin only where `when` is on."""

    name: str
    meaning: str
    steps: tuple[Step, ...]
    when: str = ""


def filled(text: str, values: Values) -> str:
    """A text of a step with the values of a host.

    Raises:
        KeyError: it names an unknown value.
    """
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), text)
