#!/bin/sh
# Build and install gpuprobe:  sh build.sh library|python
#
# PREFIX     where to install
# library:   CC, CFLAGS, CPPFLAGS, LDFLAGS       the compiler and its options
#            GPUPROBE_CUDA_VERSION               "11.2"; unset, empty or "none" for a CPU build
#            GPUPROBE_ARCHITECTURES              "sm_35,sm_86,compute_86" or the same with spaces or semicolons
#            target_platform                     the subdir that is built for; default: this machine's
# python:    SP_DIR                              the site-packages folder, below PREFIX
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
version=$(sed -n 's/^#define GPUPROBE_VERSION "\(.*\)"$/\1/p' "$here/include/gpuprobe.h")

fail() {
    echo "build.sh: $*" >&2
    exit 2
}

# What goes into the library is text between quotes in C: letters, digits and the few signs that versions have.
check_word() {
    case $2 in
        *[!0-9A-Za-z_.,-]*) fail "$1 is '$2': only letters, digits and _ . , - are understood" ;;
    esac
}

build_library() {
    cuda=${GPUPROBE_CUDA_VERSION:-none}
    architectures=$(printf '%s' "${GPUPROBE_ARCHITECTURES:-}" | tr -s ' ;' ',')
    check_word GPUPROBE_CUDA_VERSION "$cuda"
    check_word GPUPROBE_ARCHITECTURES "$architectures"
    if [ "$cuda" = none ] || [ "$cuda" = None ]; then
        cuda=none
        architectures=
    elif [ -z "$architectures" ]; then
        fail "GPUPROBE_CUDA_VERSION is $cuda and GPUPROBE_ARCHITECTURES is empty: such a build runs on no GPU"
    fi

    case ${target_platform:-$(uname -s)} in
        osx-* | Darwin)
            library=libgpuprobe.1.dylib link=libgpuprobe.dylib libs=
            shared="-dynamiclib -Wl,-install_name,@rpath/$library"
            rpath=-Wl,-rpath,@loader_path/../lib
            ;;
        *)
            library=libgpuprobe.so.1 link=libgpuprobe.so libs=-ldl
            shared="-shared -Wl,-soname,$library"
            # shellcheck disable=SC2016  # $ORIGIN is for the loader, not for the shell
            rpath='-Wl,-rpath,$ORIGIN/../lib'
            ;;
    esac

    mkdir -p "$PREFIX/lib" "$PREFIX/bin" "$PREFIX/include"
    # CC and the flags are lists of words on purpose.
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c99 -D_POSIX_C_SOURCE=200112L ${CPPFLAGS:-} ${CFLAGS:--O2} -Wall -Wextra -fPIC -fvisibility=hidden \
        -DGPUPROBE_BUILDING "-DGPUPROBE_CUDA_VERSION=\"$cuda\"" "-DGPUPROBE_ARCHITECTURES=\"$architectures\"" \
        -I"$here/include" $shared -o "$PREFIX/lib/$library" \
        "$here/lib/gpuprobe.c" "$here/lib/driver.c" "$here/lib/match.c" "$here/lib/format.c" ${LDFLAGS:-} $libs
    ln -sf "$library" "$PREFIX/lib/$link"
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c99 ${CPPFLAGS:-} ${CFLAGS:--O2} -Wall -Wextra -I"$here/include" -o "$PREFIX/bin/gpuprobe" \
        "$here/command/main.c" "$PREFIX/lib/$library" ${LDFLAGS:-} "$rpath"
    cp "$here/include/gpuprobe.h" "$PREFIX/include/gpuprobe.h"
}

build_python() {
    package=$SP_DIR/gpuprobe
    info=$SP_DIR/gpuprobe-$version.dist-info
    mkdir -p "$package" "$info"
    cp "$here"/python/gpuprobe/*.py "$here/python/gpuprobe/py.typed" "$package/"
    printf 'Metadata-Version: 2.1\nName: gpuprobe\nVersion: %s\nSummary: %s\nLicense: BSD-3-Clause\nRequires-Python: >=3.8\n' \
        "$version" "Which NVIDIA GPUs this machine has, and whether this build runs on them" >"$info/METADATA"
    printf 'conda\n' >"$info/INSTALLER"
    (cd "$SP_DIR" && for file in gpuprobe/* "gpuprobe-$version.dist-info/METADATA" "gpuprobe-$version.dist-info/INSTALLER" \
        "gpuprobe-$version.dist-info/RECORD"; do printf '%s,,\n' "$file"; done) >"$info/RECORD"
}

case ${1:-} in
    library) : "${PREFIX:?is the folder to install to}" && build_library ;;
    python) : "${SP_DIR:?is the site-packages folder to install to}" && build_python ;;
    *) fail "say what to build: library or python" ;;
esac
