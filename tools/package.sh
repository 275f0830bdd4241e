#!/usr/bin/env bash
# Builds the .deb into build-package/. With --smoke, installs it (or a named file) on a minimal Debian 12, runs the
# service's command line there, and sends it a request. That needs root and debootstrap. Called by ./dev package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=build-package

say() { printf '== %s\n' "$*" >&2; }
fail() { printf 'dev: %s\n' "$*" >&2; exit 1; }

# Uses the flags with which Debian hardens programs.
build_package() {
  ./dev deps build package
  local flags
  flags=$(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --export=sh)
  (
    eval "$flags"
    CXXFLAGS="${CPPFLAGS:-} ${CXXFLAGS:-}" cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
      -DCMAKE_INSTALL_PREFIX=/usr -DWEIR_TESTS=OFF >"$folder.log" 2>&1
  ) || { cat "$folder.log" >&2; fail "CMake could not configure $folder"; }
  rm -f "$folder.log"
  say "building the package"
  ninja -C "$folder" -j "${JOBS:-$(nproc)}" --quiet >&2
  (cd "$folder" && cpack >cpack.log) || { cat "$folder/cpack.log" >&2; fail "CPack could not make the package"; }
  deb=$(ls "$folder"/weir_*.deb)
  say "made $deb"
}

# in_root COMMAND...: runs a command as root of the minimal system.
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

# Makes a minimal Debian 12, and keeps it as an archive for the next time.
make_root() {
  local base
  base=${XDG_CACHE_HOME:-$HOME/.cache}/weir-bookworm-$(dpkg --print-architecture).tar
  if [ ! -s "$base" ]; then
    say "making a bare Debian 12 with debootstrap"
    mkdir -p "$(dirname "$base")"
    # Without DEBIAN_MIRROR, debootstrap uses its own default.
    debootstrap --variant=minbase bookworm "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$root.log" || { cat "$root.log" >&2; fail "debootstrap failed"; }
    tar -C "$root" -cf "$base.new" .
    mv "$base.new" "$base"
  else
    tar -C "$root" -xf "$base"
  fi
  # Uses this machine's apt settings, such as a proxy, in the minimal system as well.
  cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
}

install_package() {
  say "installing it on a bare Debian 12"
  cp "$deb" "$root/tmp/weir.deb"
  in_root apt-get -qq -o Acquire::Retries=3 update
  in_root apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 install -y --no-install-recommends /tmp/weir.deb >"$root.log" 2>&1 ||
    { cat "$root.log" >&2; fail "the package does not install"; }
}

# Prints status and body of the service's response. Fails if there is none.
ask() {
  python3 -c '
import urllib.error, urllib.request
try:
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://127.0.0.1:8080/", timeout=2)
except urllib.error.HTTPError as answer:
    print(answer.code, answer.read().decode().strip())'
}

# Starts the unit's command as its user, with the environment that systemd would set, and sends requests until
# one gets a response.
run_service() {
  local environment=(STATE_DIRECTORY=/var/lib/weir LOGS_DIRECTORY=/var/log/weir) command
  read -r -a command <<<"$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/weir.service")"
  say "running ${command[*]}"
  chroot --userspec=weir:weir "$root" /usr/bin/env -i "${environment[@]}" "${command[@]}" 2>"$root.log" &
  service=$!
  local answer="" i
  for ((i = 0; i < 100; i++)); do
    answer=$(ask 2>/dev/null) && break
    sleep 0.1
  done
  case $answer in
    "503 weir is installed"*) say "it answers: $answer" ;;
    *) cat "$root.log" >&2; fail "it does not answer as it should: '$answer'" ;;
  esac
  in_root weir health || fail "it is not well"
  kill -TERM "$service"
  wait "$service" || fail "it did not end well"
  service=""
  grep -q '"status":503' "$root/var/log/weir/access.log" || fail "its access log has no line of the request"
  [ -s "$root/var/lib/weir/weir.state" ] || fail "it left no snapshot"
}

check_installed() {
  in_root weir check --config /etc/weir/weir.toml >/dev/null || fail "weir check refuses the file that is shipped"
  [ "$(in_root stat -c '%U:%G %a' /etc/weir /var/lib/weir /var/log/weir | tr '\n' ' ')" = "root:weir 750 weir:weir 700 weir:weir 750 " ] ||
    fail "a folder has the wrong owner or mode"
  grep -q /etc/weir/weir.toml "$root/var/lib/dpkg/info/weir.conffiles" || fail "weir.toml is no conffile"
  [ -L "$root/etc/systemd/system/multi-user.target.wants/weir.service" ] || fail "the service is not enabled"
}

remove_package() {
  in_root dpkg --remove weir >/dev/null
  [ -e "$root/etc/weir/weir.toml" ] || fail "removing took the configuration as well"
  in_root dpkg --purge weir >/dev/null
  if [ -e "$root/var/lib/weir" ] || [ -e "$root/etc/weir" ]; then fail "purging left something behind"; fi
  say "removed, and purged"
}

clean_up() {
  [ -z "$service" ] || kill -KILL "$service" 2>/dev/null || true
  rm -rf "$root" "$root.log"
}

smoke() {
  [ "$(id -u)" = 0 ] || fail "a chroot needs root"
  command -v debootstrap >/dev/null || fail "this needs debootstrap: apt-get install debootstrap"
  root=$(mktemp -d)
  chmod 755 "$root"
  service=""
  trap clean_up EXIT
  make_root
  install_package
  check_installed
  run_service
  remove_package
}

main() {
  case ${1:-} in
    "") build_package ;;
    --smoke)
      if [ -n "${2:-}" ]; then deb=$2; else build_package; fi
      smoke
      ;;
    *) fail "package how? nothing, or --smoke [FILE.deb]" ;;
  esac
}

main "$@"
