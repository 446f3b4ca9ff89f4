#!/bin/bash
set -ex

mkdir -p "${SP_DIR}"
cp -r python/wavekit "${SP_DIR}/"
