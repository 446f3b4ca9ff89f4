#!/usr/bin/env bash
# Makes and installs the wheel for one Python.
set -euxo pipefail

export PYTHON_BIN_PATH="${PYTHON}" PYTHON_LIB_PATH="${SP_DIR}"
bazel build --config=opt //tensorflow/tools/pip_package:wheel --repo_env=WHEEL_NAME=tensorflow
"${PYTHON}" -m pip install --no-deps --no-index bazel-bin/tensorflow/tools/pip_package/wheel_house/*.whl
