#!/usr/bin/env bash
# Checks that an image keeps the contract of a job image (image/README.md): verify.sh [IMAGE]. A label that claims
# what is not so is the worst fault: the host believes it. Exit 0 all hold, 1 some do not, 2 it could not be checked.
set -uo pipefail
image=${1:-pi-job:latest}
baked=/opt/pi-dispatch
failed=0
passed=0

ok() { passed=$((passed + 1)); echo "ok    $1"; }
bad() { failed=$((failed + 1)); echo "FAIL  $1${2:+: $2}"; }
holds() { # WHAT COMMAND…: the command's words are shown when it fails
  local what=$1 said
  shift
  if said=$("$@" 2>&1); then ok "$what"; else bad "$what" "$(tail -n 3 <<<"$said" | tr '\n' ' ')"; fi
}
label() { docker image inspect --format "{{index .Config.Labels \"dev.pi-dispatch.$1\"}}" "$image"; }
config() { docker image inspect --format "$1" "$image"; }

isolation=(--rm --init --network none --cap-drop ALL --security-opt no-new-privileges --pids-limit 512 --memory 4g)
inside() { docker exec "$shared" sh -ec "$1"; } # as the image's user, in one container for all that only look
afresh() { docker run "${isolation[@]}" --entrypoint sh "$image" -ec "$1"; } # in a container of its own
afresh_as() { docker run "${isolation[@]}" --user "$1" -e HOME=/home/pi --entrypoint sh "$image" -ec "$2"; }

command -v docker >/dev/null || { echo "verify: the docker command is missing" >&2; exit 2; }
docker image inspect "$image" >/dev/null 2>&1 || { echo "verify: there is no image $image here (make image)" >&2; exit 2; }
work=$(mktemp -d)
shared=$(docker run --detach "${isolation[@]}" --entrypoint sh "$image" -c 'sleep 3600') || shared=none
trap 'rm -rf "$work"; docker rm --force "$shared" >/dev/null 2>&1' EXIT
chmod 0755 "$work"

# The user and the home
holds "runs as a user that is not root" inside 'test "$(id -u)" -ne 0'
holds "the configured user is uid 1001" test "$(config '{{.Config.User}}')" = 1001:1001
holds "HOME is left to the host" test -z "$(config '{{range .Config.Env}}{{println .}}{{end}}' | grep '^HOME=')"
holds "the home of pi can be written" afresh 'test "$(stat -c %a /home/pi /home/pi/.pi /home/pi/.pi/agent | sort -u)" = 777; touch /home/pi/.pi/agent/x'

# What the agent may not change
holds "the guardrails are there, with their sentinel" inside "grep -q pi-dispatch-guardrails: $baked/HARD_RULES.md; test -s $baked/OUTBOX_PROTOCOL.md"
holds "everything under $baked is root's and nobody else can write it" inside "test -z \"\$(find $baked ! -user root -o ! -type l -perm /022 | head -n 1)\""
holds "the job user cannot change the guardrails" afresh "! { echo x >> $baked/HARD_RULES.md; } 2>/dev/null; ! rm -f $baked/HARD_RULES.md 2>/dev/null"

# Tools
for tool in bash git jq; do holds "$tool is there" inside "$tool --version"; done
holds "Node is 22.19 or newer" inside 'node -e "const [a, b] = process.versions.node.split(\".\"); process.exit(a > 22 || (a == 22 && b >= 19) ? 0 : 1)"'
holds "git works for a user without a passwd entry" afresh_as 54321:54321 'cd "$(mktemp -d)"; git init -q .; git commit -q --allow-empty -m x'

# The entrypoint: its exit protocol, on jobs that are refused before any model is asked
exit_of() { # USER ENVIRONMENT…: prints "<code> <reason of the exit line>"
  local user=$1 output code
  shift
  output=$(docker run "${isolation[@]}" ${user:+--user "$user" -e HOME=/home/pi} "$@" "$image" 2>/dev/null)
  code=$?
  echo "$code $(sed -n 's/^{"event":"exit",[^{]*"reason":"\([a-z-]*\)".*/\1/p' <<<"$output" | tail -n 1)"
}
mkdir "$work/job" "$work/workspace" "$work/global"
echo "Nothing." >"$work/job/prompt.md"
cat >"$work/global/models.json" <<'JSON'
{"providers": {"nobody": {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": "m"}]}}}
JSON
chmod -R a+rX "$work"
job=(-v "$work/job:/job:ro" -v "$work/workspace:/workspace" -v "$work/global:/opt/pi-global:ro"
  -e PI_PROVIDER=nobody -e PI_MODEL=m -e PI_MAX_TURNS=1 -e PI_JOB_ID=verify -e PI_OFFLINE=1)
same() { [ "$1" = "$2" ] || { echo "got '$1', expected '$2'"; return 1; }; }
holds "a job without its environment ends with code 2" same "$(exit_of '')" "2 config"
holds "an unknown model ends with code 2" same "$(exit_of '' "${job[@]}" -e PI_MODEL=M)" "2 model-unknown"
holds "a model that cannot be reached ends with code 1" same "$(exit_of '' "${job[@]}" -e PI_RETRY_MAX=0)" "1 provider-error"

# Labels: no claim without its proof
version=$(inside "jq -r .version $baked/runner/node_modules/@earendil-works/pi-coding-agent/package.json" 2>/dev/null)
holds "label pi-version is the version that is in it" same "$(label pi-version)" "$version"
holds "pi-ai has the same version" same "$(inside "jq -r .version $baked/runner/node_modules/@earendil-works/pi-ai/package.json" 2>/dev/null)" "$version"

forges=$(label forges)
if [ -z "$forges" ]; then bad "label forges names what is there, or none" "it is absent, which admits every forge"; fi
for forge in $(tr ',' ' ' <<<"$forges"); do
  case "$forge" in
    none) holds "label forges: none is alone" same "$forges" none ;;
    github) holds "label forges: github has gh" inside 'gh --version' ;;
    gitlab) holds "label forges: gitlab has glab" inside 'glab --version' ;;
    forgejo) holds "label forges: forgejo has the tea of Gitea" inside 'tea --version 2>&1 | grep -qi -e gitea -e "tea version"; tea logins --help >/dev/null' ;;
    azure) holds "label forges: azure has az" inside 'az --version' ;;
    *) bad "label forges: $forge is a forge" ;;
  esac
done

for capability in $(label capabilities | tr ',' ' '); do
  case "$capability" in
    commands) holds "capability commands: an unregistered command is refused" same "$(exit_of '' "${job[@]}" -e PI_COMMAND=nobody)" "2 command-unregistered" ;;
    anyUid) holds "capability anyUid: a job of a foreign user gets as far as its own" same "$(exit_of 54321:54321 "${job[@]}" -e PI_MODEL=M)" "2 model-unknown" ;;
    replicas) holds "capability replicas: the guardrails bind a push to the prompt's branch" inside "grep -q 'only to the branch that the prompt names' $baked/HARD_RULES.md" ;;
    *) bad "capability $capability is known" ;;
  esac
done

# A browser, where one is claimed
browser=$(label browser)
if [ -n "$browser" ]; then
  holds "label browser: $browser takes a picture without privileges" afresh "cd /tmp; echo '<h1>x</h1>' > x.html; $browser --screenshot=/tmp/x.png file:///tmp/x.html 2>&1; test -s /tmp/x.png"
  holds "label browser: there are fonts" inside 'fc-list | grep -q .'
fi

echo "verify: $image: $passed hold, $failed do not"
[ "$failed" -eq 0 ]
