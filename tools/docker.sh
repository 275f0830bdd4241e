#!/usr/bin/env bash
# Builds docker/Dockerfile as weir:latest with the container engine of this machine. Without an engine, uses buildah,
# which needs root but no registry, because debootstrap makes the base image. Called by ./dev docker.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '== %s\n' "$*" >&2; }

build_with_engine() {
  say "building with $1"
  "$1" build -f docker/Dockerfile -t weir:latest .
}

# Makes the image localhost/weir-base with a minimal Debian 12, unless it exists.
make_base() {
  buildah images -q localhost/weir-base >/dev/null 2>&1 && return
  say "making a base image with debootstrap"
  local root container
  root=$(mktemp -d)
  # Without DEBIAN_MIRROR, debootstrap uses its own default.
  debootstrap --variant=minbase bookworm "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >/dev/null
  rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/archives/*.deb
  container=$(buildah from scratch)
  buildah add -q "$container" "$root" / >/dev/null
  buildah config --cmd /bin/bash "$container"
  buildah commit -q --rm "$container" localhost/weir-base >/dev/null
  rm -rf "$root"
}

build_with_buildah() {
  [ "$(id -u)" = 0 ] || { echo "dev: without an engine this needs root" >&2; exit 1; }
  ./dev deps docker
  export STORAGE_DRIVER="${STORAGE_DRIVER:-vfs}" BUILDAH_ISOLATION=chroot
  make_base
  say "building with buildah"
  # Uses this machine's apt settings, such as a proxy, in the image as well.
  buildah build --isolation chroot --format docker --network host -v /etc/apt/apt.conf.d:/etc/apt/apt.conf.d:ro \
    --build-arg BASE=localhost/weir-base -f docker/Dockerfile -t weir:latest .
  check_image
}

# Checks that the image's binary answers and that its user is not root.
check_image() {
  local container
  container=$(buildah from weir:latest)
  buildah run "$container" -- weir version
  buildah run "$container" -- weir check --config /etc/weir/weir.toml
  [ "$(buildah run "$container" -- id -u)" = 10001 ] || { echo "dev: the image runs as root" >&2; exit 1; }
  buildah rm "$container" >/dev/null
  buildah images weir
}

main() {
  local engine
  for engine in docker podman; do
    if command -v "$engine" >/dev/null && "$engine" info >/dev/null 2>&1; then
      build_with_engine "$engine"
      return
    fi
  done
  build_with_buildah
}

main "$@"
