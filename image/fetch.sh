# Sourced by build.sh and runner/test.sh: pinned packages from the npm registry, checked against image/pins.env.
# shellcheck shell=bash

node_arch() {
  case "$(uname -m)" in
    x86_64) echo x64 ;;
    aarch64 | arm64) echo arm64 ;;
    *) echo "image: no Node package is known for $(uname -m); give BASE=… with Node 22 in it" >&2; return 2 ;;
  esac
}

# fetch_package NAME VERSION SUM FOLDER: unpacks it as FOLDER/package.
fetch_package() {
  local name=$1 version=$2 sum=$3 folder=$4 file found
  command -v npm >/dev/null || { echo "image: npm is needed to fetch $name@$version (Debian: apt-get install npm)" >&2; return 2; }
  mkdir -p "$folder"
  file=$(cd "$folder" && npm pack "$name@$version" --silent | tail -n 1)
  found=$(node -p '"sha512-" + require("crypto").createHash("sha512").update(require("fs").readFileSync(process.argv[1])).digest("base64")' "$folder/$file")
  if [ "$found" != "$sum" ]; then
    echo "image: $name@$version is not what image/pins.env pins: $found" >&2
    return 1
  fi
  tar --extract --gzip --file "$folder/$file" --directory "$folder"
  rm "$folder/$file"
}
