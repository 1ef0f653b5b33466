#!/usr/bin/env bash
# Builds the job image. Nothing is fetched from an image registry unless BASE names an image that is not here.
#
#   BASE=IMAGE       a Debian with Node >= 22.19 and npm (release: by digest); else one is made of Debian's packages
#   TAG=NAME         default pi-job:latest
#   FORGES=LIST      github,gitlab,forgejo: command-line clients to install (default none); WITH_FORGE_CLIS=1 = all
#                    three; gitlab needs GLAB_URL and GLAB_SHA256, forgejo TEA_URL and TEA_SHA256
#   BROWSER=1        also builds TAG with "-browser" appended, with a headless Chromium
#   SITE_CA=FILE     certificate authority for the npm registry (default $NODE_EXTRA_CA_CERTS); not in the image
#   DEBIAN_MIRROR=…  for the base
#   REFRESH=1        makes the base again (newer Debian packages), and with it the image
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=pins.env
. "$here/pins.env"
# shellcheck source=fetch.sh
. "$here/fetch.sh"

export DOCKER_BUILDKIT=0 # the classic builder: some engines come without buildx
TAG=${TAG:-pi-job:latest}
[ "${WITH_FORGE_CLIS:-0}" = 1 ] && FORGES=${FORGES:-github,gitlab,forgejo}
FORGES=${FORGES:-none}

say() { echo "image: $*"; }
stop() { echo "image: $*" >&2; exit 2; }
label() { docker image inspect --format "{{index .Config.Labels \"$2\"}}" "$1" 2>/dev/null || true; }
id() { docker image inspect --format '{{.Id}}' "$1" 2>/dev/null || true; }

base_recipe() { # what the base depends on; the clock is not in it: REFRESH=1 is for that
  { cat "$here/pins.env"; declare -f make_base; node_arch; } | sha256sum | cut -c 1-12
}

make_base() { # TAG
  command -v mmdebstrap >/dev/null || stop "no BASE is given and mmdebstrap is missing, which would make one: \
apt-get install mmdebstrap, or BASE=node:22-bookworm-slim@sha256:… make image"
  local tag=$1 arch sum started=$SECONDS
  arch=$(node_arch)
  sum=NODE_SUM_$arch
  work=$(mktemp -d "$here/build/base.XXXXXX")
  say "base $tag: Debian $DEBIAN_SUITE with $DEBIAN_PACKAGES, Node $NODE_VERSION, npm $NPM_VERSION"
  mmdebstrap --quiet --variant=minbase --include="$DEBIAN_PACKAGES" "$DEBIAN_SUITE" "$work/base.tar" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
  fetch_package "node-linux-$arch" "$NODE_VERSION" "${!sum}" "$work/node"
  fetch_package npm "$NPM_VERSION" "$NPM_SUM" "$work/npm"
  mkdir -p "$work/tree/usr/local/bin" "$work/tree/usr/local/lib/node_modules"
  mv "$work/node/package/bin/node" "$work/tree/usr/local/bin/node"
  mv "$work/npm/package" "$work/tree/usr/local/lib/node_modules/npm"
  chmod 0755 "$work/tree/usr/local/bin/node"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/tree/usr/local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$work/tree/usr/local/bin/npx"
  # Only what is new: the engine refuses a tar that names a folder twice.
  tar --append --file "$work/base.tar" --owner=0 --group=0 --sort=name --mtime=@0 --directory "$work/tree" \
    ./usr/local/bin/node ./usr/local/bin/npm ./usr/local/bin/npx ./usr/local/lib/node_modules
  docker import --message "pi-dispatch base" "$work/base.tar" "$tag" >/dev/null
  rm -rf "$work"
  say "base made in $((SECONDS - started)) s"
}

source_hash() { # of everything that goes into the image
  { (cd "$here" && find Dockerfile entry.sh forges.sh HARD_RULES.md OUTBOX_PROTOCOL.md runner/package.json \
      runner/package-lock.json runner/.npmrc runner/src -type f | LC_ALL=C sort | xargs sha256sum)
    echo "$(id "$base") $FORGES ${GLAB_SHA256:-} ${TEA_SHA256:-}"; } | sha256sum | cut -c 1-32
}

build_image() {
  local started=$SECONDS version
  version=$(pi_version)
  say "building $TAG: pi $version on $base"
  docker build --quiet --tag "$TAG" --build-arg "BASE=$base" --build-arg "PI_VERSION=$version" --build-arg "SOURCE=$source" \
    --build-arg "FORGES=$FORGES" --build-arg "GLAB_URL=${GLAB_URL:-}" --build-arg "GLAB_SHA256=${GLAB_SHA256:-}" \
    --build-arg "TEA_URL=${TEA_URL:-}" --build-arg "TEA_SHA256=${TEA_SHA256:-}" "$here" >"$here/build/last.log" 2>&1 \
    || { cat "$here/build/last.log" >&2; stop "the build failed (behind a proxy that opens TLS, give SITE_CA=FILE)"; }
  say "built $TAG in $((SECONDS - started)) s, $(($(docker image inspect --format '{{.Size}}' "$TAG") / 1000000)) MB"
}

pi_version() { # the lockfile's word, so that the label cannot be typed wrong
  sed -n '/"node_modules\/@earendil-works\/pi-coding-agent": {/,/"version"/ s/.*"version": "\(.*\)".*/\1/p' "$here/runner/package-lock.json"
}

command -v docker >/dev/null || stop "the docker command is missing"
docker version --format '{{.Server.Version}}' >/dev/null 2>&1 || stop "no container engine answers"
mkdir -p "$here/build"
exec 9>"$here/build/lock"
flock 9 # two builds at a time would share ca/

work=""
own_ca=""
trap 'rm -rf ${work:+"$work"} ${own_ca:+"$own_ca"}' EXIT

base=${BASE:-}
if [ -z "$base" ]; then
  base="pi-job-base:$DEBIAN_SUITE-$(base_recipe)"
  if [ -n "${REFRESH:-}" ] || [ -z "$(id "$base")" ]; then make_base "$base"; fi
fi

source=$(source_hash)
if [ -n "$(id "$base")" ] && [ "$(label "$TAG" dev.pi-dispatch.source)" = "$source" ]; then
  say "$TAG is up to date"
else
  authority=${SITE_CA:-${NODE_EXTRA_CA_CERTS:-}}
  if [ -n "$authority" ] && [ ! -e "$here/ca/site.crt" ]; then
    own_ca="$here/ca/site.crt"
    cp "$authority" "$own_ca"
    chmod 0644 "$own_ca"
  fi
  build_image
fi

if [ -n "${BROWSER:-}" ]; then
  say "building $TAG-browser"
  docker build --quiet --tag "$TAG-browser" --build-arg "BASE=$TAG" --file "$here/browser.Dockerfile" "$here" >"$here/build/browser.log" 2>&1 \
    || { cat "$here/build/browser.log" >&2; stop "the build of the browser image failed"; }
  say "built $TAG-browser, $(($(docker image inspect --format '{{.Size}}' "$TAG-browser") / 1000000)) MB"
fi
