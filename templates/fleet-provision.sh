
usage() {
  echo "usage: ${0##*/} up|down|test   (as root)" >&2
  exit 2
}

# A step of `up` or `down`, and whether it has changed something.
step() { printf '%s\n' "$1"; }
did() {
  changed=$((changed + 1))
  printf '  changed\n'
}
# What statements have printed: `changed` if they have changed something.
count() { [[ $1 != *changed* ]] || did; }

# folder PATH MODE OWNER
folder() {
  [[ -d $1 && $(stat -c '0%a %U:%G' -- "$1") == "$2 $3:$3" ]] && return
  install -d -m "$2" -o "$3" -g "$3" -- "$1"
  did
}

# placed SOURCE PATH MODE OWNER [SERVICE]: a file of these contents; the service is restarted if it has changed
placed() {
  [[ -e $1 ]] || { echo "$1 is missing: it belongs beside this script" >&2; exit 1; }
  if cmp -s -- "$1" "$2" && [[ $(stat -c '0%a %U:%G' -- "$2") == "$3 $4:$4" ]]; then return; fi
  install -m "$3" -o "$4" -g "$4" -- "$1" "$2.part"
  mv -- "$2.part" "$2"
  did
  [[ -z ${5:-} ]] || stale+=" $5 "
}

# text PATH MODE OWNER [SERVICE] <CONTENTS
text() {
  local given
  given=$(mktemp)
  cat >"$given"
  placed "$given" "$@"
  rm -f -- "$given"
}

# sent SOURCE PATH MODE OWNER, the source beside this script
sent() { placed "$here/$1" "${@:2}"; }

# account USER HOME
account() {
  if getent passwd "$1" >/dev/null; then return; fi
  useradd --user-group --no-create-home --home-dir "$2" --shell /bin/bash -- "$1"
  did
}

# service NAME: it starts with the machine, runs now, and from its present unit
service() {
  local before=$changed
  if [[ $stale == *" $1 "* ]]; then
    systemctl daemon-reload
    systemctl restart -- "$1"
  elif ! systemctl -q is-active -- "$1"; then
    systemctl start -- "$1"
    did
  fi
  if ! systemctl -q is-enabled -- "$1"; then
    systemctl -q enable -- "$1"
    [[ $changed != "$before" ]] || did
  fi
}

# The opposites.
gone() {
  [[ -e $1 || -L $1 ]] || return 0
  rm -rf -- "$1"
  did
}
account_gone() {
  getent passwd "$1" >/dev/null || return 0
  # Builds may have processes in sessions of their own.
  for _ in $(seq 50); do
    pkill -KILL -u "$1" || break
    sleep 0.1
  done
  # So may temporary folders: of builds without a service, and of podman.
  find /tmp /var/tmp /dev/shm -xdev -user "$1" -prune -exec rm -rf -- {} +
  userdel -- "$1"
  did
}
service_gone() {
  [[ -d /run/systemd/system && -e /etc/systemd/system/$1.service ]] || return 0
  systemctl -q disable --now -- "$1"
  did
}

# check NAME, after a command of `test` that has printed what it found
report() {
  [[ $1 != 124 ]] || set -- "$1" "$2" "no answer within 60 s"
  if [[ $1 == 0 ]]; then printf 'ok\t%s\t%s\n' "$2" "${3//$'\n'/ }"; else
    printf 'failed\t%s\t%s\n' "$2" "${3//$'\n'/ }"
    failed=$((failed + 1))
  fi
}
