#!/usr/bin/env bash
# The Python package over the library of libgpuprobe.
set -euo pipefail

sh build.sh python
