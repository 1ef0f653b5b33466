# The job image with a headless browser and fonts: 0.5 GB more, so it is an image of its own.
ARG BASE=pi-job:latest
FROM ${BASE}
USER 0:0
RUN apt-get update \
 && apt-get install -y --no-install-recommends chromium-headless-shell fontconfig fonts-liberation fonts-noto-color-emoji \
 && apt-get clean && rm -rf /var/lib/apt/lists/*
# Before /usr/bin in PATH: under cap_drop=ALL there is no sandbox to be had, and without the flag it refuses to start.
COPY browser.sh /usr/local/bin/chromium-headless-shell
RUN chmod 0755 /usr/local/bin/chromium-headless-shell
LABEL dev.pi-dispatch.browser="chromium-headless-shell"
USER 1001:1001
