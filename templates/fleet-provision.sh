
usage() {
  echo "usage: ${0##*/} up|down|test   (as root)" >&2
  exit 2
}
fail() {
  echo "$1" >&2
  exit 1
}

# A step of `up` or `down`: run NAME COMMAND...; the command prints `changed` if it has changed something.
run() {
  local said
  printf '%s\n' "$1"
  said=$("${@:2}")
  [[ $said != *changed* ]] || { changed=$((changed + 1)); printf '  changed\n'; }
}

# One command at a time works on a host. A host's umask may hide from the account what root makes. What an interrupted
# `up` has started goes on, as nothing tells it that its client is gone, and holds the lock to its end.
alone() {
  umask 022
  exec 9>/run/lock/feedstock-tools-fleet
  flock -w 900 9 || fail "another command has been at work on this host for 15 minutes"
}

# folder PATH MODE OWNER
folder() {
  [[ -d $1 && $(stat -c '0%a %U:%G' -- "$1") == "$2 $3:$3" ]] && return
  install -d -m "$2" -o "$3" -g "$3" -- "$1"
  echo changed
}

# placed SOURCE PATH MODE OWNER: a file of these contents
placed() {
  [[ -e $1 ]] || fail "$1 is missing: it belongs beside this script"
  if cmp -s -- "$1" "$2" && [[ $(stat -c '0%a %U:%G' -- "$2") == "$3 $4:$4" ]]; then return; fi
  install -m "$3" -o "$4" -g "$4" -- "$1" "$2.part"
  mv -- "$2.part" "$2"
  echo changed
}

# sent SOURCE PATH MODE OWNER, the source beside this script
sent() { placed "$here/$1" "${@:2}"; }

# text PATH MODE OWNER <CONTENTS
text() {
  local given
  given=$(mktemp)
  cat >"$given"
  placed "$given" "$@"
  rm -f -- "$given"
}

# A user with a group of the same name, without a password.
account() {
  if getent passwd "$user" >/dev/null; then return; fi
  useradd --user-group --no-create-home --home-dir "$root" --shell /bin/bash -- "$user"
  echo changed
}

# service NAME: it starts with the machine, runs now, and from its present unit, which a note is about
service() {
  local unit
  unit=$(sha256sum <"/etc/systemd/system/$1.service")
  if ! systemctl -q is-enabled -- "$1" 2>/dev/null; then
    systemctl daemon-reload
    systemctl -q enable -- "$1"
    echo changed
  fi
  if [[ $(cat "$notes/$1" 2>/dev/null || true) != "$unit" ]] || ! systemctl -q is-active -- "$1"; then
    systemctl daemon-reload
    systemctl restart -- "$1"
    echo "$unit" >"$notes/$1"
    echo changed
  fi
}

# loop NAME: a group of processes of its own, which no reboot starts again; the note of it says what it was started from
loop() {
  local program=$programs/$1 state=/run/$1 made_from pid before
  made_from=$(sha256sum "$program" | cut -c 1-64)
  read -r pid before <"$state" 2>/dev/null || { pid="" before=""; }
  if [[ -n $pid ]] && kill -0 -- "-$pid" 2>/dev/null; then
    [[ $before != "$made_from" ]] || return 0
    kill -TERM -- "-$pid"
    for _ in $(seq 100); do kill -0 -- "-$pid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL -- "-$pid" 2>/dev/null || true
  fi
  cd /
  setsid runuser -u "$user" -- "$program" </dev/null >>"/var/log/$1.log" 2>&1 9>&- &
  echo "$! $made_from" >"$state"
  echo changed
}

# The opposites.
gone() {
  [[ -e $1 || -L $1 ]] || return 0
  rm -rf -- "$1"
  echo changed
}
account_gone() {
  getent passwd "$user" >/dev/null || return 0
  # Builds may have processes in sessions of their own.
  for _ in $(seq 50); do
    pkill -KILL -u "$user" || break
    sleep 0.1
  done
  # So may temporary folders: of builds without a service, and of podman.
  find /tmp /var/tmp /dev/shm -xdev -user "$user" -prune -exec rm -rf -- {} +
  userdel -- "$user"
  echo changed
}
service_gone() {
  [[ -d /run/systemd/system && -e /etc/systemd/system/$1.service ]] || return 0
  systemctl -q disable --now -- "$1"
  echo changed
}
loop_gone() {
  local pid
  [[ -e /run/$1 ]] || return 0
  read -r pid _ <"/run/$1" || pid=""
  [[ -z $pid ]] || kill -KILL -- "-$pid" 2>/dev/null || true
  rm -f -- "/run/$1" "/var/log/$1.log"
  echo changed
}

# Why this machine cannot be a host: what it has, and its clock, which its certificate needs. Ansible says the time.
suits() {
  local found
  command -v python3 >/dev/null || fail "this host has no python3"
  found=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  [[ $found == "$python" ]] || fail "this host has Python $found, the wheels are for $python: set fleet_python: '$found'"
  found=$(uname -m)
  [[ $found == "$machine" ]] || fail "this host is $found, the wheels are for $machine: set fleet_machine: $found"
  found=$(nproc)
  ((found >= cores)) || fail "this host has $found cores, not $cores: set fleet_cores: $found"
  found=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) * 1024))
  ((found >= memory)) || fail "this host has $((found >> 20))M of memory, not $((memory >> 20))M: set fleet_memory"
  [[ -z ${fleet_now:-} ]] && return
  found=$(($(date +%s) - fleet_now))
  ((found < 120 && found > -120)) ||
    fail "the clock of this host is $(((found < 0 ? 30 - found : 30 + found) / 60)) minutes $(
      ((found < 0)) && echo behind || echo ahead of
    ) that of the client: set it, such as by NTP"
}
is_free() {
  local path found
  if [[ $supervisor == systemd && ! -d /run/systemd/system ]]; then
    fail "systemd does not run on this host: set fleet_supervisor: shell for a loop that no reboot starts again"
  fi
  if [[ -s $notes/fleet ]]; then
    found=$(cat "$notes/fleet")
    [[ $found == "$fleet" ]] || fail "this host belongs to the fleet $found: run \`fleet down\` for that one first"
    return
  fi
  for path in "$programs" "$settings" "$root"; do
    [[ ! -e $path ]] || fail "$path is there already, and no fleet made it: remove it, or set fleet_root to another"
  done
  ! getent passwd "$user" >/dev/null || fail "there is a user $user already: set fleet_user to another name"
}

# environment NAME LIST: `pip` runs from its wheel, so that the distribution's package `python3-venv` is not needed.
# Compiled files hold hashes and no times, so that two hosts are the same.
environment() {
  local env=$programs/$1 scratch pip
  [[ $(cat "$env/made-from" 2>/dev/null || true) != "$wheels" ]] || return 0
  rm -rf -- "$env"
  scratch=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf -- '$scratch'" EXIT
  tar -xf "$programs/wheelhouse.tar" -C "$scratch"
  python3 -m venv --without-pip -- "$env"
  pip=("$scratch"/pip-*.whl)
  "$env/bin/python" "${pip[0]}/pip" install -q --no-index --no-compile --no-cache-dir --disable-pip-version-check \
    --root-user-action=ignore --find-links "$scratch" -r "$scratch/$2" >&2
  "$env/bin/python" -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/tests?/' "$env/lib" >&2
  printf '%s' "$wheels" >"$env/made-from"
  echo changed
}

# A source of packages on the host, for a host that reaches none.
unpacked_debs() {
  local here=$programs/debs deb sum
  [[ $(cat "$here/made-from" 2>/dev/null || true) != "$debs" ]] || return 0
  rm -rf -- "$here"
  mkdir -p -- "$here/lists/partial" "$here/cache/archives/partial"
  tar -xf "$programs/debs.tar" -C "$here"
  cd "$here"
  for deb in *.deb; do
    dpkg-deb -f "$deb"
    sum=$(sha256sum "$deb" | cut -c 1-64)
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$deb")" "$sum"
  done >Packages
  echo "deb [trusted=yes] file:$here ./" >sources.list
  cat >apt.conf <<END
Dir::Etc::SourceList "$here/sources.list";
Dir::Etc::SourceParts "-";
Dir::State::Lists "$here/lists";
Dir::Cache "$here/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Sandbox::User "root";
END
  APT_CONFIG="$here/apt.conf" apt-get -q update >&2
  printf '%s' "$debs" >made-from
  echo changed
}

# What engines leave when their packages are removed. The engine of a machine that has one is not ours to note.
note_what_engines_leave() {
  local note=$notes/left-by-$container path paths
  if [[ -e $note ]] || command -v "$container" >/dev/null; then return 0; fi
  if [[ $container == docker ]]; then
    paths=(/etc/docker /var/lib/docker /etc/containerd /var/lib/containerd /opt/containerd /etc/cni)
  else
    paths=(/etc/containers /var/lib/containers /etc/cni)
  fi
  for path in "${paths[@]}"; do
    [[ -e $path ]] || echo "$path"
  done >"$note.part"
  [[ $container != docker ]] || getent group docker >/dev/null || echo docker >>"$note.part"
  mv -- "$note.part" "$note"
  echo changed
}
without_what_engines_left() {
  local note left
  for note in "$notes"/left-by-*; do
    [[ -e $note ]] || continue
    while read -r left; do
      case $left in
        /*) rm -rf -- "$left" ;;
        *) ! getent group "$left" >/dev/null || groupdel -- "$left" ;;
      esac
    done <"$note"
    rm -- "$note"
    echo changed
  done
}

# Distributions and Docker itself name the packages of docker differently, and one excludes the other.
engine() {
  if command -v "$container" >/dev/null; then
    [[ $container == podman ]] || grep -qsx docker.io "$notes/packages" || return 0
    command -v apt-get >/dev/null || return 0
  fi
  packages "$@"
}
packages() {
  local name missing=() quiet=(env DEBIAN_FRONTEND=noninteractive) apt
  for name; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true) == installed ]] || missing+=("$name")
  done
  [[ -n ${missing[*]:-} ]] || return 0
  command -v apt-get >/dev/null || fail "this host has no apt-get: switch its packages off"
  apt=("${quiet[@]}" apt-get -q -o DPkg::Lock::Timeout=600)
  if [[ -e $programs/debs/apt.conf ]]; then
    apt=("${quiet[@]}" "APT_CONFIG=$programs/debs/apt.conf" apt-get -q -o DPkg::Lock::Timeout=600)
  else
    # A machine that has just started may be at this by itself.
    "${apt[@]}" update >&2 || { sleep 30; "${apt[@]}" update >&2; }
  fi
  "${quiet[@]}" dpkg --configure -a >&2 # where it lost its power in the middle
  # What comes new is noted before it comes; what the host has and only becomes newer stays.
  {
    cat "$notes/packages" 2>/dev/null || true
    "${apt[@]}" -s install --no-install-recommends --no-remove "${missing[@]}" | sed -n 's/^Inst \([^ ]*\) (.*/\1/p'
  } >"$notes/packages.part"
  mv -- "$notes/packages.part" "$notes/packages" # whole or not at all, where the disk is full
  # A connection that breaks must not end it in the middle, as its next line of output would.
  trap '' HUP
  "${apt[@]}" -y install --no-install-recommends --no-remove "${missing[@]}" >"$notes/apt.log" 2>&1 || {
    tail -n 10 "$notes/apt.log" >&2
    exit 1
  }
  rm -- "$notes/apt.log"
  echo changed
}
without_packages() {
  local names purge said attempt
  [[ -s $notes/packages ]] || return 0
  mapfile -t names < <(sort -u "$notes/packages")
  # The package manager needs some space, also on a full disk. What is here goes in any case.
  rm -rf -- "$programs"/{wheelhouse.tar,debs.tar,debs,env,toolchain}
  purge=(env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 dpkg --purge --force-remove-reinstreq)
  for attempt in $(seq 60); do
    if said=$("${purge[@]}" "${names[@]}" 2>&1); then break; fi
    [[ $said == *"locked by another process"* && $attempt != 60 ]] || fail "$said"
    sleep 10
  done
  # What was never unpacked, as on a full disk, dpkg remembers as purged, and has no command to forget it.
  python3 - "${names[@]}" <<END
import fcntl, os, re, sys
status = "/var/lib/dpkg/status"
with open("/var/lib/dpkg/lock", "a") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    with open(status, encoding="utf-8", errors="surrogateescape") as stream:
        entries = stream.read().split("\n\n")
    found = [re.match("Package: (.+)\nStatus: purge ok not-installed\n", f"{entry}\n") for entry in entries]
    kept = [entry for entry, match in zip(entries, found) if match is None or match[1] not in sys.argv]
    if len(kept) < len(entries):
        with open(f"{status}-new", "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write("\n\n".join(kept))
        os.replace(f"{status}-new", status)
END
  rm -rf -- "$notes/packages" /var/lib/dpkg/tmp.ci # of a dpkg that lost its power
  echo changed
}

# Containers without root need ranges of user numbers; useradd gives them to users on most distributions.
may_run_containers() {
  if command -v docker >/dev/null && getent group docker >/dev/null && ! id -nG "$user" | grep -qw docker; then
    usermod -aG docker -- "$user"
    echo changed
  fi
  if command -v podman >/dev/null && ! grep -q "^$user:" /etc/subuid; then
    usermod --add-subuids 1000000-1065535 --add-subgids 1000000-1065535 -- "$user"
    echo changed
  fi
}

# Checks: each prints what it found, and its status says whether it is right.

# Runs a program as the account of builds, with the only variables that its services have, for up to a minute: a driver
# or an engine that is stuck does not answer.
as_user() {
  cd /
  timeout 60 runuser -u "$user" -- env -i "PATH=$PATH" "HOME=$root" LANG=C.UTF-8 "$@"
}
says_hello() {
  as_user "$programs/env/bin/python" -P -c 'import feedstock_tools.builds.fleet.worker'
  as_user "$programs/env/bin/python" -P -c \
    'import feedstock_tools; print("hello from feedstock-tools", feedstock_tools.__version__)'
}
has_room() {
  local free
  free=$(df --output=avail -B1M -- "$root" | tail -n 1)
  echo "$((free))M free in $root"
  ((free >= 1024))
}
is_served() {
  local pid
  if [[ -d /run/systemd/system ]]; then
    systemctl is-active feedstock-tools-worker
  else
    read -r pid _ </run/feedstock-tools-worker
    kill -0 -- "-$pid"
    echo "its loop runs"
  fi
}
compiles() {
  cd "$(mktemp -d)"
  # shellcheck disable=SC2064
  trap "rm -rf -- '$PWD'" EXIT
  printf '#include <stdio.h>\nint main(void) { return puts("C") < 0; }\n' >hello.c
  printf '#include <iostream>\nint main() { std::cout << "C++" << std::endl; }\n' >hello.cpp
  printf "print '(a)', 'Fortran'\nend\n" >hello.f90
  gcc hello.c -o c
  g++ hello.cpp -o cpp
  gfortran hello.f90 -o fortran
  echo "$(./c) $(./cpp) $(./fortran) by gcc $(gcc -dumpversion)"
}
# links HEADER CALL FLAG...: a program that calls a library compiles and runs
links() {
  cd "$(mktemp -d)"
  # shellcheck disable=SC2064
  trap "rm -rf -- '$PWD'" EXIT
  printf '#include <%s>\nint main(void) { %s }\n' "$1" "$2" >hello.c
  gcc hello.c -o hello "${@:3}" -lm
  ./hello
  echo linked
}
links_openblas() { links cblas.h 'double x[2] = {3, 4}; return cblas_dnrm2(2, x, 1) != 5;' -lopenblas; }
links_fftw() { links fftw3.h 'return fftw_alloc_real(4) == 0;' -lfftw3; }
links_hdf5() {
  local libraries
  libraries=/usr/lib/$(gcc -dumpmachine)/hdf5/serial
  links hdf5.h 'return H5open() < 0;' -I/usr/include/hdf5/serial "-L$libraries" -lhdf5
}
has_bazel() {
  local found
  found=$("$programs/bin/bazel" --version)
  case "${found#bazel }" in
    "${bazel%.[*]}" | "${bazel%.[*]}".*) echo "$found" ;;
    *) echo "$found, not $bazel"; exit 1 ;;
  esac
}
has_numpy() {
  as_user "$programs/toolchain/bin/python" -P -c \
    'import numpy; assert numpy.arange(4).sum() == 6; print(numpy.__version__)'
}
has_modules() {
  # shellcheck disable=SC2016
  as_user bash -c '. "$1"; shift
command -v module >/dev/null || { echo "this host has no LMod"; exit 1; }
module is-loaded "$@" && echo "$*"' - "$programs/activate" "${modules[@]}"
}
runs_containers() {
  local found
  found=$(as_user "$container" info 2>&1) || { tail -n 1 <<<"$found"; exit 1; }
  "$container" --version
}
has_gpus() {
  local found count
  command -v nvidia-smi >/dev/null || { echo "0 of $gpus: no nvidia-smi, which comes with the driver"; exit 1; }
  found=$(as_user nvidia-smi -L 2>&1) || { echo "0 of $gpus: ${found//$'\n'/ }"; exit 1; }
  count=$(grep -c '^GPU [0-9]' <<<"$found" || true)
  echo "$count of $gpus: $(head -n 1 <<<"$found" | cut -d '(' -f 1)"
  ((count >= gpus))
}

# check NAME COMMAND: bash would ignore `set -e` in a command before `||`, and so all but its last status.
check() {
  local said status
  said=$(set -e; "$2" 2>&1)
  status=$?
  [[ $status != 124 ]] || said="no answer within 60 s"
  [[ $status == 0 ]] || failed=1
  printf '%s\t%s\t%s\n' "$([[ $status == 0 ]] && echo ok || echo failed)" "$1" "${said//$'\n'/ }"
}

# What `down` asks first: it removes nothing that no fleet, or another one, has made.
is_ours() {
  local found
  rm -rf -- /tmp/.feedstock-tools-ansible /run/feedstock-tools-provision.sh
  if [[ ! -s $notes/fleet ]]; then
    [[ ! -d $notes ]] || { rm -f -- "$notes/fleet.part" && rmdir -- "$notes"; }
    echo "no fleet has made anything here"
    return 1
  fi
  found=$(cat "$notes/fleet")
  [[ $found == "$fleet" ]] || fail "this host belongs to the fleet $found"
}
