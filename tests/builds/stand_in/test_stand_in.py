"""The stand-in channel: its real and made-up parts, and that it is made once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from feedstock_tools.builds.stand_in import channel_identities
from feedstock_tools.builds.stand_in.channel import Sources, StandInChannel, ensure_stand_in_channel
from feedstock_tools.builds.stand_in.compilers import ZIG_VERSION, Zig, zig_folder
from feedstock_tools.channel.packages.reading import read_package
from feedstock_tools.channel.properties import STAND_IN, properties_by_marks
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.channel.solving import SolveError, install, solve, virtual_packages
from feedstock_tools.data import data_folder
from feedstock_tools.errors import WorkError
from feedstock_tools.facts.packages import packages_file, read_packages, read_tools
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.platforms import Platform
from tests.support import command
from tests.support.needs import needs

HERE = Platform.here()
RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"
OTHER = "3.8" if RUNNING != "3.8" else "3.9"

pytestmark = needs("system", HERE.os == "linux", "Python and compilers are real on Linux only")


@pytest.fixture(scope="module")
def without_python(root: Path) -> StandInChannel:
    """One without a real Python."""
    return ensure_stand_in_channel(root, HERE, [])


@pytest.fixture
def copied(root: Path, without_python: StandInChannel, tmp_path: Path) -> Path:
    """A root of channels with a copy of that one."""
    place = without_python.folder.relative_to(root)
    shutil.copytree(without_python.folder, tmp_path / place, copy_function=os.link)
    return tmp_path


@pytest.fixture(scope="module")
def without_compiler(root: Path) -> StandInChannel:
    return ensure_stand_in_channel(root, HERE, [], Sources(path=""))


@pytest.fixture(scope="module")
def its_zig(root: Path) -> Zig:
    """A folder like that of a fetched zig; the tests run nothing in it."""
    zig = Zig(root / "zig" / ZIG_VERSION, root / "zig" / "cache")
    zig.folder.mkdir(parents=True, exist_ok=True)
    (zig.folder / "zig").touch()
    return zig


@pytest.fixture(scope="module")
def with_zig(root: Path, its_zig: Zig) -> StandInChannel:
    return ensure_stand_in_channel(root, HERE, [], Sources(path="", zig=its_zig))


def solved(channel: StandInChannel, *specs: str, cuda: str | None = None, platform: Platform = HERE) -> list[str]:
    virtual = virtual_packages(platform, cuda=cuda)
    return [record.distribution for record in solve(specs, [channel.url], platform, virtual=virtual)]


def recorded(channel: StandInChannel) -> Any:
    """What a channel's own file says of this machine."""
    return json.loads((channel.folder / "stand-in.json").read_bytes())


def environment(channel: StandInChannel, prefix: Path, *specs: str) -> Path:
    virtual = virtual_packages(HERE)
    cache = channel.folder.parents[1] / "cache"
    install(solve(specs, [channel.url], HERE, virtual=virtual), prefix, HERE, cache=cache)
    return prefix


def test_it_is_made_once(root: Path, channel: StandInChannel, zig: Zig | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feedstock_tools.builds.stand_in.channel.write_package", None)
    assert ensure_stand_in_channel(root, HERE, [RUNNING], Sources(zig=zig)) == channel


def test_it_says_what_it_is(channel: StandInChannel) -> None:
    assert channel.folder.name == "stand-in"
    packages = [path for path in channel.folder.rglob("*.conda") if not path.name.startswith("python-")]
    assert len(packages) > 50
    assert all(properties_by_marks(read_package(path).extra) == STAND_IN for path in packages[::10])


def test_its_repodata_is_that_of_its_packages(channel: StandInChannel) -> None:
    records = read_records(channel.url, [HERE.subdir, "noarch"])
    listed = (*read_packages(), *read_tools().packages)
    metadata = {f"{known.subdir}/{known.distribution}" for known in listed if known.role != "python"}
    unknown = {record.distribution for record in records if f"{record.subdir}/{record.distribution}" not in metadata}
    assert {name.partition("-")[0] for name in unknown} <= {"python"}
    for record in records[::4]:
        read = read_package(channel.folder / record.subdir / record.file_name)
        assert (record.depends, record.constrains, record.build) == (read.depends, read.constrains, read.build)


def test_the_python_that_runs_this_is_real(channel: StandInChannel, tmp_path: Path) -> None:
    prefix = environment(channel, tmp_path / "prefix", f"python {RUNNING}.*")
    code = "import ssl, sqlite3, sys, sysconfig; print(sys.prefix, sysconfig.get_path('purelib'), sep='\\n')"
    said = subprocess.run([prefix / "bin/python", "-I", "-c", code], capture_output=True, text=True, check=True, env={})

    assert said.stdout.splitlines() == [str(prefix), str(prefix / f"lib/python{RUNNING}/site-packages")]
    assert channel.properties.runs_python(f"{RUNNING}.* *_cpython")
    assert recorded(channel)["pythons"][RUNNING] == ".".join(str(part) for part in sys.version_info[:3])


def test_a_python_that_is_not_here_is_metadata_only(channel: StandInChannel, tmp_path: Path) -> None:
    prefix = environment(channel, tmp_path / "prefix", f"python {OTHER}.*")

    assert not channel.properties.runs_python(OTHER)
    assert not (prefix / "bin/python").exists()
    assert (prefix / f"lib/python{OTHER}/site-packages").is_dir(), "a script may put its module there"
    (listed,) = prefix.glob("conda-meta/python-*.json")
    (path,) = channel.folder.glob(f"*/{listed.stem}.conda")
    assert read_package(path).extra["stand-in"]["contents"] == "metadata only"


def test_a_channel_without_a_real_python_is_another_one(
    channel: StandInChannel, without_python: StandInChannel
) -> None:
    assert without_python.folder != channel.folder
    assert not without_python.pythons


def test_channels_made_from_the_same_are_the_same(tmp_path: Path, channel: StandInChannel, zig: Zig | None) -> None:
    other = ensure_stand_in_channel(tmp_path / "other", HERE, [RUNNING], Sources(zig=zig))

    subdirs = [HERE.subdir, "noarch"]
    here, there = [
        {(record.file_name, record.sha256) for record in read_records(made.url, subdirs)} for made in (channel, other)
    ]
    assert here == there


def test_without_a_cross_compiler_another_platform_is_metadata_only(root: Path, tmp_path: Path) -> None:
    platform = Platform.parse("linux-aarch64" if HERE.arch == "64" else "linux-64")
    for name in ("gcc", "as", "ld"):
        if found := shutil.which(name):
            (tmp_path / name).symlink_to(found)
    channel = ensure_stand_in_channel(root, platform, [RUNNING], Sources(path=str(tmp_path)))

    assert recorded(channel)["compiler"] is None
    assert not channel.pythons
    assert any(name.startswith("gcc_impl_") for name in solved(channel, f"gcc_{platform}", platform=platform))


def test_a_channel_that_was_left_half_made_is_made_again(copied: Path) -> None:
    whole = ensure_stand_in_channel(copied, HERE, [])
    (whole.folder / "stand-in.json").unlink()

    assert ensure_stand_in_channel(copied, HERE, []) == whole
    assert (whole.folder / "noarch/repodata.json").is_file()


def test_a_damaged_record_is_reported(copied: Path) -> None:
    record = ensure_stand_in_channel(copied, HERE, []).folder / "stand-in.json"
    record.unlink()  # a link to that of another channel
    record.write_text("{")

    with pytest.raises(WorkError, match="damaged"):
        ensure_stand_in_channel(copied, HERE, [])


def test_channels_with_zig_behind_them_are_the_same_wherever_they_lie(
    tmp_path: Path, its_zig: Zig, with_zig: StandInChannel
) -> None:
    other = ensure_stand_in_channel(tmp_path, HERE, [], Sources(path="", zig=its_zig))

    contents = [
        {path.name: path.read_bytes() for path in channel.folder.rglob("*.conda")} for channel in (with_zig, other)
    ]
    assert contents[0] == contents[1]
    assert recorded(with_zig)["compiler"] == f"{its_zig.folder}/zig cc -fno-sanitize=undefined"


def test_without_a_compiler_its_compilers_say_so(without_compiler: StandInChannel, tmp_path: Path) -> None:
    prefix = environment(without_compiler, tmp_path / "prefix", f"gcc_{HERE} 14.*")

    (compiler,) = prefix.glob("bin/*-conda-linux-gnu-cc")
    said = subprocess.run([compiler], capture_output=True, text=True, check=False)
    assert recorded(without_compiler)["compiler"] is None
    assert (said.returncode, said.stderr) == (1, f"stand-in channel: this machine has no cc for {HERE}\n")


def test_a_channel_made_without_a_compiler_is_not_taken_once_zig_is_there(
    without_compiler: StandInChannel, with_zig: StandInChannel, tmp_path: Path
) -> None:
    assert without_compiler.folder != with_zig.folder
    machine = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    identity = channel_identities(machine)(HERE, ())
    (zig_folder(user_cache(machine, tmp_path)) / ZIG_VERSION).mkdir(parents=True)
    (zig_folder(user_cache(machine, tmp_path)) / ZIG_VERSION / "zig").touch()
    assert channel_identities(machine)(HERE, ()) == identity, "what zig has built stays built"


def test_a_compiler_that_makes_no_programs_is_passed_over(root: Path, tmp_path: Path) -> None:
    broken = tmp_path / "bin/gcc"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)

    channel = ensure_stand_in_channel(root, HERE, [], Sources(path=str(broken.parent)))
    assert recorded(channel)["compiler"] is None


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(WorkError, match="cannot"):
        ensure_stand_in_channel(tmp_path / "file" / "cache", HERE, [])


def test_the_compiler_packages_activate_a_compiler(channel: StandInChannel, tmp_path: Path) -> None:
    prefix = environment(channel, tmp_path / "prefix", f"gcc_{HERE} 14.*", f"gxx_{HERE} 14.*")
    (tmp_path / "two.c").write_text("int main(void) { return 2; }\n")
    scripts = " && ".join(f". {path}" for path in sorted(prefix.glob("etc/conda/activate.d/*.sh")))
    undo = " && ".join(f". {path}" for path in sorted(prefix.glob("etc/conda/deactivate.d/*.sh")))
    script = f'{scripts} && $CC $CFLAGS two.c $LDFLAGS -o two && echo "$HOST $CXX" && {undo} && echo "[$CC$CXX$HOST]"'

    told = {"PATH": os.environ["PATH"], "CONDA_PREFIX": str(prefix)}
    said = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=told, capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == [
        f"{os.uname().machine}-conda-linux-gnu {prefix}/bin/{os.uname().machine}-conda-linux-gnu-c++",
        "[]",
    ]
    assert subprocess.run([tmp_path / "two"], check=False).returncode == 2


@pytest.mark.parametrize("version", ["7", "9", "10", "11", "12", "13", "14", "15"])
def test_every_compiler_of_the_pinnings_is_available(channel: StandInChannel, version: str) -> None:
    names = solved(channel, f"gcc_{HERE} {version}.*", f"gxx_{HERE} {version}.*", f"sysroot_{HERE} 2.17.*")
    assert any(name.startswith(f"gxx_impl_{HERE}-{version}.") for name in names)


def test_cuda_version_constrains_the_toolkit(channel: StandInChannel) -> None:
    assert any(name.startswith("cudatoolkit-11.2.2-") for name in solved(channel, "cuda-version 11.2", "cudatoolkit"))
    with pytest.raises(SolveError):
        solved(channel, "cuda-version 11.2", "cudatoolkit 11.8.*")


def test_cuda_version_asks_for_a_driver_only_where_there_is_one(channel: StandInChannel) -> None:
    assert solved(channel, "cuda-version 12.9")
    assert solved(channel, "cuda-version 12.9", cuda="12.0")
    with pytest.raises(SolveError):
        solved(channel, "cuda-version 12.9", cuda="11.8")


def test_the_toolkit_of_cuda_11_runs_with_any_driver_of_cuda_11(channel: StandInChannel) -> None:
    assert any(name.startswith("cudatoolkit-11.8.0-") for name in solved(channel, "cudatoolkit", cuda="11.2"))


def test_every_source_is_used() -> None:
    named = yaml.safe_load(packages_file().read_text())["sources"]
    used = {package.recipe.commit for package in read_packages()}
    assert [name for name, source in named.items() if source["commit"] not in used] == []


@pytest.mark.parametrize("path", sorted(data_folder("variants").glob("linux_64_*.yaml")), ids=lambda path: path.stem)
def test_the_compilers_of_a_variant_file_are_available(root: Path, path: Path) -> None:
    channel = ensure_stand_in_channel(root, Platform.parse("linux-64"), [])
    row = {key: values[0] for key, values in yaml.safe_load(path.read_text()).items()}
    keys = [
        ("c_compiler", "c_compiler_version"),
        ("cxx_compiler", "cxx_compiler_version"),
        ("c_stdlib", "c_stdlib_version"),
    ]
    keys += [("cuda_compiler", "cuda_compiler_version")] if "_cuda" in path.stem else []
    specs = [f"{row[name]}_linux-64 {row[version]}.*" for name, version in keys if name in row]

    assert len(solved(channel, *specs, cuda="13.0", platform=Platform.parse("linux-64"))) > len(specs)


@pytest.mark.parametrize(
    "path", sorted(data_folder("variants").glob("linux_64_cuda*.yaml")), ids=lambda path: path.stem
)
def test_the_libraries_of_a_variant_file_are_available(root: Path, path: Path) -> None:
    channel = ensure_stand_in_channel(root, Platform.parse("linux-64"), [])
    row = {key: values[0] for key, values in yaml.safe_load(path.read_text()).items()}
    version = row["cuda_compiler_version"]
    toolkit = f"cudatoolkit {version}.*" if version < "12" else f"cuda-version {version}"
    names = solved(
        channel, toolkit, "nccl", f"cudnn {row['cudnn']}.*", cuda=version, platform=Platform.parse("linux-64")
    )

    assert any(name.startswith(f"cudnn-{row['cudnn']}.") for name in names)


def test_two_processes_at_once_make_one_channel(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from feedstock_tools.builds.stand_in.channel import ensure_stand_in_channel\n"
        "from feedstock_tools.platforms import Platform\n"
        "print(ensure_stand_in_channel(Path(sys.argv[1]), Platform.here(), []).folder)\n"
        "raise SystemExit"
    )
    processes = [command.start(command.patched(code, str(tmp_path))) for _ in range(2)]
    folders = {process.communicate(timeout=300)[0].strip() for process in processes}

    assert [process.returncode for process in processes] == [0, 0]
    assert folders == {str(ensure_stand_in_channel(tmp_path, HERE, []).folder)}
