"""All mistakes in a spec are reported at once: their place, what was expected, the nearest valid word."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
from packaging.licenses import canonicalize_license_expression

from feedstock_tools.data import PACKAGE
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.generate.spec.reading import read_spec, spec_from_text

GOOD = dedent("""\
    name: demo
    version: 1.2.0
    platforms:
      linux-64:
    cuda:
      versions: [11.2, 12.9]
    groups:
      libraries:
        - libcublas-dev
    outputs:
      - name: libdemo
        kind: library
        requirements:
          host:
            - use: libraries
      - name: demo
        kind: metapackage
        pins: [libdemo]
    about:
      homepage: https://example.org
      license: MIT
      summary: A demonstration
    maintainers: [someone]
    pinning: self-contained
""")


def _mistakes(text: str) -> list[Mistake]:
    with pytest.raises(InputError) as caught:
        spec_from_text(text, Path("feedstock.yaml"))
    return list(caught.value.mistakes)


def test_a_good_spec_is_read() -> None:
    spec = spec_from_text(GOOD)

    assert spec.version == "1.2.0"
    assert [output.name for output in spec.outputs] == ["libdemo", "demo"]


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message", "hint"),
    [
        ("version:", "verson:", 2, 1, "unknown key 'verson' in a spec", "Did you mean 'version'?"),
        ("linux-64:", "linux-46:", 4, 3, "'linux-46' is not a platform", "Did you mean 'linux-64'?"),
        ("linux-64:", "linux-arm64:", 4, 3, "'linux-arm64' is not a platform", "Did you mean 'linux-aarch64'?"),
        ("linux-64:", "windows-amd64:", 4, 3, "'windows-amd64' is not a platform", "Did you mean 'win-64'?"),
        ("11.2,", "11.9,", 6, 14, "unknown CUDA version 11.9", "Did you mean"),
        ("11.2,", "eleven,", 6, 14, "'eleven' is not a CUDA version such as 11.2", "versions:"),
        ("kind: library", "kind: libary", 12, 11, "'libary' is not one of", "Did you mean 'library'?"),
        ("use: libraries", "use: librares", 15, 16, "there is no group 'librares'", "Did you mean 'libraries'?"),
        ("use: libraries", "uses: libraries", 15, 11, "unknown key 'uses' in", "Did you mean 'use'?"),
        ("- use: libraries", "- {compiler: c, when: lnux}", 15, 31, "'lnux' is not a word", "Did you mean 'linux'?"),
        (
            "- use: libraries",
            "- {compiler: c, package: x}",
            15,
            11,
            "a requirement must have exactly one of package",
            None,
        ),
        ("- use: libraries", "- 'numpy {{ numpy }}'", 15, 11, "would be read as Jinja", "Write {numpy}"),
        ("[libdemo]", "[libdmo]", 18, 12, "there is no output 'libdmo'", "Did you mean 'libdemo'?"),
        ("- name: demo", "- name: libdemo", 16, 11, "there are two outputs 'libdemo'", None),
        ("license: MIT", "license: [", 23, 12, "is not YAML", None),
        ("license: MIT", "licence: MIT", 21, 3, "unknown key 'licence' in 'about'", "Did you mean 'license'?"),
        ("summary: A", "summary: {a: b} #", 22, 12, "expected a string, not a mapping", "One line."),
        ("maintainers: [someone]", "maintainers: []", 23, 14, "expected at least one entry", None),
        (
            "[someone]",
            "[not a name!]",
            23,
            15,
            "'not a name!' is neither a name on GitHub nor a team",
            "maintainers: Names",
        ),
        (
            "kind: metapackage",
            "kind: metapackage\n    entry_points: [demo x]",
            18,
            20,
            "'demo x' is not a command",
            "Commands:",
        ),
        ("[11.2, 12.9]", "11.2", 6, 13, "'11.2' is not one of", "Or a list: [11.2]"),
        ("name: demo\n", "name: demo\nname: x\n", 2, 1, "'name' is a duplicate key", "line 1"),
        ("[someone]", "!!python/name:os.system [x]", 23, 14, "the tag", "without a tag"),
    ],
)
def test_a_mistake_says_where_what_and_what_instead(
    old: str, new: str, line: int, column: int, message: str, hint: str | None
) -> None:
    assert GOOD.count(old)

    found = _mistakes(GOOD.replace(old, new, 1))

    assert any(
        mistake.line == line
        and mistake.column == column
        and message in mistake.message
        and (hint is None or hint in (mistake.hint or ""))
        for mistake in found
    ), "\n".join(map(str, found))


def test_five_mistakes_are_reported_at_once() -> None:
    text = (
        GOOD.replace("linux-64", "linux-46")
        .replace("kind: library", "kind: libary")
        .replace("use: libraries", "use: librares")
        .replace("[libdemo]", "[libdmo]")
        .replace("license:", "licence:")
    )

    found = _mistakes(text)

    assert [mistake.line for mistake in found] == [4, 12, 15, 18, 20, 21]
    assert all(mistake.column and mistake.path == Path("feedstock.yaml") for mistake in found)


def test_an_architecture_that_the_nvcc_does_not_know_is_a_mistake() -> None:
    text = GOOD.replace("groups:", "  architectures: mine\n  presets:\n    mine:\n      11.2: [sm_90]\ngroups:")

    found = [str(mistake) for mistake in _mistakes(text)]

    assert any("feedstock.yaml:10:14: nvcc of CUDA 11.2 does not know sm_90" in mistake for mistake in found)
    assert any("feedstock.yaml:7:18: no architectures are chosen for CUDA 12.9" not in mistake for mistake in found)


@pytest.mark.parametrize(
    ("groups", "cycle"),
    [
        ("  a:\n    - use: b\n  b:\n    - use: a\n", "a → b → a"),
        ("  a:\n    - use: a\n", "a → a"),
    ],
)
def test_groups_that_use_each_other_are_a_mistake(groups: str, cycle: str) -> None:
    found = _mistakes(GOOD.replace("groups:\n", f"groups:\n{groups}"))

    assert any(f"groups use each other: {cycle}" in mistake.message for mistake in found)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"# nothing\n", "is empty"),
        (b"- a\n- b\n", "a spec must be a mapping"),
        (b"\x00\x01", "NUL bytes"),
        (b"\xff\xfe", "UTF-8"),
        (b"a: &x [*x]", "an alias refers to a list or mapping that contains it"),
        (b"a: " + b"[" * 5000, "nested too deep"),
        (b"a: &a [x]\nb: &b [" + b"*a," * 200 + b"]\nc: [" + b"*b," * 200 + b"]", "too many values"),
        (b"x" * (1 << 20) + b"y", "is larger than"),
        (b"a: x" + b"#" * 500_000 + b"[x](", "is longer than"),
    ],
)
def test_a_file_that_is_not_a_spec_ends_in_one_message(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "feedstock.yaml").write_bytes(content)

    with pytest.raises(InputError) as caught:
        read_spec(tmp_path)

    assert message in str(caught.value)
    assert len(caught.value.mistakes) == 1


def test_groups_that_double_at_each_step_are_a_mistake() -> None:
    steps = "".join(f"  g{step}: [{{use: g{step - 1}}}, {{use: g{step - 1}}}]\n" for step in range(1, 40))

    found = _mistakes(GOOD.replace("groups:\n", f"groups:\n  g0: [zlib]\n{steps}"))

    assert any("expands to too many requirements" in mistake.message for mistake in found)


@pytest.mark.parametrize("name", ["make.sh", f"{'x' * 300}.sh"], ids=["missing", "too long for a file"])
def test_files_that_the_recipe_folder_lacks_are_mistakes(name: str, tmp_path: Path) -> None:
    (tmp_path / "feedstock.yaml").write_text(GOOD.replace("kind: library\n", f"kind: library\n    script: {name}\n"))

    with pytest.raises(InputError, match=f"there is no file recipe/{re.escape(name)}"):
        read_spec(tmp_path)


def test_a_folder_may_be_a_file_of_tests_and_no_script(tmp_path: Path) -> None:
    (tmp_path / "recipe/project").mkdir(parents=True)
    (tmp_path / "feedstock.yaml").write_text(
        GOOD.replace("kind: library\n", "kind: library\n    test: {files: [project]}\n")
    )
    assert read_spec(tmp_path).outputs[0].test.files == ("project",)
    (tmp_path / "feedstock.yaml").write_text(GOOD.replace("kind: library\n", "kind: library\n    script: project\n"))
    with pytest.raises(InputError, match="there is no file recipe/project"):
        read_spec(tmp_path)


#: A spec that conda-forge's linter accepts, for a list of platforms that includes Windows.
REVIEWED = dedent("""\
    name: demo
    version: 1.2.0
    platforms: {linux-64: , win-64: }
    python: [3.12, 3.13]
    cuda: {versions: [12.9], libraries: [cudnn]}
    outputs:
      - name: libdemo
        kind: library
        script: {template: cmake}
        requirements:
          build: [compiler: c, compiler: cuda, stdlib: c]
          host: [use: cuda-libraries, "zlib >=1.2,<2"]
        test: {commands: [demo --version]}
    about: {homepage: https://example.org, license: Apache-2.0, license_file: LICENSE, summary: A demonstration}
    maintainers: [someone]
""")


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        ("Apache-2.0", "MITT", 14, "'MITT' is not in the SPDX license list", "Did you mean 'MIT'?"),
        ("Apache-2.0", "Apache 2.0", 14, "'Apache 2.0' is not an SPDX expression", "Did you mean 'Apache-2.0'?"),
        ("Apache-2.0", "MIT AND", 14, "'MIT AND' is an incomplete SPDX expression", "Apache-2.0 OR MIT"),
        ("Apache-2.0", "MIT; ISC", 14, "is not an SPDX expression", "Apache-2.0 OR MIT"),
        ("Apache-2.0", "MIT WITH LLVM-exceptio", 14, "'LLVM-exceptio' is not an exception", "LLVM-exception"),
        (">=1.2,<2", ">=1.2<2", 12, "'>=1.2<2' is not a version constraint", "zlib >=1.2,<2"),
        (">=1.2,<2", ">=1.2 <2", 12, "'>=1.2 <2' is not a version constraint", "zlib >=1.2,<2"),
        ("https://example.org", "example.org", 14, "'example.org' is not an address", "Such as: https://example.org"),
        ("zlib >=1.2,<2", "zlib >= 1.2", 12, "has its spaces in other places", "Write: zlib >=1.2"),
        ("zlib >=1.2,<2", "zlib>=1.2", 12, "has its spaces in other places", "Write: zlib >=1.2"),
        (
            "compiler: c,",
            "compiler: fortran77,",
            11,
            "conda-forge has no compiler 'fortran77'",
            "Did you mean 'fortran'?",
        ),
        ("compiler: c,", 'compiler: "c++",', 11, "conda-forge has no compiler 'c++'", "Did you mean 'cxx'?"),
        ("stdlib: c", "stdlib: cxx", 11, "conda-forge has no stdlib 'cxx'", "Did you mean 'c'?"),
        ("[12.9]", "[12.9, 12.9]", 5, "12.9 is there twice", "Remove one of them."),
        ("[3.12, 3.13]", "[3.12, 3.12]", 4, "3.12 is there twice", "Remove one of them."),
        ("{template: cmake}", "[mkdir -p x]", 9, "'mkdir -p x' does not run on Windows", "build.bat"),
        ("demo --version", "test -f $PREFIX/x", 13, "does not run on Windows", "`when: unix`"),
        ("[cudnn]", "[nccl]", 5, "conda-forge has no nccl for win-64", "when: cuda and not win-64"),
        ("license_file: LICENSE, ", "", 14, "'license_file' is missing", "license_file: LICENSE"),
        ("    test: {commands: [demo --version]}\n", "", 7, "'libdemo' has no test", "commands: [program --version]"),
    ],
)
def test_what_a_reviewer_would_send_back_is_a_mistake(old: str, new: str, line: int, message: str, hint: str) -> None:
    assert spec_from_text(REVIEWED)
    assert REVIEWED.count(old)

    found = _mistakes(REVIEWED.replace(old, new, 1))

    assert any(
        mistake.line == line and message in mistake.message and hint in (mistake.hint or "") for mistake in found
    ), "\n".join(map(str, found))


def test_gpu_builds_without_anything_of_cuda_are_a_mistake() -> None:
    text = REVIEWED.replace(", compiler: cuda", "").replace("use: cuda-libraries, ", "")

    assert any("no output compiles or links anything of CUDA" in mistake.message for mistake in _mistakes(text))


@pytest.mark.parametrize(
    "license_name",
    [
        "MIT",
        "Apache-2.0 OR MIT",
        "GPL-2.0-or-later WITH Classpath-exception-2.0",
        "(MIT AND ISC) OR LicenseRef-Own",
        "EPL-1.0+",
        "BOLA-1.1 OR GPL-2.0-only WITH rsync-linking-exception",
    ],
)
def test_an_spdx_expression_is_a_license(license_name: str) -> None:
    assert spec_from_text(REVIEWED.replace("Apache-2.0", license_name)).about.license == license_name


def test_the_known_licenses_are_those_of_packaging() -> None:
    listed = json.loads((PACKAGE / "generate/spec/spdx.json").read_text())
    names = [*listed["licenses"], *(f"MIT WITH {name}" for name in listed["exceptions"])]
    assert [canonicalize_license_expression(name) for name in names] == names


@pytest.mark.parametrize(
    "requirement",
    [
        "zlib",
        "zlib 1.2.*",
        "zlib ==1.2",
        "zlib >=1.2,!=1.3|2.*",
        "zlib =1.2",
        "zlib 1.2 h123_0",
        "zlib {zlib}.*",
        "zlib ~=1.2",
    ],
)
def test_a_version_constraint_is_no_mistake(requirement: str) -> None:
    assert spec_from_text(REVIEWED.replace("zlib >=1.2,<2", requirement))


def test_a_command_of_unix_alone_may_be_one_of_unix() -> None:
    text = REVIEWED.replace("[demo --version]", "[{command: test -f $PREFIX/x, when: unix}]")

    assert spec_from_text(text)
