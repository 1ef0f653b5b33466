#!/usr/bin/env bash
# The runner's own tests, with Node >= 22.19: the one of this machine, else a pinned one fetched into image/build/.
# Arguments go to `node --test`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
image=$(dirname "$here")
# shellcheck source=../pins.env
. "$image/pins.env"
# shellcheck source=../fetch.sh
. "$image/fetch.sh"

new_enough() {
  "$1" -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 19) ? 0 : 1)' 2>/dev/null
}

node=$(command -v node || true)
if [ -z "$node" ] || ! new_enough "$node"; then
  arch=$(node_arch)
  folder="$image/build/node-$NODE_VERSION-$arch"
  node="$folder/package/bin/node"
  if [ ! -x "$node" ]; then
    sum=NODE_SUM_$arch
    part=$(mktemp -d "$(mkdir -p "$image/build" && echo "$image/build")/node.XXXXXX")
    fetch_package "node-linux-$arch" "$NODE_VERSION" "${!sum}" "$part"
    rm -rf "$folder"
    mv "$part" "$folder"
  fi
fi

# Installed again only when the lockfile has changed.
stamp="$here/node_modules/.lock-sum"
sum=$(sha256sum <"$here/package-lock.json")
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$sum" ]; then
  (cd "$here" && PATH="$(dirname "$node"):$PATH" npm ci --omit=dev --silent)
  echo "$sum" >"$stamp"
fi

cd "$here"
mkdir -p "$image/build"
full="$image/build/runner-tests.tap"
[ $# -gt 0 ] || set -- test/*.test.mjs
code=0
"$node" --test --test-concurrency=2 --test-timeout=300000 --test-reporter=dot --test-reporter-destination=stdout \
  --test-reporter=tap --test-reporter-destination="$full" "$@" || code=$?
echo
tail -n 8 "$full"
exit "$code"
