#!/usr/bin/env bash
set -euxo pipefail

# shellcheck disable=SC2086  # lists of flags
"${CC}" ${CPPFLAGS:-} ${CFLAGS:-} -I"${PREFIX}/include" test_c.c -o test_c ${LDFLAGS:-} -L"${PREFIX}/lib" -ltensorflow
./test_c
