#!/usr/bin/env bash
# Device code first, for the architectures of the feedstock, as a fat binary; then one program that holds it.
set -euo pipefail

options=()
if [[ "${cuda_compiler_version}" != "None" ]]; then
    source "${RECIPE_DIR}/cuda_architectures.sh"
    # A list of options on purpose.
    # shellcheck disable=SC2086
    nvcc -fatbin ${CUDA_GENCODE} -o kernel.fatbin kernel.cu
    options=(-DGPUKERNEL_FATBIN='"kernel.fatbin"' -DGPUKERNEL_CUDA="\"${cuda_compiler_version}\"")
fi

mkdir -p "${PREFIX}/bin"
# shellcheck disable=SC2086
${CC} -std=c99 -D_POSIX_C_SOURCE=200809L ${CPPFLAGS:-} ${CFLAGS:-} -Wall -Wextra "${options[@]}" \
    -o "${PREFIX}/bin/gpukernel" gpukernel.c driver.c ${LDFLAGS:-} -ldl
