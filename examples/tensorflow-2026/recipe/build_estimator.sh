#!/usr/bin/env bash
# Builds and installs the estimator, which has sources of its own.
set -euxo pipefail

cd tensorflow-estimator
bazel build //tensorflow_estimator/tools/pip_package:build_pip_package
./bazel-bin/tensorflow_estimator/tools/pip_package/build_pip_package wheels
"${PYTHON}" -m pip install --no-deps --no-index wheels/*.whl
