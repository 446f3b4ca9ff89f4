"""The license of a project by the words of its license file, and by its own notices where these leave a choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.generate.project import licenses_of_text, read_project
from tests.support.projects import project_in, spec_text_of

GRANT = "Permission is hereby granted, free of charge, to any person"
MIT = (
    f'{GRANT} obtaining a copy of this software and associated documentation\nfiles (the "Software"), to deal in the\n'
    "Software without restriction, including without limitation the rights to use\n"
)
BSD = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted"
NAMES = "Neither the name of the copyright holder nor the names of its contributors may be used to endorse or promote"
TEXTS = {
    "MIT": MIT,
    "BSL-1.0": f"{GRANT} or organization\nobtaining a copy of the software and accompanying documentation covered by\n"
    'this license (the "Software") to use, reproduce, display, distribute,\n',
    "NCSA": MIT.replace("deal in the", "deal with the") + "Redistributions of source code must retain the above",
    "X11": f"{MIT}Except as contained in this notice, the name of the X Consortium shall not be used",
    "JSON": f"{MIT}The Software shall be used for Good, not Evil.",
    "OFL": f"{GRANT} obtaining a copy of the Font Software, to use, study, copy, merge, embed",
    "BSD-2-Clause": BSD,
    "BSD-3-Clause": f"{BSD}\n{NAMES}",
    "BSD-4-Clause": f"{BSD}\nAll advertising materials mentioning features\n{NAMES}",
    "Apache-2.0": "Apache License\n  Version 2.0, January 2004\n",
    "LLVM": "Apache License\n  Version 2.0, January 2004\n---- LLVM Exceptions to the Apache 2.0 License ----\n",
    "GPL-3.0": "GNU GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007\n(at your option) any later version.\n",
    "LGPL-2.1": "GNU LESSER GENERAL PUBLIC LICENSE\n  Version 2.1, February 1999\n",
    "AGPL-3.0": "GNU AFFERO GENERAL PUBLIC LICENSE\n  Version 3, 19 November 2007\n",
}


@pytest.mark.parametrize(
    ("text", "licenses"),
    [
        ("MIT", ("MIT",)),
        ("BSL-1.0", ("BSL-1.0",)),
        ("NCSA", ("NCSA",)),
        ("X11", ()),
        ("JSON", ()),
        ("OFL", ()),
        ("BSD-2-Clause", ("BSD-2-Clause",)),
        ("BSD-3-Clause", ("BSD-3-Clause",)),
        ("BSD-4-Clause", ()),
        ("Apache-2.0", ("Apache-2.0",)),
        ("LLVM", ("Apache-2.0 WITH LLVM-exception",)),
        ("GPL-3.0", ("GPL-3.0-only", "GPL-3.0-or-later")),
        ("LGPL-2.1", ("LGPL-2.1-only", "LGPL-2.1-or-later")),
        ("AGPL-3.0", ("AGPL-3.0-only", "AGPL-3.0-or-later")),
    ],
)
def test_a_license_by_the_words_that_only_it_has(text: str, licenses: tuple[str, ...], tmp_path: Path) -> None:
    assert licenses_of_text(project_in(tmp_path, LICENSE=TEXTS[text])) == licenses


@pytest.mark.parametrize(
    ("name", "notice", "licenses"),
    [
        ("README.md", "under version 3 of the License, or\n(at your option) any later version.", ("GPL-3.0-or-later",)),
        ("CMakeLists.txt", "# SPDX-License-Identifier: GPL-3.0-or-later\n", ("GPL-3.0-or-later",)),
        ("setup.py", "# version 3 of the License, or\n# (at your option) any later version", ("GPL-3.0-or-later",)),
        ("README.rst", "License: GPL-3.0-only", ("GPL-3.0-only",)),
        ("README.rst", "GPL-3.0-only and GPL-3.0-or-later", ("GPL-3.0-only", "GPL-3.0-or-later")),
        ("README.md", "LGPL-2.1-or-later, Python 3.9 or any later version", ("GPL-3.0-only", "GPL-3.0-or-later")),
        ("README.md", "version 2 of the License, or (at your option) any later", ("GPL-3.0-only", "GPL-3.0-or-later")),
    ],
)
def test_notices_decide_about_later_versions(name: str, notice: str, licenses: tuple[str, ...], tmp_path: Path) -> None:
    project_in(tmp_path, LICENSE=TEXTS["GPL-3.0"])
    (tmp_path / name).write_text(notice)

    assert licenses_of_text(tmp_path) == licenses


def test_a_readme_that_cannot_be_read_is_no_notice(tmp_path: Path) -> None:
    project_in(tmp_path, LICENSE=TEXTS["GPL-3.0"])
    (tmp_path / "README.md").write_bytes(b"\xff GPL-3.0-only")

    assert licenses_of_text(tmp_path) == ("GPL-3.0-only", "GPL-3.0-or-later")


def test_a_classifier_can_say_that_later_versions_may_be_used(tmp_path: Path) -> None:
    classifier = "License :: OSI Approved :: GNU General Public License v3 or later (GPLv3+)"
    text = f'[project]\nname = "demo"\nclassifiers = ["{classifier}"]\n'

    assert (
        read_project(project_in(tmp_path, pyproject__toml=text, LICENSE=TEXTS["GPL-3.0"])).license == "GPL-3.0-or-later"
    )


def test_a_spec_names_the_licenses_that_a_text_leaves_open(tmp_path: Path) -> None:
    written = spec_text_of(tmp_path, CMakeLists__txt="project(demo)", LICENSE=TEXTS["GPL-3.0"])

    line = next(line for line in written.splitlines() if line.startswith("  license:"))
    assert line == (
        "  license: LicenseRef-Unknown  # GPL-3.0-only or GPL-3.0-or-later: the license's text does not say which"
    )
