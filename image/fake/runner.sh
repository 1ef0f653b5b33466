#!/bin/sh
# The fake runner: keeps the contract of a job container (see README.md here) without pi, told what to do by
# files in /workspace/.fake. Needs busybox only.
orders=/workspace/.fake
reason=stop

order() { # NAME DEFAULT: the first line of an order, or the default
  line=
  if [ -f "$orders/$1" ]; then read -r line <"$orders/$1"; fi
  printf '%s' "${line:-$2}"
}

given() { [ -e "$orders/$1" ]; }

journal() { # WORD: who began or ended, and at which hundredth of a second since the machine's start
  if given journal; then
    read -r now _ </proc/uptime
    printf '%s %s %s\n' "$1" "$PI_JOB_ID" "$now" >>"$orders/journal"
  fi
}

finish() { # CODE REASON: the last line of output, then the end
  trap '' TERM
  journal end
  if given exit-line; then
    printf '\n%s\n' "$(cat "$orders/exit-line")"
  else
    printf '\n{"event":"exit","jobId":"%s","code":%s,"reason":"%s","turns":2,"tokens":{"input":100,"output":20,"total":120,"cost":0.0012}}\n' \
      "$PI_JOB_ID" "$1" "$2"
  fi
  exit "$1"
}

wait_for() { # SECONDS: a signal interrupts `wait`, not `sleep`
  sleep "$1" &
  wait $!
}

if given ignore-term; then trap '' TERM; else trap 'finish 2 aborted' TERM; fi

if [ ! -r /job/prompt.md ] || [ ! -w /workspace ]; then
  finish 2 config
fi

printf '\n{"event":"runner_start","jobId":"%s"}\n' "$PI_JOB_ID"
journal begin

if given env-dump; then env >"$orders/env-dump"; fi
if given write; then cp -R "$orders/write/." /workspace/; fi
if given outbox && [ -d /outbox ]; then cp -R "$orders/outbox/." /outbox/; fi
if given command; then sh -c "$(cat "$orders/command")" >"$orders/command.out" 2>&1; fi
if given output-bytes; then yes "a line of the fake runner" | head -c "$(order output-bytes 0)"; fi
if given line-bytes; then head -c "$(order line-bytes 0)" /dev/zero | tr '\0' x; fi
if given fork; then setsid sleep "$(order fork 600)" & fi

delay=$(order delay 0)
left=$((${PI_JOB_DEADLINE:-9999999999} - $(date +%s)))
if [ "${delay%%.*}" -ge "$left" ]; then
  if [ "$left" -gt 0 ]; then wait_for "$left"; fi
  finish 2 deadline
fi
wait_for "$delay"

# In its own place, so that the kernel kills the runner and not a child of it.
if given fill-memory; then exec tail /dev/zero; fi

finish "$(order exit-code 0)" "$reason"
