#!/usr/bin/env bash
# The Python binding: pure Python over the C library, so it is copied rather than compiled.
set -euo pipefail

mkdir -p "${SP_DIR}"
cp -R python/gpuprobe "${SP_DIR}/"
