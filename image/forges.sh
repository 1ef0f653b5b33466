#!/bin/sh
# Installs the command-line clients of the forges in $1 (comma-separated, or "none"): what the image's label claims.
# github: Debian's package. gitlab, forgejo: a release file by address and SHA-256, which the builder must give.
set -eu

fetch() { # NAME ADDRESS SHA256 FILE
  if [ -z "$2" ] || [ -z "$3" ]; then
    echo "forges: $1 needs --build-arg $1_URL=… and --build-arg $1_SHA256=… (from its release page)" >&2
    exit 2
  fi
  node -e 'fetch(process.argv[1]).then(async (answer) => {
    if (!answer.ok) throw new Error(`${answer.status} ${process.argv[1]}`);
    require("node:fs").writeFileSync(process.argv[2], Buffer.from(await answer.arrayBuffer()));
  })' "$2" "$4"
  echo "$3  $4" | sha256sum --check --quiet
}

for forge in $(echo "$1" | tr ',' ' '); do
  case "$forge" in
    none) ;;
    github)
      apt-get update
      apt-get install -y --no-install-recommends gh
      apt-get clean
      rm -rf /var/lib/apt/lists/*
      ;;
    gitlab)
      fetch GLAB "${GLAB_URL:-}" "${GLAB_SHA256:-}" /tmp/glab.tar.gz
      tar --extract --gzip --file /tmp/glab.tar.gz --directory /usr/local bin/glab
      rm /tmp/glab.tar.gz
      ;;
    forgejo) # Debian's package "tea" is a text editor
      fetch TEA "${TEA_URL:-}" "${TEA_SHA256:-}" /usr/local/bin/tea
      chmod 0755 /usr/local/bin/tea
      ;;
    *)
      echo "forges: $forge is not one of github, gitlab, forgejo, none" >&2
      exit 2
      ;;
  esac
done
