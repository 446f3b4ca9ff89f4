#!/usr/bin/env bash
# The library and the command. Works with any C compiler, no build system needed.
set -euo pipefail

defines=(-DGPUPROBE_BUILDING)
if [[ "${cuda_compiler_version:-None}" != "None" ]]; then
    source "${RECIPE_DIR}/cuda_architectures.sh"
    defines+=("-DGPUPROBE_CUDA_VERSION=\"${cuda_compiler_version}\"" "-DGPUPROBE_ARCHITECTURES=\"${CUDA_ARCHITECTURES}\"")
fi

mkdir -p "${PREFIX}/bin" "${PREFIX}/lib" "${PREFIX}/include"
if [[ "${target_platform}" == osx-* ]]; then
    library=libgpuprobe.1.dylib
    shared=(-dynamiclib "-Wl,-install_name,@rpath/${library}")
    link=libgpuprobe.dylib
else
    library=libgpuprobe.so.1
    shared=(-shared "-Wl,-soname,${library}" -ldl)
    link=libgpuprobe.so
fi

# shellcheck disable=SC2086  # the flags of conda's compilers are lists of words
${CC} ${CFLAGS:-} -std=c11 -fPIC -fvisibility=hidden "${defines[@]}" -Iinclude lib/*.c \
    ${LDFLAGS:-} "${shared[@]}" -o "${PREFIX}/lib/${library}"
ln -s "${library}" "${PREFIX}/lib/${link}"
cp include/gpuprobe.h "${PREFIX}/include/"
# shellcheck disable=SC2086
${CC} ${CFLAGS:-} -std=c11 -Iinclude command/*.c \
    ${LDFLAGS:-} "-L${PREFIX}/lib" "-Wl,-rpath,${PREFIX}/lib" -lgpuprobe -o "${PREFIX}/bin/gpuprobe"
