/** The closed environment map of a job (read once) as one frozen value. Pure. */
import { Refusal } from "./refusal.mjs";

const WHOLE = /^(?:0|[1-9][0-9]{0,14})$/;
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** Everything the host passes; throws one Refusal that names every problem. */
export function readSettings(env) {
  const problems = [];
  const read = reader(env, problems);
  const settings = {
    provider: read.text("PI_PROVIDER"),
    model: read.text("PI_MODEL"),
    jobId: read.text("PI_JOB_ID"),
    maxTurns: read.whole("PI_MAX_TURNS", { required: true }),
    maxTokens: read.whole("PI_MAX_TOKENS", { least: 1 }),
    retryMax: read.whole("PI_RETRY_MAX", { otherwise: 2, most: 10 }),
    retryBaseMs: read.whole("PI_RETRY_BASE_MS", { otherwise: 2000, most: 600_000 }),
    deadlineMs: read.seconds("PI_JOB_DEADLINE"),
    overlayExtensions: read.toggle("PI_GLOBAL_ALLOW_EXTENSIONS"),
    packages: read.paths("PI_PACKAGES"),
    sessionFile: read.path("PI_SESSION_FILE"),
    command: read.command("PI_COMMAND"),
    flow: env.PI_FLOW?.trim() || undefined,
  };
  if (settings.command !== undefined && settings.flow !== undefined) {
    problems.push("PI_COMMAND and PI_FLOW are both set: a job has one or the other");
  }
  if (problems.length > 0) throw new Refusal("config", problems.join("; "));
  return Object.freeze(settings);
}

function reader(env, problems) {
  const say = (name, what) => void problems.push(`${name} ${what}`);
  const path = (name, value) => {
    if (!value.startsWith("/")) return say(name, `holds a path that is not absolute: ${value}`);
    if (value.split("/").includes("..")) return say(name, `holds a path with "..": ${value}`);
    return value;
  };
  return {
    text(name) {
      const value = env[name];
      if (value === undefined) return say(name, "is missing");
      if (value.trim() !== value || value === "" || CONTROL.test(value)) {
        return say(name, "is blank, padded or holds a control character");
      }
      return value;
    },
    whole(name, { required = false, otherwise, least = 0, most = Number.MAX_SAFE_INTEGER }) {
      const value = env[name];
      if (value === undefined) return required ? say(name, "is missing") : otherwise;
      if (!WHOLE.test(value) || Number(value) < least || Number(value) > most) {
        return say(name, `is ${JSON.stringify(value)}, not a whole number from ${least} to ${most}`);
      }
      return Number(value);
    },
    seconds(name) {
      const value = env[name];
      if (value === undefined) return undefined;
      if (!/^[0-9]{1,12}(?:\.[0-9]{1,9})?$/.test(value)) return say(name, "is not a time in epoch seconds");
      return Number(value) * 1000;
    },
    toggle(name) {
      const value = env[name] ?? "";
      if (!["", "0", "1"].includes(value)) return say(name, `is ${JSON.stringify(value)}, not 0 or 1`);
      return value !== "0";
    },
    path(name) {
      return env[name] === undefined ? undefined : path(name, env[name]);
    },
    paths(name) {
      return (env[name] ?? "").split(":").filter(Boolean).map((value) => path(name, value));
    },
    command(name) {
      const value = env[name];
      if (value === undefined) return undefined;
      if (value === "" || value.startsWith("/") || value.trim() !== value || CONTROL.test(value)) {
        return say(name, "has a leading slash, surrounding space or a control character, or is empty");
      }
      return value;
    },
  };
}
