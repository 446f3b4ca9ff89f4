"""A release takes its entries from the changelog."""

from datetime import date

import pytest

from feedstock_tools.errors import InputError
from maintenance.release import changelog

GOOD = """\
# Changelog

## [Unreleased]

### Added

- A door.

## [0.2.0] - 2026-11-22

### Fixed

- A window.
"""


def test_a_release_takes_the_unreleased_entries_and_leaves_the_others_alone() -> None:
    released = changelog.with_release(GOOD, "0.3.0", date(2026, 12, 1))

    assert changelog.notes_of(released, "0.3.0") == changelog.notes_of(GOOD, "Unreleased")
    assert changelog.notes_of(released, "0.2.0") == "### Fixed\n\n- A window.\n"
    with pytest.raises(InputError, match="has no entry"):
        changelog.notes_of(released, "Unreleased")


@pytest.mark.parametrize(
    ("text", "version", "message"),
    [
        (GOOD.replace("- A door.\n", ""), "0.3.0", r"the section \[Unreleased\] has no entry"),
        (GOOD.replace("[Unreleased]", "[Later]"), "0.3.0", r"there is no section \[Unreleased\]"),
        (GOOD, "0.2.0", "version 0.2.0 has a section already"),
    ],
)
def test_a_release_without_entries_of_its_own_is_refused(text: str, version: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        changelog.with_release(text, version, date(2026, 12, 1))
