#!/bin/sh
# Builds the configuration in a container; as short as such a script can be.
set -e
docker=${DOCKER_EXECUTABLE:-docker}
root=$(cd "$(dirname "$0")/.." && pwd)
interactive=
[ -n "$CI" ] || interactive=-it
$docker run $interactive $CONDA_FORGE_DOCKER_RUN_ARGS -v "$root:/home/conda/feedstock_root:rw" \
    -e CONFIG -e CPU_COUNT -e SPECIAL_SETTING -e UPLOAD_PACKAGES -e IS_PR_BUILD \
    "${DOCKER_IMAGE:-example.org/builder:1}" bash /home/conda/feedstock_root/.scripts/build_steps.sh
test -f "$root/build_artifacts/done-$CONFIG"
