#!/usr/bin/env bash
# Installs the C library and its headers.
set -euxo pipefail

install -d "${PREFIX}/lib" "${PREFIX}/include/tensorflow"
cp -d bazel-bin/tensorflow/libtensorflow.so* "${PREFIX}/lib/"
chmod u+w "${PREFIX}"/lib/libtensorflow.so*
cp -r bazel-bin/tensorflow/include/tensorflow/c "${PREFIX}/include/tensorflow/"
