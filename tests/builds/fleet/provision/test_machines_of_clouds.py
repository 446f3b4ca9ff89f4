"""The program that makes machines: of EC2, against moto; and how `fleet up` and `fleet down` call any such program."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from feedstock_tools.builds.fleet.provision.settings import SETTINGS
from feedstock_tools.cli.fleet import fleet as command
from tests.support.needs import needs
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples" / "fleet"
SETTINGS_OF_EC2 = {"FLEET_EC2_IMAGE": "ami-12c6146b", "FLEET_EC2_KEY": "mine", "FLEET_EC2_COUNT": "2"}


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A client of an EC2 that exists in memory, with one image: moto makes hundreds for each test by default."""
    image = {"ami_id": SETTINGS_OF_EC2["FLEET_EC2_IMAGE"], "name": "one", "owner_id": "1"}
    (tmp_path / "images.json").write_text(json.dumps([image]))
    monkeypatch.setenv("MOTO_AMIS_PATH", str(tmp_path / "images.json"))  # read as moto is imported
    import boto3
    from moto import mock_aws

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        client = boto3.client("ec2")
        client.create_key_pair(KeyName="mine")
        yield client


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    """The functions of `ec2.py`."""
    return runpy.run_path(str(EXAMPLES / "ec2.py"))


def test_machines_of_ec2_are_made_once_and_ended_by_their_tag(ec2: Any, program: dict[str, Any]) -> None:
    assert program["up"](ec2, "mine", SETTINGS_OF_EC2) == ["mine-1", "mine-2"]
    assert program["up"](ec2, "mine", SETTINGS_OF_EC2) == []
    assert program["up"](ec2, "other", {**SETTINGS_OF_EC2, "FLEET_EC2_COUNT": "1"}) == ["other-1"]
    one, two = program["machines"](ec2, "mine")
    assert {one["State"]["Name"], two["State"]["Name"]} == {"running"}
    ec2.terminate_instances(InstanceIds=[one["InstanceId"]])  # as a provider ends a spot machine
    assert program["up"](ec2, "mine", SETTINGS_OF_EC2) == [program["name_of"](one)]
    assert sorted(program["down"](ec2, "mine")) == ["mine-1", "mine-2"]
    assert program["down"](ec2, "mine") == []
    assert [program["name_of"](machine) for machine in program["machines"](ec2, "other")] == ["other-1"]


def test_machines_that_were_stopped_start_again(ec2: Any, program: dict[str, Any]) -> None:
    program["up"](ec2, "mine", SETTINGS_OF_EC2)
    ec2.stop_instances(InstanceIds=[machine["InstanceId"] for machine in program["machines"](ec2, "mine")])
    assert program["up"](ec2, "mine", SETTINGS_OF_EC2) == []
    assert {machine["State"]["Name"] for machine in program["machines"](ec2, "mine")} == {"running"}


def test_a_machine_of_ec2_has_what_was_asked_for(ec2: Any, program: dict[str, Any]) -> None:
    asked = program["request"](
        "mine", "mine-1", {**SETTINGS_OF_EC2, "FLEET_EC2_SPOT": "yes", "FLEET_EC2_GROUP": "sg-1"}
    )
    assert asked["InstanceMarketOptions"] == {"MarketType": "spot"}
    assert asked["SecurityGroupIds"] == ["sg-1"]
    assert asked["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"]
    assert "UserData" not in asked  # no secret, and no program, goes to a machine before Ansible


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yml")))
def test_the_settings_in_the_examples_exist(name: str) -> None:
    def keys(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            for key, below in value.items():
                yield str(key)
                yield from keys(below)

    content = yaml.safe_load((EXAMPLES / name).read_text())
    used = {key for key in keys(content) if key.startswith("fleet_")}
    assert used <= {*SETTINGS, "fleet_name"}
    assert "plugin" in content or used


@needs("system", sys.platform != "win32", "Ansible, which does not run on Windows")
def test_up_calls_the_program_before_it_reads_the_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "machines.py").write_text(
        "import pathlib, sys\npathlib.Path('called').open('a').write(' '.join(sys.argv[1:]) + '\\n')\nsys.exit(3)\n"
    )
    (tmp_path / "gpus.yml").write_text("all:\n  vars: {fleet_hub: 'a:1'}\n")
    monkeypatch.chdir(tmp_path)
    failed = CliRunner().invoke(command, ["up", "--fleet=gpus.yml", "--machines=machines.py"])
    assert str(failed.exception) == "`machines.py up` ended with status 3"
    assert (tmp_path / "called").read_text() == "up gpus\n"
    missing = CliRunner().invoke(command, ["up", "--fleet=gpus.yml", "--machines=./nobody"])
    assert "there is no such program" in str(missing.exception)
    assert "there is no inventory" in str(CliRunner().invoke(command, ["down", "--fleet=nothing.yml"]).exception)
