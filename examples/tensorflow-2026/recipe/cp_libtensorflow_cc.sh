#!/usr/bin/env bash
# Installs the C++ library and all headers.
set -euxo pipefail

install -d "${PREFIX}/lib" "${PREFIX}/include"
cp -d bazel-bin/tensorflow/libtensorflow_cc.so* "${PREFIX}/lib/"
chmod u+w "${PREFIX}"/lib/libtensorflow_cc.so*
rsync -a bazel-bin/tensorflow/include/ "${PREFIX}/include/"
