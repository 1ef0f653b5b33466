#!/bin/sh
exec /usr/bin/chromium-headless-shell --no-sandbox "$@"
