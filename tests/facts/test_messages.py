"""Error messages as users paste them, and what they are explained by."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from feedstock_tools.cli import program
from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.facts.messages import explain_message, load_messages
from tests.support.options import leaves

MESSAGES = [
    ("ptxas fatal   : Value 'sm_86' is not defined for option 'gpu-name'", "architecture unknown to nvcc", "sm_86"),
    ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", "architecture unknown to nvcc", "sm_120"),
    ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "no code for this GPU", ""),
    (
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
        "GPU not among a framework's architectures",
        "sm_120",
    ),
    ("CUDA driver version is insufficient for CUDA runtime version", "driver older than the CUDA runtime", ""),
    (
        "The NVIDIA driver on your system is too old (found version 11040).",
        "driver older than the CUDA runtime",
        "driver",
    ),
    ("the provided PTX was compiled with an unsupported toolchain.", "PTX newer than the driver", ""),
    ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "PTX newer than the driver", ""),
    (
        "ptxas fatal : Unsupported .version 8.5; current version is '8.2'",
        "PTX of a newer version",
        "version 8.5, which CUDA 12.5 or 12.6 writes; this ptxas, or the driver's, reads up to 8.2, that of CUDA 12.2",
    ),
    (
        "ptxas /tmp/t.ptx, line 5; fatal   : Unsupported .version 99.1; current version is '8.6'",
        "PTX of a newer version",
        "version 99.1, which a CUDA version that is not known writes",
    ),
    (
        "Loaded runtime CuDNN library: 8.1.0 but source was compiled with: 8.6.0.",
        "cuDNN versions differ",
        "another cuDNN",
    ),
    ("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", "no driver library", ""),
    (
        "Could not load dynamic library 'libcudart.so.11.0'; libcudart.so.11.0: cannot open shared object file",
        "no CUDA runtime library",
        "libcudart.so.11.0",
    ),
    (
        "libcudnn.so.8: cannot open shared object file: No such file or directory",
        "no CUDA runtime library",
        "libcudnn.so.8",
    ),
    (
        "fatal error C1189: #error:  -- unsupported Microsoft Visual Studio version! Only 2017 to 2022",
        "Visual Studio not supported",
        "",
    ),
    ("error STL1002: Unexpected compiler version, expected CUDA 12.4 or newer.", "Visual Studio not supported", "12.4"),
    (
        "#error -- unsupported GNU version! gcc versions later than 11 are not supported!",
        "gcc not supported",
        "up to 11",
    ),
    (
        "#error -- unsupported clang version! clang version must be less than 16 and greater than 3.2 .",
        "clang not supported",
        "before 16",
    ),
    ("c++: fatal error: Killed signal terminated program cc1plus", "out of memory while compiling", "gigabytes"),
    ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "GPU out of memory", ""),
    ("forward compatibility was attempted on non supported HW", "forward compatibility on a GPU that has none", ""),
    ("Failed to initialize NVML: Driver/library version mismatch", "driver and its library differ", ""),
    ("cudaGetDeviceCount() failed: no CUDA-capable device is detected", "no GPU found", ""),
    ("Error 802: system not yet initialized", "system not initialized", "fabricmanager"),
    ("- nothing provides __cuda >=12 needed by libtorch-2.5.1-cuda126_h1", "solver without __cuda", ""),
    ("CUDA error: device kernel image is invalid", "damaged or foreign GPU code", ""),
    ("No CMAKE_CUDA_COMPILER could be found.", "no nvcc", ""),
    ('CUDA_ARCHITECTURES is empty for target "cmTC_28d80".', "no list of architectures", ""),
    ("relocation truncated to fit: R_X86_64_PC32 against `.bss'", "library too large to link", ""),
    (
        "W tensorflow/… Could not load dynamic library 'cudart64_110.dll'; dlerror: cudart64_110.dll not found",
        "a framework finds no CUDA library",
        "cudart64_110.dll",
    ),
    ("torch.cuda.is_available() returns False", "PyTorch does not see a GPU", "CPU build"),
    (">>> torch.cuda.is_available()\nFalse", "PyTorch does not see a GPU", "CPU build"),
    ("AssertionError: Torch not compiled with CUDA enabled", "PyTorch does not see a GPU", "CPU build"),
]


@pytest.mark.parametrize(("message", "name", "said"), MESSAGES, ids=[message[:40] for message, *_ in MESSAGES])
def test_a_message_that_users_paste_is_explained(message: str, name: str, said: str) -> None:
    explanations = explain_message(message)
    explanation = next(found for found in explanations if found.name == name)
    assert said in explanation.means
    assert explanation.check
    assert not re.search(r"[{}]", "".join((explanation.means, *explanation.check, *explanation.commands)))


def test_a_log_with_several_messages_has_each_explained_once() -> None:
    log = "\n".join(message for message, *_ in MESSAGES[:4]) + "\n" + "x" * 10_000
    names = [explanation.name for explanation in explain_message(log)]
    assert len(names) == len(set(names)) == 3


def test_every_known_message_is_tried_here() -> None:
    assert {known.name for known in load_messages()} == {name for _, name, _ in MESSAGES}


def test_the_commands_that_are_named_exist() -> None:
    known = {words for words, _ in leaves(program._group, "")}
    for explanation in load_messages():
        for text in explanation.commands:
            words = text.removeprefix("feedstock-tools ").split()
            assert words[0] in known or " ".join(words[:2]) in known, text


def test_an_unknown_message_is_an_error_and_an_empty_one_too() -> None:
    with pytest.raises(WorkError, match="no explanation"):
        explain_message("Segmentation fault")
    result = CliRunner().invoke(command, ["explain"], standalone_mode=False)
    assert isinstance(result.exception, FeedstockError)


def test_a_log_is_read_from_standard_input() -> None:
    result = CliRunner().invoke(command, ["explain", "-", "--json"], input="\n".join(m for m, *_ in MESSAGES[:2]))
    assert result.exception is None, repr(result.exception)
    assert [entry["name"] for entry in json.loads(result.output)] == ["architecture unknown to nvcc"]
