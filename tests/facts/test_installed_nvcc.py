"""The architectures and compilers of nvcc against the nvcc on PATH, where one is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from feedstock_tools.facts.cuda import load_cuda
from tests.support.needs import lacks, needs

FACTS = load_cuda()
NVCC = shutil.which("nvcc")


@needs("device", NVCC, "NVIDIA's nvcc on PATH")
def test_the_nvcc_that_is_installed_knows_what_the_facts_say() -> None:
    said = subprocess.run([str(NVCC), "--version"], check=True, capture_output=True, text=True).stdout
    match = re.search(r"release (\d+\.\d+)", said)
    assert match is not None
    asked = subprocess.run([str(NVCC), "--list-gpu-code"], check=False, capture_output=True, text=True)
    if asked.returncode:
        lacks("device", "an nvcc that lists what it knows")
    listed = asked.stdout.split()
    plain = {f"sm_{name}" for name in FACTS.toolkit(match[1]).architectures if name.isdigit()}
    assert plain == {name for name in listed if name.removeprefix("sm_").isdigit()}


@needs("device", NVCC, "NVIDIA's nvcc on PATH")
def test_the_nvcc_that_is_installed_takes_the_compilers_that_the_facts_say() -> None:
    nvcc = Path(str(NVCC)).resolve()
    header = next((path for up in nvcc.parents if (path := up / "include" / "crt" / "host_config.h").is_file()), None)
    if header is None:
        lacks("device", "an nvcc with its crt/host_config.h")
    said = subprocess.run([str(nvcc), "--version"], check=True, capture_output=True, text=True).stdout
    match = re.search(r"release (\d+\.\d+)", said)
    assert match is not None
    toolkit, text = FACTS.toolkit(match[1]), header.read_text(encoding="utf-8")
    assert set(re.findall(r"^#if __GNUC__ > (\d+)$", text, re.MULTILINE)) == {str(toolkit.newest_gcc)}
    refused = set(re.findall(r"^#if \(__clang_major__ >= (\d+)\)", text, re.MULTILINE))
    assert refused == {str((toolkit.newest_clang or 0) + 1)}
    years = {"1700": 2012, "1910": 2017, "1920": 2019, "1930": 2019, "1940": 2022, "1950": 2022, "1960": 2026}
    oldest, too_new = re.findall(r"^#if _MSC_VER < (\d+) \|\| _MSC_VER >= (\d+)$", text, re.MULTILINE)[0]
    assert toolkit.visual_studio == (years[oldest], years[too_new])
    assert toolkit.newest_msvc in (None, int(too_new) - 1)
