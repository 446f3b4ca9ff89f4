"""Publishing: to a folder and to S3, and what does not go anywhere."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from feedstock_tools.builds.ledger import Ledger, TestRecord, now
from feedstock_tools.channel.repodata import read_records
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.publishing import BUILT, KEY, publish, results


def test_a_folder_becomes_a_channel_that_solves(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    assert results(publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, "--json")) == {"published"}
    records = read_records(str(tmp_path / "channel"), [HERE.subdir, "noarch"])
    assert sorted(record.file_name for record in records) == gpu_feedstock.packages()


def test_what_the_target_has_is_left(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    assert results(publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, "--json")) == {"there"}


def test_a_dry_run_puts_nothing_anywhere(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, "--dry-run", "--json")
    assert results(run) == {"to be published"}
    assert not (tmp_path / "channel").exists()


def test_a_tampered_package_is_refused_and_nothing_goes(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    package = next(gpu_feedstock.artifacts.glob(f"{HERE.subdir}/*.conda"))
    state = package.stat()
    content = bytearray(package.read_bytes())
    content[-1] ^= 1  # of the same size, and put back in time
    package.write_bytes(content)
    os.utime(package, ns=(state.st_atime_ns, state.st_mtime_ns))
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    assert run.returncode == 1
    assert f"{package.name} has changed since it was built" in run.stderr
    assert not (tmp_path / "channel").exists()


def test_another_package_of_the_same_name_is_not_replaced(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    package = next((tmp_path / "channel").glob(f"{HERE.subdir}/*.conda"))
    package.write_bytes(b"another")
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    assert run.returncode == 1
    assert f"different packages with these names: {HERE.subdir}/{package.name}" in run.stderr
    assert package.read_bytes() == b"another"


def test_a_configuration_that_is_not_complete_does_not_go(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, f"{HERE.name}_cpu")
    assert run.returncode == 1
    assert "is not built here" in run.stderr
    assert not (tmp_path / "channel").exists()


def mark(feedstock: TinyFeedstock, marks: dict[str, str], rows: str = "") -> None:
    """Give the builds of rows with such an ending other marks."""
    with Ledger(feedstock.artifacts / "ledger.sqlite") as ledger:
        for record in ledger.builds():
            if record.row.endswith(rows):
                ledger.finish(replace(record, marks=marks))


def test_what_came_with_a_feedstock_is_not_published_until_it_is_collected(
    gpu_feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    stranger = {"XDG_STATE_HOME": str(tmp_path / "another user")}
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, **stranger)
    assert run.returncode == 1
    assert "is not built here" in run.stderr
    shown = gpu_feedstock.run("status", "--channel", str(gpu_feedstock.channel), **stranger).stdout
    assert "brought, not built by this user" in " ".join(shown.split())
    moved = gpu_feedstock.artifacts.rename(tmp_path / "moved")
    assert gpu_feedstock.run("collect", str(moved), **stranger).returncode == 0
    assert results(publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, "--json", **stranger)) == {"published"}


def test_without_a_place_for_a_key_nothing_is_published(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = {"XDG_STATE_HOME": str(tmp_path / "file")}
    run = gpu_feedstock.run("build", BUILT, "--channel", str(gpu_feedstock.channel), **nowhere)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "no key can be kept in the user's folder" in run.stdout + run.stderr
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT, **nowhere)
    assert run.returncode == 1
    assert "was brought: nothing shows that this user built it" in run.stderr
    assert not (tmp_path / "channel").exists()


def test_untested_packages_do_not_go(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    mark(gpu_feedstock, {"tests": "left out", "tests-reason": "no GPU"})
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    assert run.returncode == 1
    assert "not tested: no GPU" in run.stderr
    assert "test NAME" in run.stderr


def test_without_a_name_rows_with_untested_packages_are_left_out(
    whole_feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    mark(whole_feedstock, {"tests": "left out", "tests-reason": "no GPU"}, "_py3.12")
    run = publish(whole_feedstock, str(tmp_path / "channel"))
    assert run.returncode == 0, run.stderr
    assert "Left out with all of their rows: " in run.stdout
    assert "not tested: no GPU" in run.stdout
    went = sorted(path.name for path in (tmp_path / "channel").glob("*/*.conda"))
    with Ledger(whole_feedstock.artifacts / "ledger.sqlite") as ledger:
        tested = [package.file for build in ledger.builds() if "tests" not in build.marks for package in build.packages]
    assert went == sorted(Path(file).name for file in tested)
    assert 0 < len(went) < len(whole_feedstock.packages())


def test_packages_that_failed_their_last_test_do_not_go(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    with Ledger(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        package = ledger.builds()[0].packages[0]

        def tested(result: str, reason: str = "") -> TestRecord:
            return TestRecord(
                package.sha256,
                channel=package.channel,
                file=package.file,
                started=now(),
                result=result,
                reason=reason,
                log="",
                machine="here",
            )

        for result, reason in (("passed", ""), ("failed", "its tests failed")):
            ledger.record_test(tested(result, reason))
        run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
        assert run.returncode == 1
        assert f"{package.file} was rejected by the last `test`: its tests failed" in run.stderr
        ledger.record_test(tested("passed"))
    assert publish(gpu_feedstock, str(tmp_path / "channel"), BUILT).returncode == 0


def test_the_last_test_is_the_newest_whatever_was_recorded_last(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    """`collect` records the earlier tests of other machines after the later ones of this machine."""
    with Ledger(gpu_feedstock.artifacts / "ledger.sqlite") as ledger:
        one, other = (build.packages[0] for build in ledger.builds()[:2])
        for package, hour, result in (
            (one, 2, "failed"),
            (one, 1, "passed"),
            (other, 2, "passed"),
            (other, 1, "failed"),
        ):
            started = f"2026-01-01T0{hour}:00:00+00:00"
            ledger.record_test(TestRecord(package.sha256, package.channel, package.file, started, result, "", "here"))
    run = publish(gpu_feedstock, str(tmp_path / "channel"), BUILT)
    assert run.returncode == 1
    assert f"{one.file} was rejected by the last `test`" in run.stderr
    assert other.file not in run.stderr


def test_stand_in_builds_stay_on_the_machine(gpu_feedstock: TinyFeedstock) -> None:
    mark(gpu_feedstock, {"channel": "stand-in"})
    run = publish(gpu_feedstock, "prefix:mine", BUILT)
    assert run.returncode == 2
    assert "cannot leave this machine" in run.stderr


@pytest.mark.slow
def test_s3_becomes_a_channel(gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    import boto3
    from moto.server import ThreadedMotoServer  # it takes a second

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    environment = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_DEFAULT_REGION": "us-east-1"}
    try:
        client = boto3.client(
            "s3",
            endpoint_url=f"http://{host}:{port}",
            aws_access_key_id="me",
            aws_secret_access_key=KEY,
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="packages")
        arguments = ("s3://packages/mine", BUILT, "--server", f"http://{host}:{port}", "--json")
        assert results(publish(gpu_feedstock, *arguments, **environment)) == {"published"}
        keys = [entry["Key"] for entry in client.list_objects_v2(Bucket="packages")["Contents"]]
        first, second, *_ = [key for key in keys if key.endswith(".conda")]
        assert "sha256" in client.head_object(Bucket="packages", Key=second)["Metadata"]
        content = client.get_object(Bucket="packages", Key=first)["Body"].read()
        client.put_object(Bucket="packages", Key=first, Body=content)  # as another tool would, without its hash
        assert results(publish(gpu_feedstock, *arguments, **environment)) == {"there"}
        for left in (first, f"mine/{HERE.subdir}/repodata.json"):  # as a run leaves it that was cut off before these
            client.delete_object(Bucket="packages", Key=left)
        assert results(publish(gpu_feedstock, *arguments, **environment)) == {"published", "there"}
        body = client.get_object(Bucket="packages", Key=f"mine/{HERE.subdir}/repodata.json")["Body"].read()
        client.put_object(Bucket="packages", Key=first, Body=b"another")
        other = publish(gpu_feedstock, *arguments, **environment)
    finally:
        server.stop()
    here = [name for name in gpu_feedstock.packages() if f"mine/{HERE.subdir}/{name}" in keys]
    assert here
    assert other.returncode == 1
    assert f"different packages with these names: {first.removeprefix('mine/')}" in other.stderr
    assert KEY not in other.stdout + other.stderr
    assert sorted(json.loads(body)["packages.conda"]) == here
    assert "mine/noarch/repodata.json" in keys


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ftp://somewhere/else", "cannot publish to"),
        ("conda:mine", "cannot publish to"),
        ("s3://", "names no bucket"),
        ("quetz:mine", "needs the server's URL"),
        ("prefix:", "names no channel"),
        ("prefix:a/b", "names no channel"),
    ],
)
def test_a_target_that_is_none_is_explained(target: str, said: str, gpu_feedstock: TinyFeedstock) -> None:
    run = publish(gpu_feedstock, target, BUILT)
    assert run.returncode == 2
    assert said in run.stderr
    assert "Traceback" not in run.stderr
