"""The statements of bash in steps that no module of Ansible covers. They say `changed` if they have changed something.

Each ends with status 0, or with a message on stderr. None may contain an opening bracket of Jinja's, except for values.
"""

from __future__ import annotations

#: The first statements. A host's umask may hide from the account what root makes. One command at a time works on a
#: host. What an interrupted `up` has started there goes on, as nothing tells it that its client is gone, and holds the
#: lock to its end.
LOCK = """\
set -euo pipefail
umask 022
exec 9>/run/lock/feedstock-tools-fleet
flock -w 900 9 || { echo "another command has been at work on this host for 15 minutes" >&2; exit 1; }
"""

REFUSE = """\
fleet="{{ fleet_name }}" root="{{ fleet_root }}" user="{{ fleet_user }}" supervisor="{{ fleet_supervisor }}"
python="{{ fleet_python }}" machine="{{ fleet_machine }}" notes=/var/lib/feedstock-tools-fleet
refuse() { echo "$1" >&2; exit 1; }
command -v python3 >/dev/null || refuse "this host has no python3"
found=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$found" = "$python" ] || refuse "this host has Python $found, the wheels are for $python: set fleet_python: '$found'"
found=$(uname -m)
[ "$found" = "$machine" ] || refuse "this host is $found, the wheels are for $machine: set fleet_machine: $found"
if [ "$supervisor" = systemd ] && [ ! -d /run/systemd/system ]; then
  refuse "systemd does not run on this host: set fleet_supervisor: shell for a loop that no reboot starts again"
fi
if [ -s "$notes/fleet" ]; then
  found=$(cat "$notes/fleet")
  [ "$found" = "$fleet" ] || refuse "this host belongs to the fleet $found: run \\`fleet down\\` for that one first"
else
  for path in /opt/feedstock-tools /etc/feedstock-tools "$root"; do
    [ ! -e "$path" ] || refuse "$path is there already, and no fleet made it: remove it, or set fleet_root to another"
  done
  ! getent passwd "$user" >/dev/null || refuse "there is a user $user already: set fleet_user to another name"
fi
"""

#: `pip` runs from its wheel, so that the distribution's package `python3-venv` is not needed. Compiled files hold
#: hashes and no times, so that two hosts are the same.
_VENV = """\
[ "$(cat "$env/made-from" 2>/dev/null || true)" != "$made_from" ] || exit 0
rm -rf -- "$env"
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
tar -xf /opt/feedstock-tools/wheelhouse.tar -C "$scratch"
python3 -m venv --without-pip -- "$env"
pip=("$scratch"/pip-*.whl)
"$env/bin/python" "${pip[0]}/pip" install -q --no-index --no-compile --no-cache-dir --disable-pip-version-check \\
  --root-user-action=ignore --find-links "$scratch" -r "$scratch/$wanted" >&2
"$env/bin/python" -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/tests?/' "$env/lib" >&2
printf '%s' "$made_from" >"$env/made-from"
echo changed
"""
ENVIRONMENT = (
    """\
env=/opt/feedstock-tools/env made_from="{{ fleet_wheels_digest }}" wanted=host.txt
"""
    + _VENV
)
TOOLCHAIN_ENVIRONMENT = (
    """\
env=/opt/feedstock-tools/toolchain made_from="{{ fleet_wheels_digest }}" wanted=toolchain.txt
"""
    + _VENV
)

#: A source of packages on the host, for a host that reaches none.
UNPACKED_DEBS = """\
debs=/opt/feedstock-tools/debs made_from="{{ fleet_debs_digest }}"
[ "$(cat "$debs/made-from" 2>/dev/null || true)" != "$made_from" ] || exit 0
rm -rf -- "$debs"
mkdir -p -- "$debs/lists/partial" "$debs/cache/archives/partial"
tar -xf /opt/feedstock-tools/debs.tar -C "$debs"
cd "$debs"
for deb in *.deb; do
  dpkg-deb -f "$deb"
  sum=$(sha256sum "$deb" | cut -c 1-64)
  printf 'Filename: ./%s\\nSize: %s\\nSHA256: %s\\n\\n' "$deb" "$(stat -c %s "$deb")" "$sum"
done >Packages
echo "deb [trusted=yes] file:$debs ./" >sources.list
cat >apt.conf <<END
Dir::Etc::SourceList "$debs/sources.list";
Dir::Etc::SourceParts "-";
Dir::State::Lists "$debs/lists";
Dir::Cache "$debs/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Sandbox::User "root";
END
APT_CONFIG="$debs/apt.conf" apt-get -q update >&2
printf '%s' "$made_from" >made-from
echo changed
"""

#: What engines leave when their packages are removed. The engine of a machine that has one is not ours to note.
LEFT_BY_ENGINE = """\
engine="{{ fleet_container }}"
note="/var/lib/feedstock-tools-fleet/left-by-$engine"
if [ -e "$note" ] || command -v "$engine" >/dev/null; then exit 0; fi
if [ "$engine" = docker ]; then
  paths=(/etc/docker /var/lib/docker /etc/containerd /var/lib/containerd /opt/containerd /etc/cni)
else
  paths=(/etc/containers /var/lib/containers /etc/cni)
fi
for path in "${paths[@]}"; do
  [ -e "$path" ] || echo "$path"
done >"$note.part"
[ "$engine" != docker ] || getent group docker >/dev/null || echo docker >>"$note.part"
mv -- "$note.part" "$note"
echo changed
"""
WITHOUT_LEFT_BY_ENGINE = """\
for note in /var/lib/feedstock-tools-fleet/left-by-*; do
  [ -e "$note" ] || continue
  while read -r left; do
    case $left in
      /*) rm -rf -- "$left" ;;
      *) ! getent group "$left" >/dev/null || groupdel -- "$left" ;;
    esac
  done <"$note"
  rm -- "$note"
  echo changed
done
"""

#: Distributions and Docker itself name the packages of docker differently, and one excludes the other.
ENGINE_IS_THERE = """\
notes=/var/lib/feedstock-tools-fleet
engine="{{ fleet_container }}"
if command -v "$engine" >/dev/null; then
  [ "$engine" = podman ] || grep -qsx docker.io "$notes/packages" || exit 0
  command -v apt-get >/dev/null || exit 0
fi
"""
PACKAGES = """\
notes=/var/lib/feedstock-tools-fleet names="NAMES"
missing=()
for name in $names; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true)" = installed ] || missing+=("$name")
done
[ -n "${missing[*]:-}" ] || exit 0
command -v apt-get >/dev/null || { echo "this host has no apt-get: switch its packages off" >&2; exit 1; }
quiet=(env DEBIAN_FRONTEND=noninteractive)
apt=("${quiet[@]}" apt-get -q -o DPkg::Lock::Timeout=600)
if [ -e /opt/feedstock-tools/debs/apt.conf ]; then
  apt=("${quiet[@]}" APT_CONFIG=/opt/feedstock-tools/debs/apt.conf apt-get -q -o DPkg::Lock::Timeout=600)
else
  # A machine that has just started may be at this by itself.
  "${apt[@]}" update >&2 || { sleep 30; "${apt[@]}" update >&2; }
fi
"${quiet[@]}" dpkg --configure -a >&2  # where it lost its power in the middle
# What comes new is noted before it comes; what the host has and only becomes newer stays.
{
  cat "$notes/packages" 2>/dev/null || true
  "${apt[@]}" -s install --no-install-recommends --no-remove "${missing[@]}" | sed -n 's/^Inst \\([^ ]*\\) (.*/\\1/p'
} >"$notes/packages.part"
mv -- "$notes/packages.part" "$notes/packages"  # whole or not at all, where the disk is full
# A connection that breaks must not end it in the middle, as its next line of output would.
trap '' HUP
"${apt[@]}" -y install --no-install-recommends --no-remove "${missing[@]}" >"$notes/apt.log" 2>&1 || {
  tail -n 10 "$notes/apt.log" >&2
  exit 1
}
rm -- "$notes/apt.log"
echo changed
"""
WITHOUT_PACKAGES = """\
notes=/var/lib/feedstock-tools-fleet
[ -s "$notes/packages" ] || exit 0
mapfile -t names < <(sort -u "$notes/packages")
# The package manager needs some space, also on a full disk. What is here goes in any case.
rm -rf -- /opt/feedstock-tools/{wheelhouse.tar,debs.tar,debs,env,toolchain}
purge=(env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 dpkg --purge --force-remove-reinstreq)
for attempt in $(seq 60); do
  if said=$("${purge[@]}" "${names[@]}" 2>&1); then break; fi
  [[ $said == *"locked by another process"* && $attempt != 60 ]] || { echo "$said" >&2; exit 1; }
  sleep 10
done
# What was never unpacked, as on a full disk, dpkg remembers as purged, and has no command to forget it.
python3 - "${names[@]}" <<END
import fcntl, os, re, sys
status = "/var/lib/dpkg/status"
with open("/var/lib/dpkg/lock", "a") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    with open(status, encoding="utf-8", errors="surrogateescape") as stream:
        entries = stream.read().split("\\n\\n")
    found = [re.match("Package: (.+)\\nStatus: purge ok not-installed\\n", f"{entry}\\n") for entry in entries]
    kept = [entry for entry, match in zip(entries, found) if match is None or match[1] not in sys.argv]
    if len(kept) < len(entries):
        with open(f"{status}-new", "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write("\\n\\n".join(kept))
        os.replace(f"{status}-new", status)
END
rm -rf -- "$notes/packages" /var/lib/dpkg/tmp.ci  # of a dpkg that lost its power
echo changed
"""

#: Containers without root need ranges of user numbers; useradd gives them to users on most distributions.
SUBORDINATE_IDS = """\
user="{{ fleet_user }}"
if command -v docker >/dev/null && getent group docker >/dev/null && ! id -nG "$user" | grep -qw docker; then
  usermod -aG docker -- "$user"
  echo changed
fi
if command -v podman >/dev/null && ! grep -q "^$user:" /etc/subuid; then
  usermod --add-subuids 1000000-1065535 --add-subgids 1000000-1065535 -- "$user"
  echo changed
fi
"""

#: The loop is a group of processes of its own; the note of it says what it was started from.
SUPERVISED = """\
loop=/opt/feedstock-tools/SERVICE state=/run/SERVICE user="{{ fleet_user }}" root="{{ fleet_root }}"
made_from=$(sha256sum "$loop" | cut -c 1-64)
read -r pid before <"$state" 2>/dev/null || { pid="" before=""; }
if [ -n "$pid" ] && kill -0 -- "-$pid" 2>/dev/null; then
  [ "$before" != "$made_from" ] || exit 0
  kill -TERM -- "-$pid"
  for _ in $(seq 100); do kill -0 -- "-$pid" 2>/dev/null || break; sleep 0.1; done
  kill -KILL -- "-$pid" 2>/dev/null || true
fi
cd /
setsid runuser -u "$user" -- "$loop" </dev/null >>/var/log/SERVICE.log 2>&1 9>&- &
echo "$! $made_from" >"$state"
echo changed
"""
UNSUPERVISED = """\
state=/run/SERVICE
[ -e "$state" ] || exit 0
read -r pid _ <"$state" || pid=""
[ -z "$pid" ] || kill -KILL -- "-$pid" 2>/dev/null || true
rm -f -- "$state" /var/log/SERVICE.log
echo changed
"""
