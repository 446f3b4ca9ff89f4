#!/usr/bin/env bash
set -euxo pipefail

# shellcheck disable=SC2086  # lists of flags
"${CXX}" ${CPPFLAGS:-} ${CXXFLAGS:-} -std=c++14 -I"${PREFIX}/include" -I"${PREFIX}/include/third_party" test_cc.cc -o test_cc \
    ${LDFLAGS:-} -L"${PREFIX}/lib" -ltensorflow_cc -ltensorflow_framework
./test_cc
