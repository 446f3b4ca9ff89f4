#!/usr/bin/env bash
# Gathers the C++ library and its headers in $SRC_DIR/libtensorflow_cc, as they are to lie in the prefix.
set -euo pipefail

tree="${SRC_DIR}/libtensorflow_cc"
mkdir -p "${tree}/lib" "${tree}/include/third_party"

cp -d bazel-bin/tensorflow/libtensorflow_cc.so* bazel-bin/tensorflow/libtensorflow_framework.so* "${tree}/lib/"
ln -sf libtensorflow_framework.so.2 "${tree}/lib/libtensorflow_framework.so"
# Bazel's outputs are read-only, and conda has to set their run paths.
chmod u+w "${tree}"/lib/*

headers=(--prune-empty-dirs --include='*/' --include='*.h' --include='*.inc' --exclude='*')
rsync -a --exclude=_virtual_includes/ --exclude=pip_package/ --exclude=lib_package/ "${headers[@]}" bazel-bin/ "${tree}/include/"
rsync -a "${headers[@]}" tensorflow/cc tensorflow/core "${tree}/include/tensorflow/"
rsync -a --exclude='*.cc' third_party/ "${tree}/include/third_party/"

eigen=$(bazel info output_base)/external/eigen_archive
rsync -a --exclude='*.txt' "${eigen}/Eigen" "${eigen}/unsupported" "${tree}/include/"
chmod -R u+w "${tree}"
