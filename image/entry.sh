#!/bin/sh
# exec: SIGTERM reaches the runner itself, and its exit code is the container's.
cd /workspace || exit 2
exec node /opt/pi-dispatch/runner/src/main.mjs
