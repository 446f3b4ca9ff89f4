"""The changelog keeps the form that a release reads."""

from datetime import date

import pytest

from feedstock_tools.errors import InputError
from maintenance.release import changelog
from tests.support.paths import ROOT

GOOD = """\
# Changelog

## [Unreleased]

### Added

- A door.

## [0.2.0] - 2026-11-22

### Fixed

- A window.
"""


def test_our_own_changelog_keeps_the_form() -> None:
    assert changelog.mistakes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# Changelog", "# History", "the first line must be '# Changelog'"),
        ("## [Unreleased]", "## [0.3.0] - 2026-12-01", "the first section must be '## [Unreleased]'"),
        ("## [0.2.0] - 2026-11-22", "## 0.2.0", "the heading must have the form '## [0.2.0] - 2026-11-22'"),
        ("## [0.2.0] - 2026-11-22", "## [0.2.0]", "a version needs the date of its release"),
        ("## [0.2.0] - 2026-11-22", "## [0.2.0] - soon", "a version needs the date of its release"),
        ("## [0.2.0]", "## [later]", "'later' is not a version such as 0.2.0"),
        ("### Fixed", "### Mended", "the heading must be one of Added, Changed"),
        ("### Added\n", "### Added\n\n- A wall.\n\n### Added\n", "the section has the heading '### Added' twice"),
        ("### Fixed\n", "", "an entry must stand below a heading such as '### Added'"),
        (GOOD, GOOD + "\n## [0.10.0] - 2026-01-01\n", "versions must stand in falling order"),
    ],
)
def test_a_departure_from_the_form_is_reported_with_its_line(old: str, new: str, message: str) -> None:
    (found, *_) = changelog.mistakes(GOOD.replace(old, new, 1))
    assert found.message.startswith(message)
    assert str(found).startswith("CHANGELOG.md")


def test_a_changelog_in_the_form_has_no_mistakes() -> None:
    assert changelog.mistakes(GOOD) == []


def test_a_release_takes_the_unreleased_entries_and_leaves_the_others_alone() -> None:
    released = changelog.with_release(GOOD, "0.3.0", date(2026, 12, 1))

    assert changelog.mistakes(released) == []
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
