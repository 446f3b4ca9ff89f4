"""Inventories: what is wrong in one has its line, and what is right becomes the plan of a host."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from feedstock_tools.builds.fleet.provision.hosts import chosen_hosts
from feedstock_tools.builds.fleet.provision.inventory import read_inventory
from feedstock_tools.builds.fleet.provision.settings import plan_of
from feedstock_tools.errors import InputError
from tests.support.needs import needs

pytestmark = needs("system", sys.platform != "win32", "Ansible, which does not run on Windows")

GOOD = """\
all:
  vars:
    fleet_hub: 203.0.113.7:8786
    fleet_cluster: {cpu: {cores: 4}}
  children:
    gpus:
      vars: {fleet_gpus: 2, fleet_labels: [a100]}
      hosts:
        h1: {ansible_host: 203.0.113.11, fleet_memory: 64G, fleet_cores: 16}
        h2: {ansible_host: 203.0.113.12, fleet_gpus: 4}
    hubs:
      hosts:
        h3: {fleet_runs_hub: true}
"""


def _written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "gpus.yml"
    path.write_text(text)
    return path


def test_groups_and_hosts_set_what_a_host_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ansible.py").write_text("raise SystemExit('a module of the folder that the command starts in')\n")
    monkeypatch.chdir(tmp_path)
    inventory = read_inventory(_written(tmp_path, GOOD), os.environ)
    assert inventory.fleet == "gpus"
    assert inventory.hub == "203.0.113.7:8786"
    one, two, three = inventory.hosts
    assert (one.name, one.gpus, one.memory, one.cores, one.labels) == ("h1", 2, 64 << 30, 16, ("a100",))
    assert (two.name, two.gpus, two.memory, two.is_hub) == ("h2", 4, None, False)
    assert (three.name, three.gpus, three.is_hub, three.root) == ("h3", 0, True, "/var/lib/feedstock-tools")
    assert [plan.name for plan in chosen_hosts(inventory, ["h2"]).hosts] == ["h2"]
    with pytest.raises(InputError, match=r"there is no host h9\n  There are: h1, h2, h3"):
        chosen_hosts(inventory, ["h9"])


def test_a_plugin_of_a_cloud_is_left_to_ansible(tmp_path: Path) -> None:
    path = _written(tmp_path, "plugin: ansible.builtin.constructed\nstrict: true\ngroups: {}\n")
    with pytest.raises(InputError, match="the inventory has no hosts\n  The plugin finds none"):
        read_inventory(path, os.environ)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("all: [h1]\n", 1, "the group all is not a mapping"),
        ("- h1\n", 1, "an inventory is a mapping of groups"),
        ("all:\n  host:\n    h1:\n", 2, "a group has no 'host'"),
        ("all:\n  hosts: [h1]\n", 2, "hosts is not a mapping"),
        ("all:\n  hosts:\n    h1: 203.0.113.11\n", 3, "the variables of h1 are not a mapping"),
        (
            "all:\n  hosts:\n    h1:\n      fleet_gpu: 1\n",
            4,
            "there is no setting fleet_gpu\n  Do you mean fleet_gpus?",
        ),
        ("all:\n  vars:\n    fleet_jobs: 0\n", 3, "fleet_jobs is '0'\n  Expected: a whole number from 1 on"),
        ("all:\n  vars:\n    fleet_memory: much\n", 3, "fleet_memory is 'much'\n  Expected: an amount such as 16G"),
        ("all:\n  vars:\n    fleet_root: /\n", 3, "fleet_root is '/'"),
        ("all:\n  vars:\n    fleet_root: /var/lib/a b\n", 3, "fleet_root is '/var/lib/a b'"),
        ("all:\n  vars:\n    fleet_user: root; rm\n", 3, "fleet_user is 'root; rm'"),
        ("all:\n  vars:\n    fleet_user: root\n", 3, "fleet_user is 'root'"),
        ("all:\n  vars:\n    fleet_root: /var/../etc\n", 3, "fleet_root is '/var/../etc'"),
        ("all:\n  vars:\n    fleet_hub: somewhere\n", 3, "fleet_hub is 'somewhere'"),
        ("all:\n  vars:\n    fleet_name: ../up\n", 3, "fleet_name is '../up'"),
        ("all:\n  vars:\n    fleet_container: lxc\n", 3, "Expected: one of none, podman, docker"),
        (
            "all:\n  vars:\n    fleet_toolchain: [gcc]\n",
            3,
            "Expected: a list of some of compilers, openblas, fftw, hdf5",
        ),
        ("all:\n  vars:\n    fleet_modules: ['$(id)']\n", 3, "Expected: a list of words"),
        ("all:\n  vars:\n    fleet_price: .inf\n", 3, "Expected: a number from 0 on"),
        ("all:\n  vars:\n    fleet_after_build: perhaps\n", 3, "Expected: true or false"),
        ("all:\n  vars:\n    fleet_python: '2.7'\n", 3, "fleet_python is '2.7'"),
        ("all:\n  vars:\n    a: 1\n    a: 2\n", 4, "'a' is a duplicate key"),
        ("all:\n  hosts: {h1: \n", 3, ""),
    ],
)
def test_a_mistake_has_its_line_before_ansible_starts(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = _written(tmp_path, text)
    with pytest.raises(InputError) as raised:
        read_inventory(path, {"PATH": "/nowhere"})
    assert raised.value.exit_code == 2
    first = raised.value.mistakes[0]
    assert (first.path, first.line) == (path, line), str(raised.value)
    assert message in str(raised.value)


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read_inventory(_written(tmp_path, "all:\n  vars:\n    fleet_jobs: 0\n    fleet_gpus: -1\n"), os.environ)
    assert [mistake.line for mistake in raised.value.mistakes] == [3, 4]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "host h1: fleet_hub is missing"),
        ({"fleet_hub": "a:1", "fleet_jobs": "many"}, "host h1: fleet_jobs is 'many'"),
        ({"fleet_hub": "a:1", "fleet_bazel": "6.1.0"}, "fleet_bazel is set without fleet_bazel_file"),
    ],
)
def test_what_a_plugin_lists_is_checked_as_well(variables: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_of("h1", variables)


def test_a_fleet_has_one_hub(tmp_path: Path) -> None:
    text = "all:\n  hosts:\n    h1: {fleet_hub: 'a:1'}\n    h2: {fleet_hub: 'b:1'}\n"
    with pytest.raises(InputError, match="the hosts have different hubs: a:1, b:1"):
        read_inventory(_written(tmp_path, text), os.environ)
