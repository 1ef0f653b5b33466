#!/bin/sh
# The scripted agent: keeps the contract of a job's runner (exit codes, log lines, exit line) without any model.
# It does one small, visible thing that follows from the task, and the same thing each time:
#   - the first file that the task names (README.md, docs/notes.txt, …), else NOTES.md, gets a paragraph;
#   - the paragraph is what the task puts in double quotes, else the task's first line;
#   - "Take 20 minutes" in the task has it take its time, a turn a minute, so that a running job can be looked at.
# POSIX sh and the tools of busybox; no git, no network. Folders: those of a container, or PI_DISPATCH_*.
set -u
LC_ALL=C
export LC_ALL

job=${PI_DISPATCH_JOB:-/job}
workspace=${PI_DISPATCH_WORKSPACE:-/workspace}
id=$(printf '%s' "${PI_JOB_ID:-}" | tr -cd 'A-Za-z0-9._-')
turns=0
resting=
earlier=

# say EVENT [MORE]: one JSON object, a newline on both sides. MORE is this script's own, never taken from input.
say() { printf '\n{"event":"%s","jobId":"%s"%s}\n' "$1" "$id" "${2:-}"; }

finish() {
  trap '' TERM INT
  # By $!, set as soon as the child is there; KILL, since one that has just been forked may swallow a TERM.
  [ -z "$resting" ] || [ "${!:-}" = "$earlier" ] || { kill -KILL "$!" && wait "$!"; } 2>/dev/null
  say exit ",\"code\":$1,\"reason\":\"$2\",\"turns\":$turns,\"tokens\":{\"input\":0,\"output\":0,\"total\":0,\"cost\":0}"
  exit "$1"
}
trap 'finish 2 aborted' TERM INT

# breathe SECONDS: a foreground sleep would hold the trap back until it is over.
breathe() {
  earlier=${!:-}
  resting=1
  sleep "$1" >/dev/null 2>&1 &
  wait "$!"
  resting=
}

deadline=$(printf '%s' "${PI_JOB_DEADLINE:-}" | tr -cd 0-9)
heed_deadline() {
  if [ -n "$deadline" ] && [ "$(date +%s)" -ge "$deadline" ]; then finish 2 deadline; fi
}
heed_deadline
[ -r "$job/prompt.md" ] || finish 2 job-input-missing
[ -w "$workspace" ] || finish 2 workspace-not-writable
cd "$workspace" || finish 2 workspace-not-writable

say started
turns=1
say turn ',"turn":1'
say tool ',"tool":"read"'
breathe 1

# The task is what follows the host's own lines; those end at the first empty line.
if head -n 2 "$job/prompt.md" | grep -q 'is in /job/event\.json\.$'; then
  task=$(sed '1,/^$/d' "$job/prompt.md")
else
  task=$(cat "$job/prompt.md")
fi
first=$(printf '%s\n' "$task" | sed -n '/[^[:space:]]/{s/^[[:space:]]*//;s/[[:space:]]*$//;p;q;}')
quoted=$(printf '%s\n' "$task" | sed -n 's/^[^"]*"\([^"][^"]*\)".*/\1/p' | head -n 1)
folder=$(sed -n 's/.*"folder":"\([A-Za-z0-9._-]*\)".*/\1/p' "$job/event.json" 2>/dev/null | head -n 1)
commit=$(sed -n 's/.*"sha":"\([0-9a-f]\{7\}\)[0-9a-f]*".*/\1/p' "$job/event.json" 2>/dev/null | head -n 1)

# usable PATH: relative, no way up or into .git, no link on the way, a plain file if it is there at all.
usable() {
  case /$1/ in */../* | */./* | *//* | */.git/*) return 1 ;; esac
  part=
  rest=$1
  while [ -n "$rest" ]; do
    part=$part${rest%%/*}
    [ ! -L "$part" ] || return 1
    case $rest in
      */*) rest=${rest#*/} part=$part/ ; [ ! -e "$part" ] || [ -d "$part" ] || return 1 ;;
      *) rest= ;;
    esac
  done
  [ ! -e "$1" ] || [ -f "$1" ]
}

# Words of the task that look like a text file, one a line, without the full stop of a sentence.
named() {
  printf '%s\n' "$task" | tr -c 'A-Za-z0-9._/-' '\n' | sed 's/\.*$//' |
    grep -E '^[A-Za-z0-9_][A-Za-z0-9._/-]*\.(md|txt|rst|py|js|ts|json|toml|ya?ml|sh|html|css|c|h|go|rs|rb|java)$' |
    head -n 20
}
target=
for word in $(named); do
  if usable "$word"; then target=$word; break; fi
done
target=${target:-NOTES.md}
usable "$target" || finish 2 workspace-not-writable

minutes=$(printf '%s\n' "$task" | sed -n 's/^.*[Tt]ake \([1-9][0-9]\{0,2\}\) minutes.*$/\1/p' | head -n 1)
minutes=${minutes:-0}
while [ "$minutes" -gt 0 ]; do
  breathe 60
  heed_deadline
  turns=$((turns + 1)) minutes=$((minutes - 1))
  say turn ",\"turn\":$turns"
done

turns=$((turns + 1))
say turn ",\"turn\":$turns"
say tool ',"tool":"edit"'
case $target in */*) mkdir -p "${target%/*}" || finish 2 workspace-not-writable ;; esac
{
  # A paragraph of its own, below what is there.
  if [ -s "$target" ]; then
    [ -z "$(tail -c 1 "$target")" ] || echo
    echo
  fi
  printf '%s\n' "${quoted:-${first:-Nothing was asked.}}"
  if [ -z "$quoted" ]; then
    printf '\n%s\n' "(Noted by the scripted agent of pi-dispatch${folder:+ in $folder}${commit:+ at $commit}; no model was asked.)"
  fi
} >>"$target" || finish 2 workspace-not-writable

say edited ',"files":1'
finish 0 completed
