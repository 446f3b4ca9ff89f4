"""However a run is ended, it leaves no container behind: with a stand-in for docker, and with a real one.

Like a daemon's, the stand-in's container is out of reach of signals to the run; only `docker rm` ends it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import environment, start, tool
from tests.support.feedstocks import GPU, HERE, TinyFeedstock, copy_of_example
from tests.support.needs import needs
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    needs("system", HERE.subdir == "linux-64", "the containers tested are those for linux-64"),
]
IMAGE = os.environ.get("FEEDSTOCK_TOOLS_TEST_IMAGE", "")
RUNTIME = os.environ.get("DOCKER_EXECUTABLE") or ("podman" if shutil.which("podman") else "docker")
ROW = f"linux_64_cuda11.2_py{sys.version_info[0]}.{sys.version_info[1]}"
#: `rm` takes its time with a container that was not killed, as podman's does.
DOCKER = """#!/bin/sh
folder={folder}
case "$1" in
    run)
        while [ "$1" != --cidfile ]; do shift; done
        echo 0123abc > "$2"
        touch "$folder/container"
        sleep 987 ;;
    kill) touch "$folder/killed" ;;
    rm)
        [ -e "$folder/killed" ] || sleep 10
        [ "$3" = 0123abc ] && rm "$folder/container" ;;
esac
"""


def _feedstock(folder: Path, script: str) -> Path:
    feedstock = copy_of_example("gpuprobe", folder)
    (feedstock / "recipe" / "build-library.sh").write_text(script)
    return feedstock


def _start(feedstock: Path, row: str, channel: str, **variables: str) -> subprocess.Popen[str]:
    words = [row, "--engine", "container", "--channel", channel, "--retries", "0"]
    return start(tool("build", *words), feedstock, environment(**variables), stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_its_container_is_removed(number: signal.Signals, feedstock: TinyFeedstock, tmp_path: Path) -> None:
    (tmp_path / "docker").write_text(DOCKER.format(folder=tmp_path))
    (tmp_path / "docker").chmod(0o755)
    docker = {"DOCKER_EXECUTABLE": str(tmp_path / "docker"), "DOCKER_IMAGE": "any"}
    run = _start(feedstock.folder, f"{GPU}_py3.11", str(feedstock.channel), **docker)
    try:
        wait_until((tmp_path / "container").exists)
        run.send_signal(number)
        assert run.wait(60) != 0
        wait_until(lambda: not (tmp_path / "container").exists(), 20)
    finally:
        run.kill()
        run.wait()


@needs("container", IMAGE, "an image that FEEDSTOCK_TOOLS_TEST_IMAGE names (maintenance/container-image)")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_real_container_is_removed(number: signal.Signals, tmp_path: Path) -> None:
    begun = tmp_path / "gpuprobe" / "build_artifacts" / ".work"
    script = "trap '' INT TERM HUP\ntouch \"$SRC_DIR/begun\"\nsleep 987\n"

    def containers() -> set[str]:
        asked = [RUNTIME, "ps", "--all", "--quiet"]
        return set(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split())

    before = containers()
    run = _start(_feedstock(tmp_path, script), ROW, "stand-in", DOCKER_EXECUTABLE=RUNTIME, DOCKER_IMAGE=IMAGE)
    try:
        wait_until(lambda: any(begun.glob("*/output/bld/*/work/begun")), 240)
        assert len(containers() - before) == 1
        run.send_signal(number)
        assert run.wait(90) != 0
        wait_until(lambda: containers() <= before, 90)
    finally:
        run.kill()
        run.wait()
