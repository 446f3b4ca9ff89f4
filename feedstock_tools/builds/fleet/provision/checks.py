"""What `fleet test` tries on a host: each statement prints what it found, and its status says whether it is right."""

from __future__ import annotations

from dataclasses import dataclass


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
#: Runs a program as the account of builds, with the only variables that its services have, for up to a minute: a driver
#: or an engine that is stuck does not answer.
_AS_USER = """\
cd /
as_user() {
  timeout 60 runuser -u "{{ fleet_user }}" -- env -i "PATH=$PATH" "HOME={{ fleet_root }}" LANG=C.UTF-8 "$@"
}
"""
_HELLO = (
    _AS_USER
    + """\
python=/opt/feedstock-tools/env/bin/python
as_user "$python" -P -c 'import feedstock_tools.builds.fleet.worker'
as_user "$python" -P -c 'import feedstock_tools; print("hello from feedstock-tools", feedstock_tools.__version__)'
"""
)
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
_NUMPY = (
    _AS_USER
    + """\
python=/opt/feedstock-tools/toolchain/bin/python
as_user "$python" -P -c 'import numpy; assert numpy.arange(4).sum() == 6; print(numpy.__version__)'
"""
)
_MODULES = (
    _AS_USER
    + """\
as_user bash -c '
. /opt/feedstock-tools/activate
command -v module >/dev/null || { echo "this host has no LMod"; exit 1; }
module is-loaded {{ fleet_modules }} && echo "{{ fleet_modules }}"'
"""
)
_CONTAINER = (
    _AS_USER
    + """\
engine="{{ fleet_container }}"
found=$(as_user "$engine" info 2>&1) || { tail -n 1 <<<"$found"; exit 1; }
"$engine" --version
"""
)
_GPU = (
    _AS_USER
    + """\
wanted="{{ fleet_gpus }}"
command -v nvidia-smi >/dev/null || { echo "0 of $wanted: no nvidia-smi, which comes with the driver"; exit 1; }
found=$(as_user nvidia-smi -L 2>&1) || { echo "0 of $wanted: ${found//$'\n'/ }"; exit 1; }
count=$(grep -c '^GPU [0-9]' <<<"$found" || true)
echo "$count of $wanted: $(head -n 1 <<<"$found" | cut -d '(' -f 1)"
[ "$count" -ge "$wanted" ]
"""
)
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
    Check("modules", _MODULES, "fleet_modules_on"),
    Check("container", _CONTAINER, "fleet_container_on"),
    Check("gpu", _GPU, "fleet_gpu_on"),
)
