"""`publish` for tests: calls of the command, and what it says."""

from __future__ import annotations

import json
import subprocess

from tests.support.feedstocks import HERE, TinyFeedstock

KEY = "a-key-that-is-shown-nowhere"
BUILT = f"{HERE.name}_cuda11.2_py3.11"


def publish(feedstock: TinyFeedstock, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return feedstock.run("publish", *arguments, "--channel", str(feedstock.channel), **environment)


def results(run: subprocess.CompletedProcess[str]) -> set[str]:
    assert run.returncode == 0, run.stdout + run.stderr
    return {package["result"] for package in json.loads(run.stdout)["packages"]}
