#!/usr/bin/env bash
# Builds everything once: the wheel, the C library and the C++ library. The outputs take their parts from $SRC_DIR.
set -euxo pipefail

targets=(
    //tensorflow/tools/pip_package:build_pip_package
    //tensorflow/tools/lib_package:libtensorflow
    //tensorflow:libtensorflow_cc.so
)
options=(
    --config=opt
    --config=noaws
    --verbose_failures
    --define=PREFIX="${PREFIX}"
    --define=PROTOBUF_INCLUDE_PATH="${PREFIX}/include"
)

# Libraries of conda-forge in place of the copies that TensorFlow would download. The names are those of
# third_party/systemlibs/syslibs_configure.bzl.
system_libraries=(
    absl_py astor_archive astunparse_archive boringssl com_github_grpc_grpc com_google_protobuf curl cython dill_archive
    flatbuffers gast_archive gif icu libjpeg_turbo org_sqlite png pybind11 snappy zlib
)
TF_SYSTEM_LIBS=$(IFS=,; echo "${system_libraries[*]}")
export TF_SYSTEM_LIBS

# What upstream pins to a patch version works with every later release that conda-forge has; clang is never imported.
sed -i.orig -E "s/'([A-Za-z0-9_-]+) ~= ([0-9.]+)'/'\1 >= \2'/; /'clang /d" tensorflow/tools/pip_package/setup.py

export PYTHON_BIN_PATH="${PYTHON}"
export PYTHON_LIB_PATH="${SP_DIR}"
export USE_DEFAULT_PYTHON_LIB_PATH=1
export CC_OPT_FLAGS="${CFLAGS}"
export TF_CONFIGURE_IOS=0
export TF_DOWNLOAD_CLANG=0
export TF_NEED_CUDA=0
export TF_NEED_ROCM=0
export TF_NEED_TENSORRT=0
export TF_SET_ANDROID_WORKSPACE=0
# Bazel's own toolchain asks these; the separator is a colon.
export BAZEL_CXXOPTS="-std=c++14:-isystem${PREFIX}/include"
export BAZEL_LINKOPTS="-L${PREFIX}/lib:-Wl,-rpath,${PREFIX}/lib"

case "${target_platform}" in
    linux-*) export BAZEL_LINKLIBS="-lstdc++:-lm:-lrt" ;;
    osx-arm64) options+=(--config=macos_arm64) ;;
esac

if [[ "${cuda_compiler_version}" != "None" ]]; then
    # The architectures are chosen in feedstock.yaml and were checked against what this nvcc knows.
    source "${RECIPE_DIR}/cuda_architectures.sh"
    export TF_NEED_CUDA=1
    export TF_CUDA_CLANG=0
    export TF_CUDA_PATHS="${PREFIX},${CUDA_HOME}"
    export TF_CUDA_VERSION="${cuda_compiler_version}"
    export TF_CUDNN_VERSION="${cudnn}"
    TF_NCCL_VERSION=$(pkg-config nccl --modversion | cut -d. -f1,2)
    export TF_NCCL_VERSION
    export GCC_HOST_COMPILER_PATH="${GCC}"
    GCC_HOST_COMPILER_PREFIX=$(dirname "${GCC}")
    export GCC_HOST_COMPILER_PREFIX
    # nvcc hands options to its host compiler that do not know every flag of conda's, and the driver's stubs resolve late.
    export CC_OPT_FLAGS="-march=nocona -mtune=haswell"
    export LDFLAGS="${LDFLAGS//-Wl,-z,now/-Wl,-z,lazy}"
fi

./configure
bazel build "${options[@]}" "${targets[@]}"
bazel-bin/tensorflow/tools/pip_package/build_pip_package "${SRC_DIR}/wheels"

if [[ "${target_platform}" == linux-* ]]; then
    cp bazel-bin/tensorflow/tools/lib_package/libtensorflow.tar.gz "${SRC_DIR}/"
    bash "${RECIPE_DIR}/collect_cc.sh"
fi
bazel shutdown
