"""A dossier of built packages, checked with sha256sum alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from feedstock_tools.channel.targets import parse_target
from feedstock_tools.redaction import known_secrets, redacted, secrets_in
from feedstock_tools.report.dossier import copying
from tests.support.feedstocks import GPU, HERE, TinyFeedstock
from tests.support.needs import needs

ROW = f"{GPU}_py3.11"
needs_sha256sum = needs("system", shutil.which("sha256sum"), "sha256sum, which every Linux has")


def dossier(feedstock: TinyFeedstock, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`dossier` into the folder `dossier` of the feedstock, with the channel that was built on."""
    given = ("dossier", *arguments, "-o", "dossier", "--channel", str(feedstock.channel))
    return feedstock.run(*given, **environment)


def checked(folder: Path, sums: str = "SHA256SUMS") -> subprocess.CompletedProcess[str]:
    """What sha256sum says of a folder."""
    return subprocess.run(["sha256sum", "-c", sums], cwd=folder, capture_output=True, text=True, check=False)


@needs_sha256sum
def test_twelve_builds_are_checked_with_sha256sum_alone(whole_feedstock: TinyFeedstock) -> None:
    feedstock = whole_feedstock
    run = dossier(feedstock)
    assert run.returncode == 0, run.stderr
    folder = feedstock.folder / "dossier"
    packages = list(folder.glob("packages/*/*.conda"))
    assert sorted(path.name for path in packages) == feedstock.packages()
    assert len(packages) >= 12
    check = checked(folder)
    assert check.returncode == 0, check.stdout
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {"SHA256SUMS"}
    assert {line.partition(": ")[0] for line in check.stdout.splitlines()} == files
    assert checked(folder / "packages", "../packages.sha256").returncode == 0
    packages[0].write_bytes(packages[0].read_bytes() + b"more")
    assert checked(folder).returncode != 0


def test_it_shows_how_each_package_was_made(gpu_feedstock: TinyFeedstock) -> None:
    assert dossier(gpu_feedstock, ROW, "--no-packages").returncode == 0
    folder = gpu_feedstock.folder / "dossier"
    (configuration,) = (folder / "configurations").iterdir()
    support = gpu_feedstock.folder / ".ci_support" / f"{configuration.name}.yaml"
    assert (configuration / "configuration.yaml").read_bytes() == support.read_bytes()
    builds = json.loads((configuration / "builds.json").read_text())
    assert {build["output"] for build in builds} == {"libtiny", "tiny-base", "tiny", "tiny-gpu"}
    assert all((configuration / build["log"]).is_file() for build in builds)
    solved = json.loads((configuration / "environments.json").read_text())
    assert any(package["name"] == "tiny-compiler" for each in solved.values() for package in each.get("build", []))
    text = (folder / "README.md").read_text()
    assert all(build["packages"][0]["sha256"] in text for build in builds)
    assert not (folder / "packages").exists()


def test_tests_that_were_run_since_are_in_it_with_their_logs(gpu_feedstock: TinyFeedstock) -> None:
    package = next(gpu_feedstock.artifacts.glob("*/libtiny-*.conda"))
    assert gpu_feedstock.run("test", str(package), "--channel", str(gpu_feedstock.channel)).returncode == 0
    assert dossier(gpu_feedstock, ROW, "--no-packages").returncode == 0
    folder = gpu_feedstock.folder / "dossier"
    (file,) = folder.glob("configurations/*/tests.json")
    (tested,) = json.loads(file.read_text())
    assert (tested["file"], tested["result"]) == (f"{HERE.subdir}/{package.name}", "passed")
    assert "Test 1 of" in (file.parent / tested["log"]).read_text()
    assert f"- tests of {HERE.subdir}/{package.name} run again" in (folder / "README.md").read_text()


def test_uploaded_packages_are_searched_in_their_channel(gpu_feedstock: TinyFeedstock) -> None:
    target = ("--uploaded", "uploaded")
    run = dossier(gpu_feedstock, ROW, *target)
    assert run.returncode == 1
    assert f"has no {HERE.subdir}/libtiny-" in run.stderr
    published = gpu_feedstock.run("publish", "uploaded", ROW, "--channel", str(gpu_feedstock.channel))
    assert published.returncode == 0, published.stderr
    assert dossier(gpu_feedstock, ROW, *target).returncode == 0
    assert "When this page was created, `file://" in (gpu_feedstock.folder / "dossier" / "README.md").read_text()
    package = next((gpu_feedstock.folder / "uploaded").glob("*/libtiny-*.conda"))
    package.write_bytes(b"another")
    run = dossier(gpu_feedstock, ROW, *target)
    assert run.returncode == 1
    assert f"has a different {HERE.subdir}/{package.name}" in run.stderr


def test_a_core_member_is_given_the_commands_that_copy_from_a_label() -> None:
    target = parse_target("anaconda:me/cfep03", None, {}, Path())
    files = ["linux-64/libtiny-1.0.0-cuda112_0.conda", "linux-64/libtiny-1.0.0-cpu_0.conda", "noarch/tiny-2-0.conda"]
    words = "anaconda copy --from-label cfep03 --to-label main --to-owner conda-forge me"
    assert copying(target, files) == [f"{words}/libtiny/1.0.0", f"{words}/tiny/2"]


@pytest.mark.parametrize("harm", ["tampered", "of the same size and time", "missing", "without its log"])
def test_what_is_not_what_was_built_is_refused_and_nothing_written(gpu_feedstock: TinyFeedstock, harm: str) -> None:
    path = next(gpu_feedstock.artifacts.glob("*/libtiny-*.conda"))
    before = path.stat()
    if harm == "tampered":
        path.write_bytes(path.read_bytes() + b"more")
    elif harm == "of the same size and time":
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif harm == "missing":
        path.unlink()
    else:
        shutil.rmtree(gpu_feedstock.artifacts / "logs")
    run = dossier(gpu_feedstock, ROW)
    assert run.returncode == 1
    assert ("libtiny" in run.stderr) or ("log of a build is missing" in run.stderr)
    assert not (gpu_feedstock.folder / "dossier").exists()
    assert not list(gpu_feedstock.folder.glob(".dossier*"))


def test_an_earlier_dossier_is_replaced_and_another_folder_is_not(gpu_feedstock: TinyFeedstock) -> None:
    assert dossier(gpu_feedstock, ROW).returncode == 0
    stray = gpu_feedstock.folder / "dossier" / "stray"
    stray.touch()
    assert dossier(gpu_feedstock, ROW).returncode == 0
    assert not stray.exists()
    (gpu_feedstock.folder / "dossier" / "SHA256SUMS").unlink()
    run = dossier(gpu_feedstock, ROW)
    assert run.returncode == 1
    assert "exists and is not a dossier" in run.stderr


def test_the_requested_builds_must_be_done(gpu_feedstock: TinyFeedstock) -> None:
    run = dossier(gpu_feedstock, f"{HERE.name}_cpu")
    assert run.returncode == 1
    assert "is not done" in run.stderr


def test_a_build_is_given_no_secrets_and_credentials_in_a_configuration_are_not_in_it(
    feedstock: TinyFeedstock,
) -> None:
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/build-library.sh", "mkdir", "env\nmkdir")
    secrets = {"UPLOAD_TOKEN": "correct-horse-battery", "AWS_SECRET_ACCESS_KEY": "staple-staple-staple"}
    for path in (feedstock.folder / ".ci_support").glob("*.yaml"):
        with path.open("a") as stream:
            stream.write("channel_sources:\n- https://me:word-nobody-sees@example.org/t/tk-nobody-sees/mine\n")
            stream.write("some_key:\n- value-of-a-secret-variable\n")
    assert feedstock.build(ROW, environment=secrets).returncode == 0
    logs = "".join(path.read_text() for path in (feedstock.artifacts / "logs").iterdir())
    assert "PATH=" in logs
    assert not any(value in logs for value in secrets.values())
    run = dossier(feedstock, ROW, "--no-packages", MY_TOKEN="value-of-a-secret-variable")  # noqa: S106
    assert run.returncode == 0, run.stderr
    texts = {path.name: path.read_text() for path in (feedstock.folder / "dossier").rglob("*") if path.is_file()}
    (configuration,) = (feedstock.folder / "dossier").glob("configurations/*/configuration.yaml")
    assert "- https://***@example.org/t/***/mine\n" in configuration.read_text()
    assert "some_key:\n- '***'\n" in configuration.read_text() or "some_key:\n- ***\n" in configuration.read_text()
    leaks = [name for name, text in texts.items() if "nobody-sees" in text or "value-of-a-secret" in text]
    assert not leaks


def test_a_log_with_a_secret_is_refused_without_telling_it(gpu_feedstock: TinyFeedstock) -> None:
    log = next((gpu_feedstock.artifacts / "logs").iterdir())
    log.write_text(log.read_text() + "uploading with correct-horse-battery\n")
    run = dossier(gpu_feedstock, ROW, **{"UPLOAD_TOKEN": "correct-horse-battery"})
    assert run.returncode == 1
    assert "the log contains the value of UPLOAD_TOKEN" in run.stderr
    assert "correct-horse" not in run.stderr + run.stdout


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("fetching https://conda.anaconda.org/t/ab-1234/label/main/noarch", {"a token in a URL"}),
        ("fetching https://me:word@example.org/channel", {"a password in a URL"}),
        ("fetching https://***@example.org/t/***/channel", set()),
        ("cp /home/me/t/gpuprobe/a file:///home/me/t/b", set()),
        ("git@github.com:conda-forge/hello", set()),
        ("ssh://git@github.com/conda-forge/hello", set()),
        ("s3://key:word@bucket/channel", {"a password in a URL"}),
        ("https://user:***@example.org/channel", set()),
        (f"ghp_{'a' * 36}", {"a token of GitHub"}),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", {"a private key"}),
        ("signed with sesame-sesame", {"the value of MY_API_KEY"}),
    ],
)
def test_secrets_are_known_by_their_form_or_from_the_environment(line: str, kinds: set[str]) -> None:
    known = known_secrets({"MY_API_KEY": "sesame-sesame", "HOME": "/home/me", "A_TOKEN": "short"})
    assert set(secrets_in(f"begin\n{line}\n", known)) == kinds
    assert (redacted(line) != line) == bool(kinds - {"the value of MY_API_KEY"})
    assert not secrets_in(redacted(line), {})
