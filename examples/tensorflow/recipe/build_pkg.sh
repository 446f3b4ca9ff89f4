#!/usr/bin/env bash
# Installs the wheel that build.sh made.
set -euxo pipefail

"${PYTHON}" -m pip install --no-deps --no-index "${SRC_DIR}"/wheels/tensorflow-*.whl

# The package tensorboard has this command.
rm -f "${PREFIX}/bin/tensorboard"
