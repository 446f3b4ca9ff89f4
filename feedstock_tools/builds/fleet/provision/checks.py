"""What `fleet test` tries on a host: each statement prints what it found, and its status says whether it is right."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CHECKS", "Check"]


@dataclass(frozen=True, slots=True)
class Check:
    """A check: a word for it, statements of bash, and the switch under which it is made."""

    name: str
    statements: str
    when: str = ""


_SCRATCH = """\
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
cd "$scratch"
"""
_HELLO = """\
cd /
python=/opt/feedstock-tools/env/bin/python
"$python" -P -c 'import feedstock_tools.builds.fleet.worker'
echo "hello from feedstock-tools $("$python" -P -c 'import feedstock_tools; print(feedstock_tools.__version__)')"
"""
_SERVICE = """\
if [ -d /run/systemd/system ]; then
  systemctl is-active feedstock-tools-worker
else
  read -r pid _ </run/feedstock-tools-worker
  kill -0 -- "-$pid"
  echo "its loop runs"
fi
"""
_COMPILERS = (
    _SCRATCH
    + """\
cat >hello.c <<END
#include <stdio.h>
int main(void) { return puts("C") < 0; }
END
cat >hello.cpp <<END
#include <iostream>
int main() { std::cout << "C++" << std::endl; }
END
cat >hello.f90 <<END
print '(a)', 'Fortran'
end
END
gcc hello.c -o c
g++ hello.cpp -o cpp
gfortran hello.f90 -o fortran
echo "$(./c) $(./cpp) $(./fortran) by gcc $(gcc -dumpversion)"
"""
)


def _linked(header: str, call: str, library: str) -> str:
    """Statements that compile, link and run a program that calls a library."""
    flags = f"-l{library}"
    if library == "hdf5":
        flags = '-I/usr/include/hdf5/serial "-L/usr/lib/$(gcc -dumpmachine)/hdf5/serial" -lhdf5'
    return _SCRATCH + (
        f"cat >hello.c <<END\n#include <{header}>\nint main(void) {{ {call} }}\nEND\n"
        f'gcc hello.c -o hello {flags} -lm\n./hello\necho "linked"\n'
    )


_BAZEL = """\
wanted="{{ fleet_bazel }}"
found=$(/opt/feedstock-tools/bin/bazel --version)
case "${found#bazel }" in
  "${wanted%.[*]}" | "${wanted%.[*]}".*) echo "$found" ;;
  *) echo "$found, not $wanted"; exit 1 ;;
esac
"""
_NUMPY = """\
cd /
/opt/feedstock-tools/toolchain/bin/python -P -c 'import numpy; print(numpy.__version__, int(numpy.arange(4).sum()))'
"""
_CONTAINER = """\
user="{{ fleet_user }}" engine="{{ fleet_container }}"
cd /
runuser -u "$user" -- "$engine" info >/dev/null
"$engine" --version
"""
_GPU = """\
wanted="{{ fleet_gpus }}"
found=$(nvidia-smi -L | wc -l)
echo "$found of $wanted: $(nvidia-smi -L | head -1 | cut -d '(' -f 1)"
[ "$found" -ge "$wanted" ]
"""
_NORM = "double x[2] = {3, 4}; return cblas_dnrm2(2, x, 1) != 5;"

CHECKS = (
    Check("hello-world", _HELLO),
    Check("service", _SERVICE),
    Check("compilers", _COMPILERS, "fleet_compilers_on"),
    Check("openblas", _linked("cblas.h", _NORM, "openblas"), "fleet_openblas_on"),
    Check("fftw", _linked("fftw3.h", "return fftw_alloc_real(4) == 0;", "fftw3"), "fleet_fftw_on"),
    Check("hdf5", _linked("hdf5.h", "return H5open() < 0;", "hdf5"), "fleet_hdf5_on"),
    Check("bazel", _BAZEL, "fleet_bazel_on"),
    Check("numpy", _NUMPY, "fleet_numpy_on"),
    Check("container", _CONTAINER, "fleet_container_on"),
    Check("gpu", _GPU, "fleet_gpu_on"),
)
