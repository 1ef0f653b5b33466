/** A job on this machine: its folders under one root, the real pi, the stub as its model. */
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const CHILD = fileURLToPath(new URL("./child.mjs", import.meta.url));
const IMAGE = fileURLToPath(new URL("../../", import.meta.url));

export class Job {
  constructor(stubUrl, { api = "openai-completions", models, cost } = {}) {
    this.root = mkdtempSync(join(tmpdir(), "runner-test-"));
    this.url = stubUrl;
    this.key = `stub-key-${this.root.split("-").at(-1)}`;
    for (const name of ["workspace", "job", "home"]) mkdirSync(join(this.root, name));
    this.write("job/prompt.md", "Do the task.");
    this.write("overlay/models.json", JSON.stringify({
      providers: {
        stub: { baseUrl: stubUrl, api, apiKey: this.key, models: models.map((id) => ({ id, contextWindow: 100_000, ...(cost && { cost }) })) },
      },
    }));
  }

  path(name) {
    return join(this.root, name);
  }

  write(name, text, mode) {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), text);
    if (mode !== undefined) chmodSync(this.path(name), mode);
    return this.path(name);
  }

  extension(name, body, tier = "workspace/.pi/extensions") {
    return this.write(`${tier}/${name}`, `export default function (pi) {\n${body}\n}\n`);
  }

  /** Starts it; { child, done: Promise<{ code, signal, events, exit, stdout, stderr }> }. */
  start(model, env = {}, { graceMs } = {}) {
    const places = {
      workspace: this.path("workspace"), job: this.path("job"), outbox: this.path("outbox"), overlay: this.path("overlay"),
      baked: this.baked ?? IMAGE,
    };
    const child = spawn(process.execPath, [CHILD, JSON.stringify({ places, graceMs })], {
      cwd: this.root,
      env: {
        PATH: process.env.PATH, HOME: this.path("home"), PI_PROVIDER: "stub", PI_MODEL: model, PI_MAX_TURNS: "10", PI_JOB_ID: "pi-job-1",
        PI_RETRY_BASE_MS: "1", ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const out = { stdout: "", stderr: "" };
    child.stdout.on("data", (data) => { out.stdout += data; });
    child.stderr.on("data", (data) => { out.stderr += data; });
    const done = new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal, ...out, ...parsed(out.stdout) })));
    return { child, done, out };
  }

  run(model, env, options) {
    return this.start(model, env, options).done;
  }

  remove() {
    rmSync(this.root, { recursive: true, force: true });
  }
}

function parsed(stdout) {
  const events = stdout.split("\n").filter((line) => line.startsWith('{"event":')).map((line) => JSON.parse(line));
  return { events, exit: events.findLast(({ event }) => event === "exit") };
}
