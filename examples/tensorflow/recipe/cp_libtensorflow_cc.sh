#!/usr/bin/env bash
# Copies the C++ library that build.sh gathered.
set -euxo pipefail

cp -a "${SRC_DIR}/libtensorflow_cc/." "${PREFIX}/"
