#!/bin/bash
set -ex

mkdir -p "${PREFIX}/include" "${PREFIX}/lib"
cp src/wavekit.h "${PREFIX}/include/"
${CXX} ${CXXFLAGS} ${LDFLAGS} -fPIC -shared src/wavekit.cpp -o "${PREFIX}/lib/libwavekit${SHLIB_EXT}"
