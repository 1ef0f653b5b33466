/** What must stand in the file system before the job may cost anything; each breach is a Refusal. */
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Refusal } from "./refusal.mjs";

/** pi keeps its files in `agentDir` and dies in odd ways when it cannot: a foreign user needs HOME. */
export function checkHome(agentDir) {
  const probe = join(agentDir, `.probe-${process.pid}`);
  try {
    mkdirSync(agentDir, { recursive: true });
    writeFileSync(probe, "");
    rmSync(probe);
  } catch (error) {
    throw new Refusal(
      "home-unwritable",
      `the home directory of user ${process.getuid?.()} cannot be written (${code(error)}): pass HOME=/home/pi with the user`,
    );
  }
}

/** The mounts of the job: readable, and those that an armed feature needs present. */
export function checkMounts(settings, places) {
  for (const place of [places.job, places.workspace]) checkReadable(place);
  if (existsSync(places.overlay)) checkReadable(places.overlay);
  for (const path of settings.packages) {
    if (!isDirectory(path)) throw new Refusal("config", `PI_PACKAGES names ${path}, which is no directory here`);
  }
  if (settings.sessionFile !== undefined) checkSession(settings.sessionFile);
}

/** The prompt of the job: the host's bytes, or the command. Never expanded, never trimmed. */
export function readPrompt(settings, places) {
  if (settings.command !== undefined) return `/${settings.command}`;
  const path = join(places.job, "prompt.md");
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new Refusal("config", `the prompt ${path} cannot be read (${code(error)})`);
  }
  if (text.trim() === "") throw new Refusal("config", `the prompt ${path} is empty`);
  return text;
}

function checkReadable(place) {
  try {
    accessSync(place, constants.R_OK | constants.X_OK);
  } catch (error) {
    throw new Refusal("mount-unreadable", `${place} cannot be read by user ${process.getuid?.()} (${code(error)})`);
  }
}

function checkSession(file) {
  try {
    accessSync(dirname(file), constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Refusal("config", `PI_SESSION_FILE is set, but ${dirname(file)} is not mounted writable (${code(error)})`);
  }
  if (existsSync(file) && !statSync(file).isFile()) {
    throw new Refusal("config", `PI_SESSION_FILE ${file} is not a regular file`);
  }
}

function isDirectory(path) {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function code(error) {
  return error?.code ?? String(error);
}
