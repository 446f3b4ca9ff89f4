"""The libraries that a package needs and no requirement brings, as its engine reports them.

Both engines compare what the files of a package link to with the files of its host environment; rattler-build has
`overlinking_behavior: ignore`, and conda-smithy writes `error_overlinking: false`, so that conda-forge builds such a
package unless its recipe or conda-forge.yml asks for the error. The engine then fails itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

#: A file and what it needs: in rattler-build's words, then in conda-build's.
_MESSAGE = re.compile(
    r'Overlinking against "(?P<library>[^"\n]+)" for "(?P<file>[^"\n]+)"'
    r"|(?:WARNING|ERROR) \([^()\n]*,(?P<linking>[^(),\n]+)\): (?:Needed DSO )?(?P<needed>\S+)"
    r" (?:not found in|found in \[)"
)
#: glibc's libraries, which are in conda-forge's sysroot, and those of NVIDIA's driver: no package brings them.
_OF_SYSTEM = re.compile(
    r"lib(?:c|m|mvec|pthread|dl|rt|util|resolv|anl|nsl|crypt|thread_db)\.so|ld(?:-linux.*|64)\.so"
    r"|lib(?:cuda|nvidia-.+|nvcuvid)\.so"
)
#: A library's name without `lib`, version and suffix → the packages that bring it, where their names differ; the first
#: is the one to require.
_BROUGHT_BY = {
    "z": ("zlib", "libzlib"),
    "ssl": ("openssl",),
    "crypto": ("openssl",),
    "bz2": ("bzip2",),
    "lzma": ("xz", "liblzma"),
    "jpeg": ("libjpeg-turbo",),
    "tinfo": ("ncurses",),
    "stdc++": ("libstdcxx", "libstdcxx-ng"),
    "gomp": ("libgomp", "libgcc", "_openmp_mutex"),
}
_STEM = re.compile(r"lib(?P<stem>.+?)[-.\d]*\.(?:so|dylib)\b")
#: Packages without libraries that another package links to, and the compilers' own.
_NOT_ASKED = re.compile(r"__|_openmp_mutex|lib(?:gcc|stdcxx|gomp)|python|tzdata|cuda-version")
_SHORTEST = 3


def needed_in(text: str) -> Iterator[tuple[str, str]]:
    """Each file of a package in a message of its engine, with a library that the engine finds in no requirement.

    A library in the host environment has its path there.

    >>> list(needed_in('Overlinking against "libz.so.1" for "lib/liba.so"'))
    [('lib/liba.so', 'libz.so.1')]
    >>> list(needed_in("WARNING (a,lib/liba.so): $RPATH/libz.so.1 not found in packages, sysroot(s) nor the …"))
    [('lib/liba.so', 'libz.so.1')]
    """
    for match in _MESSAGE.finditer(text):
        yield match["file"] or match["linking"], (match["library"] or match["needed"]).removeprefix("$RPATH/")


def without_bringer(
    needed: Iterable[tuple[str, str]], run: Collection[str], host: Collection[str], *, has_contents: bool
) -> Iterator[str]:
    """The libraries that a package needs and no requirement brings, each with its file in a sentence.

    Args:
        needed: as `needed_in` has it.
        run: the names of the packages that it depends on; `host` those of its host environment.
        has_contents: the packages of the host environment have their files. Without, one that has the library's name
            is taken to bring it, and whether any other does is unknown.
    """
    names = set(run) if has_contents else {*run, *host}
    for file, library in dict.fromkeys(needed):
        base = library.rpartition("/")[2]
        found = _STEM.match(base)
        stem = found["stem"].lower() if found else base
        if _OF_SYSTEM.match(base) or any(_may_bring(name, stem) for name in names):
            continue
        known = _BROUGHT_BY.get(stem)
        if has_contents and not library.startswith("/") and "/" in library:
            yield f"{file} needs {library} of the host environment, which no run requirement brings"
        elif has_contents or known or all(_NOT_ASKED.match(name) for name in names):
            yield f"{file} needs {base}, which no requirement brings{f'; add {known[0]} to host' if known else ''}"
        else:
            yield f"{file} needs {base}; whether a requirement brings it is unknown: none has files here"


def _may_bring(package: str, stem: str) -> bool:
    """Whether a package has the name of a library, but for what packages add to it.

    >>> _may_bring("cuda-cudart", "cudart"), _may_bring("libboost", "boost_system"), _may_bring("bzip2", "z")
    (True, True, False)
    """
    if stem in _BROUGHT_BY:
        return package in _BROUGHT_BY[stem]
    name = package.removeprefix("lib").lower()
    return min(len(stem), len(name)) >= _SHORTEST and (stem in name or name in stem)
