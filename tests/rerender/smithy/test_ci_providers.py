"""Which CI service builds a platform."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.ci_rules import ci_rules
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.forge import placements
from feedstock_tools.rerender.smithy.jobs import azure_jobs, github_jobs


def test_a_platform_is_built_by_the_provider_of_its_build_platform(configuration: Callable[..., Configuration]) -> None:
    forge = {
        "build_platform": {"linux_aarch64": "linux_64", "osx_arm64": "osx_64"},
        "provider": {"linux_64": ["azure", "github_actions"], "win": "azure", "linux_ppc64le": "default"},
    }
    names = ["linux_64_", "linux_aarch64_", "osx_64_", "osx_arm64_", "win_64_", "linux_ppc64le_"]
    configurations = [configuration(name) for name in names]
    rules = ci_rules("3.54.1")
    assert {job.name for job in github_jobs(configurations, forge, rules)} == {"linux_64_", "linux_aarch64_"}
    assert {job.name for job in azure_jobs(configurations, forge, rules)} == set(names)


@pytest.mark.parametrize(
    ("version", "word", "providers"),
    [
        ("3.7.5", "default", {"linux_aarch64": "drone", "linux_ppc64le": "travis", "osx_64": "azure"}),
        ("3.11.0", "emulated", {"linux_aarch64": "azure", "osx_64": "azure"}),
        ("3.14.1", "default", {"linux_aarch64": "drone", "linux_ppc64le": "travis", "osx_64": "azure"}),
        ("3.14.3", "default", {"linux_aarch64": "azure", "linux_ppc64le": "travis", "osx_64": "azure"}),
        ("3.19.0", "default", {"linux_aarch64": "travis", "linux_ppc64le": "travis", "osx_64": "azure"}),
        ("3.19.0", "emulated", {"linux_aarch64": "azure", "linux_ppc64le": "azure", "osx_64": "azure"}),
        ("3.19.0", "native", {"linux_aarch64": "travis", "linux_ppc64le": "travis", "osx_64": None}),
        ("3.45.3", "default", {"linux_aarch64": "azure", "linux_ppc64le": "azure", "osx_64": "azure"}),
        ("3.57.0", "emulated", {"linux_aarch64": "github_actions", "osx_64": "azure", "win_64": "azure"}),
        ("3.57.0", "native", {"linux_aarch64": "travis", "win_64": "github_actions"}),
        ("2026.8.5", "native", {"linux_aarch64": "github_actions", "win_64": "github_actions"}),
    ],
)
def test_words_stand_for_providers(version: str, word: str, providers: dict[str, str | None]) -> None:
    forge = {"provider": dict.fromkeys(providers, word)}
    found = {
        placement.platform: name
        for name in ("azure", "github_actions", "travis", "drone")
        for placement in placements(forge, ci_rules(version), name)
        if placement.platform in providers
    }
    assert found == {platform: name for platform, name in providers.items() if name}


@pytest.mark.parametrize(("version", "placed"), [("3.11.0", []), ("3.56.0", ["osx_64"]), ("3.57.0", [])])
def test_words_in_lists_stood_for_azure(version: str, placed: list[str]) -> None:
    forge = {"provider": {"osx_64": ["default", "circle"], "linux_64": None, "win_64": None}}
    assert [placement.platform for placement in placements(forge, ci_rules(version), "azure")] == placed


def test_a_version_that_is_none_is_an_error() -> None:
    with pytest.raises(InputError, match="'newest' is not a version of conda-smithy"):
        ci_rules("newest")
