#!/usr/bin/env bash
# Builds the libraries once; build_pkg.sh makes a wheel for each Python from the same tree.
set -euxo pipefail

export PYTHON_BIN_PATH="${PYTHON}"
export PYTHON_LIB_PATH="${SP_DIR}"
export TF_NEED_CUDA=0 TF_NEED_ROCM=0 TF_NEED_CLANG=0
export CC_OPT_FLAGS="${CFLAGS}"

if [[ "${cuda_compiler_version}" != "None" ]]; then
    export TF_NEED_CUDA=1 TF_NCCL_VERSION=""
    export TF_CUDA_VERSION="${cuda_compiler_version}"
    source "${RECIPE_DIR}/cuda_architectures.sh"
    export HERMETIC_CUDA_COMPUTE_CAPABILITIES
    export TF_CUDA_PATHS="${PREFIX},${PREFIX}/targets/x86_64-linux,${BUILD_PREFIX}"
fi

./configure < /dev/null
bazel build --config=opt --verbose_failures --jobs="${CPU_COUNT}" \
    //tensorflow:libtensorflow.so //tensorflow:libtensorflow_cc.so //tensorflow:install_headers
