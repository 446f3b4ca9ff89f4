#!/usr/bin/env bash
# The library and the command, told which CUDA version and architectures the package is for.
set -euo pipefail

if [[ "${cuda_compiler_version}" != "None" ]]; then
    source "${RECIPE_DIR}/cuda_architectures.sh"
    export GPUPROBE_CUDA_VERSION="${cuda_compiler_version}"
    export GPUPROBE_ARCHITECTURES="${CUDA_ARCHITECTURES}"
fi
sh build.sh library
