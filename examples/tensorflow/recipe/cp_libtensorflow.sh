#!/usr/bin/env bash
# Unpacks the C library that build.sh made.
set -euxo pipefail

tar -xzf "${SRC_DIR}/libtensorflow.tar.gz" -C "${PREFIX}"
# Bazel's outputs are read-only, and conda has to set their run paths.
chmod u+w "${PREFIX}"/lib/libtensorflow*
