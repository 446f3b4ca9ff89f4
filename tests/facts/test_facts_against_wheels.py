"""The facts on toolkits and libraries, compared with what maintenance recorded from NVIDIA's wheels."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from feedstock_tools.facts.cuda import CudaFacts, load_cuda
from feedstock_tools.versions import parse_version
from maintenance.facts import libraries, toolkits
from maintenance.facts.records import read_table

FACTS = load_cuda()
NVCC = read_table(toolkits.TABLE)
LIBRARIES = read_table(libraries.TABLE)


def with_toolkit(version: str, **changed: Any) -> CudaFacts:
    """The facts with some of one toolkit changed."""
    toolkit = replace(FACTS.toolkits[version], **changed)
    return replace(FACTS, toolkits=MappingProxyType({**FACTS.toolkits, version: toolkit}))


def test_every_fact_on_a_toolkit_is_what_the_last_wheel_of_its_nvcc_has() -> None:
    assert toolkits.differences(FACTS, NVCC) == []


def test_the_wheels_of_every_toolkit_since_the_first_with_wheels_are_recorded() -> None:
    since = [version for version in FACTS.toolkits if parse_version(version) >= parse_version("11.7")]
    assert list(toolkits.minors(NVCC)) == since


def test_the_only_change_within_a_minor_version_is_the_clang_of_12_2() -> None:
    assert list(toolkits.changes(NVCC)) == ["12.2.91 has newest_clang 15, 12.2.140 has 16"]


def test_the_kernels_of_one_library_of_cudnn_go_back_further_than_the_rest() -> None:
    files = LIBRARIES["nvidia-cudnn-cu12 9.11.0.98"]["files"]
    oldest = {
        name.removeprefix("libcudnn_").partition(".")[0]: file["code"].split(":")[0] for name, file in files.items()
    }
    assert oldest["engines_precompiled"] == "sm_50"
    assert {oldest["ops"], oldest["cnn"], oldest["adv"]} == {"sm_75"}


def test_every_record_names_its_wheels_and_files_by_their_hashes() -> None:
    for entry in NVCC.values():
        assert set(entry["files"]) == {"bin/ptxas", "crt/host_config.h"}
        assert all(len(digest) == 64 for digest in (*entry["wheels"].values(), *entry["files"].values()))
    for entry in LIBRARIES.values():
        assert len(entry["sha256"]) == 64
        assert entry["files"]
        assert all(len(file["sha256"]) == 64 for file in entry["files"].values())


@pytest.mark.parametrize(
    ("version", "changed", "reported"),
    [
        ("12.9", {"newest_gcc": 13}, "CUDA 12.9: newest_gcc is 13 in the facts, 14 in 12.9.86"),
        ("12.2", {"newest_clang": 15}, "CUDA 12.2: newest_clang is 15 in the facts, 16 in 12.2.140"),
        ("12.3", {"newest_msvc": 1949}, "CUDA 12.3: newest_msvc is 1949 in the facts, 1939 in 12.3.107"),
        ("13.0", {"visual_studio": (2017, 2022)}, "CUDA 13.0: visual_studio is (2017, 2022) in the facts"),
        ("12.8", {"architectures": ("50", "120")}, "CUDA 12.8: architectures is 50 120 in the facts"),
    ],
)
def test_a_fact_on_a_toolkit_that_differs_is_reported(version: str, changed: dict[str, Any], reported: str) -> None:
    (sentence,) = toolkits.differences(with_toolkit(version, **changed), NVCC)
    assert sentence.startswith(reported)


def test_a_toolkit_without_facts_is_reported_with_its_values() -> None:
    known = {version: toolkit for version, toolkit in FACTS.toolkits.items() if version != "13.5"}
    (sentence,) = toolkits.differences(replace(FACTS, toolkits=MappingProxyType(known)), NVCC)
    assert sentence.startswith("CUDA 13.5 has no facts; 13.5.37 has {'architectures': '75 80 86")
    assert "'newest_gcc': 16" in sentence


def test_the_oldest_gpu_of_every_library_is_what_its_wheels_have_code_for() -> None:
    assert libraries.contradictions(FACTS, LIBRARIES) == []


def test_a_fact_on_a_library_that_its_wheels_contradict_is_reported() -> None:
    cudnn = replace(FACTS.libraries["cudnn"], gpu_code=())
    changed = replace(FACTS, libraries=MappingProxyType({**FACTS.libraries, "cudnn": cudnn}))
    found = libraries.contradictions(changed, LIBRARIES)
    assert "nvidia-cudnn-cu11 8.8.0.121 has code for GPUs from 50 on; the facts say 35" in found
    assert not [sentence for sentence in found if "8.7.0.84" in sentence]
