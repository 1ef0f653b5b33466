#!/bin/sh
# exec: SIGTERM reaches the runner itself, and its exit code is the container's.
exec node /opt/pi-dispatch/runner/src/main.mjs
