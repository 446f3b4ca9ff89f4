#!/usr/bin/env bash
# Installs the library that the two others and the Python package share.
set -euxo pipefail

install -d "${PREFIX}/lib"
cp -d bazel-bin/tensorflow/libtensorflow_framework.so* "${PREFIX}/lib/"
chmod u+w "${PREFIX}"/lib/libtensorflow_framework.so*
