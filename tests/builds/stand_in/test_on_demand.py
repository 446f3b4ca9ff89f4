"""Wheels that recipes require beyond the stand-in channel: what pip gets to choose, and what is recorded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in import on_demand
from feedstock_tools.builds.stand_in.channel import Sources, ensure_stand_in_channel
from feedstock_tools.builds.stand_in.on_demand import Ties, fetch_wheels, recorded_wheels, requirement, unmet
from feedstock_tools.channel import pip
from feedstock_tools.channel.packages.reading import read_documents
from feedstock_tools.channel.pip import Fetching, unwatched
from feedstock_tools.errors import WorkError
from feedstock_tools.generate.package_names import PackageNames
from feedstock_tools.platforms import Platform
from tests.support.needs import needs
from tests.support.serving import Answers, serving
from tests.support.wheels import write_wheel

HERE = Platform.here()
LINUX = Platform.parse("linux-64")
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
TIES = Ties(PackageNames({"demo-kit": "demokit"}, "2026-11-28", {"demokit": "demo-kit", "demo_kit": "demo-kit"}))
TIES_OF_BOTH = Ties(PackageNames({"demo-kit": "demokit"}, "2026-11-28", {"demokit": "demo-kit", "other": "other"}))
on_linux = needs("system", HERE.os == "linux", "the stand-in channel has tools for Linux only")


def _machine(index: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return own | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder with two versions of a project, which runs with another."""
    folder = tmp_path / "index"
    for version in ("1.0", "2.0"):
        needed = ("Requires-Python: >=3.8", "Requires-Dist: other >=0.5", "Requires-Dist: absent; python_version < '3'")
        write_wheel(folder, "demo-kit", version, {"demo_kit/__init__.py": ""}, needed)
    write_wheel(folder, "other", "0.7", {"other.py": ""})
    return folder


@pytest.mark.parametrize(
    ("version", "line"),
    [
        (None, "p"),
        (">=1.2,<3", "p>=1.2,<3"),
        (">=1.2.0a0,<3.0a0", "p>=1.2.0a0,<3"),
        ("==1.2", "p==1.2"),
        ("1.2", "p==1.2"),
        ("1.2.*", "p==1.2.*"),
        ("=1.2", "p==1.2.*"),
        (">=1.2.*", "p>=1.2"),
        ("!=1.2.*,>=1", "p!=1.2.*,>=1"),
        ("~=1.2", "p~=1.2"),
        ("1.2|1.4", "p"),
        ("*", "p"),
    ],
)
def test_versions_of_conda_become_those_of_pip(version: str | None, line: str) -> None:
    assert requirement("p", version) == line


def test_what_the_channels_own_packages_meet_is_not_asked_for() -> None:
    specs = ("cmake", "cmake <4", "numpy >=1", "gcc_linux-64", "__glibc >=2.17", "python 3.12.*", "demokit")
    assert unmet(specs, LINUX, "3.12") == ["cmake <4", "demokit"]


def test_only_names_tied_to_a_project_are_asked_for(index: Path, tmp_path: Path) -> None:
    fetch_wheels(["other"], HERE, PYTHON, TIES, tmp_path / "kept", _machine(index), unwatched)
    assert recorded_wheels(tmp_path / "kept") == ()


@on_linux
def test_the_newest_wheel_within_bounds_becomes_a_package_with_what_it_runs_with(index: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    steps: list[Fetching] = []
    fetch_wheels(["demokit <2", "python"], HERE, PYTHON, TIES, kept, _machine(index), steps.append)

    assert {step.size for step in steps} == {sum(path.stat().st_size for path in kept.glob("*.whl"))}
    assert {step.what for step in steps} == {"demo-kit 1.0, other 0.7"}
    found = {each.package.name: each for each in recorded_wheels(kept) if each.package}
    assert sorted(found) == ["demokit", "pypi-other"]
    package = found["demokit"].package
    assert package is not None
    assert (package.version, package.noarch) == ("1.0", "python")
    assert package.depends == ("python >=3.8", "pypi-other >=0.5")
    assert found["demokit"].wheel.sha256 == sha256((kept / found["demokit"].wheel.file).read_bytes()).hexdigest()
    assert found["demokit"].wheel.sha256 in str(package.source)


@on_linux
@pytest.mark.parametrize(
    ("spec", "needs", "builds"),
    [
        ("demokit * cuda*", ("Requires-Dist: nvidia-cublas",), {"cuda_py", "py"}),
        ("demokit * cuda*", (), {"py"}),
        ("demokit * cpu*", (), {"cpu_py", "py"}),
    ],
)
def test_a_build_that_a_recipe_chooses_is_named_so_where_the_wheel_has_cuda(
    spec: str, needs: tuple[str, ...], builds: set[str], tmp_path: Path
) -> None:
    index, kept = tmp_path / "index", tmp_path / "kept"
    write_wheel(index, "demo-kit", "1.0", {"demo_kit/__init__.py": ""}, needs)
    write_wheel(index, "nvidia-cublas", "1.0", {"nvidia/__init__.py": ""})
    for asked in ([spec, "demokit >=1"], ["demokit"]):
        fetch_wheels(asked, HERE, PYTHON, TIES, kept, _machine(index), unwatched)
    found = [each.package.build for each in recorded_wheels(kept) if each.package and each.package.name == "demokit"]
    assert {build.partition("h")[0] for build in found} == builds


@on_linux
def test_what_extras_of_a_requirement_need_is_required_too(tmp_path: Path) -> None:
    index = tmp_path / "index"
    write_wheel(index, "demo-kit", "1.0", {"demo_kit.py": ""}, ("Requires-Dist: other[fast]",))
    of_other = ("Provides-Extra: fast", "Provides-Extra: all", "Requires-Dist: other[all]; extra == 'fast'")
    write_wheel(index, "other", "0.7", {"other.py": ""}, (*of_other, "Requires-Dist: third >=2; extra == 'all'"))
    write_wheel(index, "third", "2.0", {"third.py": ""})
    fetch_wheels(["demokit"], HERE, PYTHON, TIES, tmp_path / "kept", _machine(index), unwatched)
    found = {each.package.name: each.package.depends for each in recorded_wheels(tmp_path / "kept") if each.package}
    assert found["pypi-other"] == ("python", "pypi-third >=2")


@on_linux
def test_no_module_of_the_current_folder_runs(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "json.py").write_text("raise SystemExit('a module of the current folder runs')")
    monkeypatch.chdir(trap)
    fetch_wheels(["demokit"], HERE, PYTHON, TIES, tmp_path / "kept", _machine(index), unwatched)
    assert recorded_wheels(tmp_path / "kept")


@pytest.mark.parametrize("tag", ["manylinux_2_5", "manylinux1", "manylinux2014", "manylinux_2_28"])
def test_wheels_for_a_python_that_this_machine_lacks_are_found_by_old_and_new_names(tag: str, tmp_path: Path) -> None:
    write_wheel(tmp_path / "index", "demo-kit", "1.0", {"demo_kit/__init__.py": ""}, tags=f"py3-none-{tag}_x86_64")
    fetch_wheels(["demokit"], LINUX, "3.99", TIES, tmp_path / "kept", _machine(tmp_path / "index"), unwatched)
    assert [each.wheel.version for each in recorded_wheels(tmp_path / "kept")] == ["1.0"]


def test_what_a_wheel_takes_on_the_disk_is_known_from_the_list_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "demo.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("noise", os.urandom(1 << 20))
        made.writestr("zeros", bytes(1 << 22))
    content = path.read_bytes()
    asked: list[str] = []

    class Ranges(Answers):
        def respond(self) -> None:
            length = self.headers.get("Range", "bytes=-0").removeprefix("bytes=-")
            asked.append(f"{self.command} {length}")
            self.answer(content[-int(length) :])

    monkeypatch.setattr(on_demand, "_LARGE", 0)
    monkeypatch.setattr(on_demand, "_LIST", 1000)
    with serving(Ranges) as address:
        assert on_demand._sizes_of(f"{address}/demo.whl") == (len(content), (1 << 20) + (1 << 22))
    assert asked == ["HEAD 0", "GET 1000"]
    assert on_demand._sizes_of(path.as_uri()) == (len(content), (1 << 20) + (1 << 22))


@on_linux
def test_wheels_that_do_not_fit_unpacked_are_not_fetched(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = sum(path.stat().st_size for path in index.glob("*.whl"))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=packed // 3))
    with pytest.raises(WorkError, match=r"no room for demo-kit 2.0, other 0.7 \(.*\): .* are free in .*kept\n"):
        fetch_wheels(["demokit"], HERE, PYTHON, TIES, tmp_path / "kept", _machine(index), unwatched)
    assert not list((tmp_path / "kept").glob("*.whl"))


def test_requirements_that_exclude_each_other_are_named(index: Path, tmp_path: Path) -> None:
    write_wheel(index, "other", "0.3", {"other.py": ""})
    with pytest.raises(WorkError, match=r"\(demokit, other <0.5\): .*demo-kit 2.0 depends on other>=0.5"):
        fetch_wheels(
            ["demokit", "other <0.5"], LINUX, "3.99", TIES_OF_BOTH, tmp_path / "kept", _machine(index), unwatched
        )


@on_linux
def test_an_older_version_of_a_tool_keeps_its_place_in_the_prefix(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    write_wheel(folder, "cmake", "3.31.10", {"cmake/data/bin/cmake": "#!/bin/sh\n"})
    fetch_wheels(["cmake <4"], HERE, None, TIES, tmp_path / "kept", _machine(folder), unwatched)

    wheel = recorded_wheels(tmp_path / "kept")[0].wheel
    assert (wheel.version, wheel.python, wheel.take) == ("3.31.10", None, (("cmake/data", "."),))


@on_linux
def test_what_is_recorded_needs_no_index_any_more(index: Path, tmp_path: Path) -> None:
    for machine in (_machine(index), _machine(tmp_path / "nowhere")):
        fetch_wheels(["demokit"], HERE, PYTHON, TIES, tmp_path / "kept", machine, unwatched)
    assert {each.wheel.version for each in recorded_wheels(tmp_path / "kept")} == {"2.0", "0.7"}


@on_linux
@on_linux
@pytest.mark.parametrize("asked", ["demokit", "demokit >=2"])
def test_a_wheel_that_changes_on_the_index_is_refused(asked: str, index: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    fetch_wheels(["demokit"], HERE, PYTHON, TIES, kept, _machine(index), unwatched)
    records = {path: path.read_bytes() for path in kept.glob("asked-*.json")}
    if asked == "demokit":
        next(kept.glob("demo_kit-*.whl")).unlink()
    write_wheel(index, "demo-kit", "2.0", {"demo_kit/__init__.py": "other = True"})
    with pytest.raises(
        WorkError, match=r"the package index has demo_kit-2\.0-.*\.whl with .* but .*asked-\w+\.json records"
    ):
        fetch_wheels([asked], HERE, PYTHON, TIES, kept, _machine(index), unwatched)
    assert {path: path.read_bytes() for path in kept.glob("asked-*.json")} == records


@on_linux
def test_a_wheel_that_was_deleted_is_fetched_in_the_version_that_was_chosen(index: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    fetch_wheels(["demokit"], HERE, PYTHON, TIES, kept, _machine(index), unwatched)
    (wheel,) = kept.glob("demo_kit-*.whl")
    wheel.unlink()
    write_wheel(index, "demo-kit", "3.0", {"demo_kit/__init__.py": ""})
    fetch_wheels(["demokit"], HERE, PYTHON, TIES, kept, _machine(index), unwatched)
    assert list(kept.glob("demo_kit-*.whl")) == [wheel]


def test_a_version_that_no_index_has_is_refused_with_the_requirement(index: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkError, match=r"pip finds no wheels for what the recipe requires \(demokit >=9\)"):
        fetch_wheels(["demokit >=9"], HERE, PYTHON, TIES, tmp_path / "kept", _machine(index), unwatched)


@on_linux
def test_the_choice_of_pip_has_a_limit_that_the_error_names(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pip, "_CHOOSE_SECONDS", 0.01)
    with pytest.raises(WorkError, match=r"pip chose no wheels for what the recipe requires \(demokit\) within 0.01 s$"):
        fetch_wheels(["demokit"], HERE, PYTHON, TIES, tmp_path / "kept", _machine(index), unwatched)


def test_a_damaged_record_is_none(tmp_path: Path) -> None:
    for number, text in enumerate(("", "[]", '{"packages": [{}]}', '{"packages": [null]}')):
        (tmp_path / f"asked-{number}.json").write_text(text)
    assert recorded_wheels(tmp_path) == ()


@on_linux
def test_the_channel_has_the_packages_under_the_names_that_are_asked_for(index: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    fetch_wheels(["demo_kit"], HERE, PYTHON, TIES, kept, _machine(index), unwatched)

    made = ensure_stand_in_channel(tmp_path / "channels", HERE, [PYTHON], Sources(tools=kept))

    entries = json.loads((made.folder / "noarch/repodata.json").read_bytes())["packages.conda"]
    by_name = {entry["name"]: (file, entry) for file, entry in entries.items()}
    assert by_name["demo_kit"][1]["depends"] == ["demokit ==2.0"]
    package = made.folder / "noarch" / by_name["demokit"][0]
    about = json.loads(read_documents(package, ["info/about.json"])["info/about.json"] or b"{}")
    assert about["extra"]["stand-in"]["contents"] == "of this machine"
    assert not made.empty & {"demo_kit", "demokit"}


def test_the_hash_is_read_from_reports_of_pip_before_23_1_too(tmp_path: Path) -> None:
    metadata = {"name": "demo-kit", "version": "1.0", "requires_dist": ["other", "absent; python_version < '3'"]}
    source = {"url": "file:///demo.whl", "archive_info": {"hash": "sha256=0a1b"}}
    report = tmp_path / "report.json"
    environment = {"python_version": PYTHON}
    report.write_text(
        json.dumps({"environment": environment, "install": [{"metadata": metadata, "download_info": source}]})
    )
    reader = [sys.executable, "-P", "-c", pip._CHOSEN, str(report), str(pip._bundled() or pip._site_packages())]
    found = json.loads(subprocess.run(reader, capture_output=True, text=True, check=True).stdout)
    assert [(each["sha256"], each["needs"]) for each in found] == [("0a1b", [["other", ""]])]
