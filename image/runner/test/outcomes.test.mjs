/** How runs of the real pi end: code, reason, and how often the model was asked. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { bash, runs } from "./fixture.mjs";

const job = runs({
  hello: [{ say: "hello" }],
  writes: [{ calls: [{ name: "write", arguments: { path: "made.txt", content: "by pi\n" } }] }, { say: "done" }],
  forever: [bash("echo turn >> turns.txt")],
  "fails-once": [{ status: 500 }, { say: "recovered" }],
  "fails-after-tool": [bash("true"), { status: 500 }, { status: 500 }, { say: "recovered" }],
  "fails-always": [{ status: 500 }],
  busy: [{ status: 429, headers: { "retry-after": "0" } }],
  unauthorised: [{ status: 401 }],
  forbidden: [{ status: 403 }],
  "bad-request": [{ status: 400 }],
  cut: [{ say: "half a", finish: "length" }],
  filtered: [{ say: "", finish: "content_filter" }],
  cached: [{ say: "x", usage: { prompt: 100, cached: 60, completion: 20, reasoning: 5 } }],
  mute: [{ say: "x", usage: null }],
  leaks: [{ say: "the key is KEY-0123456789" }],
});

describe("the end of a run", { concurrency: 3 }, () => {
  for (const [model, code, reason, requests, options = {}] of [
    ["hello", 0, "completed", 1],
    ["fails-once", 0, "completed", 2],
    ["fails-always", 1, "provider-error", 3],
    ["busy", 1, "provider-error", 3],
    ["unauthorised", 2, "provider-auth-refused", 1],
    ["forbidden", 2, "provider-auth-refused", 1],
    ["unauthorised", 2, "provider-auth-refused", 0, { api: "anthropic-messages" }],
    ["unauthorised", 2, "provider-auth-refused", 0, { api: "openai-responses" }],
    ["unauthorised", 2, "provider-auth-refused", 0, { api: "mistral-conversations" }],
    ["bad-request", 1, "provider-error", 1],
    ["cut", 0, "truncated", 1],
    ["filtered", 1, "provider-error", 1],
    ["hello", 1, "provider-error", 0, { url: "http://127.0.0.1:9/v1" }],
  ]) {
    test(`${model} ${JSON.stringify(options)} is code ${code}, ${reason}`, async () => {
      const it = job(options);
      const { code: got, exit, stdout, stderr } = await it.run(model);
      assert.equal(got, code, stdout + stderr);
      assert.equal(exit.code, code);
      assert.equal(exit.reason, reason);
      assert.equal(exit.jobId, "pi-job-1");
      if (requests > 0) assert.equal(it.requests().length, requests);
      if (code > 0) assert.ok(exit.message.length > 0);
      assert.match(stdout, /\n\{"event":"exit",[\x20-\x7e]*\}\n$/);
    });
  }

  test("a tool of the model changes the workspace", async () => {
    const it = job();
    const { exit } = await it.run("writes");
    assert.equal(readFileSync(it.path("workspace/made.txt"), "utf8"), "by pi\n");
    assert.deepEqual([exit.code, exit.turns, exit.tokens], [0, 2, { input: 200, output: 40, total: 240, cost: 0, metered: true }]);
  });

  for (const cap of [0, 1, 3]) {
    test(`a cap of ${cap} turns is exactly ${cap} requests and ${cap} tool runs`, async () => {
      const it = job();
      const { code, exit } = await it.run("forever", { PI_MAX_TURNS: String(cap) });
      assert.deepEqual([code, exit.reason, exit.turns, it.requests().length], [2, "turn-budget", cap, cap]);
      const ran = existsSync(it.path("workspace/turns.txt")) ? readFileSync(it.path("workspace/turns.txt"), "utf8").split("\n").length - 1 : 0;
      assert.equal(ran, cap);
      assert.equal(exit.usage?.models[0].calls ?? 0, cap);
    });
  }

  test("pi's own retries cost no turn", async () => {
    const it = job();
    const { exit } = await it.run("fails-after-tool", { PI_MAX_TURNS: "2" });
    assert.deepEqual([exit.reason, exit.turns, it.requests().length], ["completed", 2, 4]);
  });

  test("a repository's settings change no retry and install nothing", async () => {
    const it = job();
    it.write("workspace/.pi/settings.json", JSON.stringify({
      retry: { enabled: true, maxRetries: 50, baseDelayMs: 1 }, packages: ["npm:left-pad"], defaultTools: ["read"], cacheWarming: "always",
    }));
    await it.run("fails-always", { PI_RETRY_MAX: "1" });
    assert.equal(it.requests().length, 2);
    assert.ok(it.requests()[0].tools.includes("bash"));
  });

  test("the token budget stops before the next request", async () => {
    const it = job();
    const { code, exit } = await it.run("forever", { PI_MAX_TOKENS: "250" });
    assert.deepEqual([code, exit.reason, exit.tokens.total, it.requests().length], [2, "token-budget", 360, 3]);
  });

  test("usage has every counter, with what the provider cached and reasoned", async () => {
    const { exit } = await job({ cost: { input: 10, output: 100, cacheRead: 1, cacheWrite: 0 } }).run("cached");
    assert.deepEqual(exit.usage, {
      v: 1, piAi: "1.6.0", truncated: 0, models: [{
        provider: "stub", model: "cached", calls: 1, input: 40, output: 20, cacheRead: 60, cacheWrite: 0, cacheWrite1h: 0, reasoning: 5, total: 120, cost: 0.00246, unpriced: 0,
      }],
    });
    assert.deepEqual(exit.context, { tokens: 120, window: 100_000 });
  });

  test("an answer without usage is counted as unpriced", async () => {
    const { exit } = await job().run("mute");
    assert.deepEqual([exit.tokens.total, exit.usage.models[0].unpriced], [0, 1]);
  });

  test("no line shows a credential of the environment", async () => {
    const { events, stdout } = await job().run("leaks", { STUB_API_KEY: "KEY-0123456789" });
    assert.equal(events.find(({ event }) => event === "reply").text, "the key is [redacted]");
    assert.ok(!stdout.includes("KEY-0123456789"));
  });
});

describe("what is refused before any request", { concurrency: 3 }, () => {
  for (const [what, reason, prepare, env] of [
    ["a model of another case", "model-unknown", () => {}, { PI_MODEL: "Hello" }],
    ["a model that only begins alike", "model-unknown", () => {}, { PI_MODEL: "hell" }],
    ["an unknown provider", "model-unknown", () => {}, { PI_PROVIDER: "nobody" }],
    ["a provider without a credential", "provider-unconfigured", (it) => it.write("overlay/models.json", '{"providers":{}}'), { PI_PROVIDER: "anthropic", PI_MODEL: "claude-opus-4-5" }],
    ["a models file that is no JSON", "config", (it) => it.write("overlay/models.json", "{"), {}],
    ["a malformed environment", "config", () => {}, { PI_MAX_TURNS: "many" }],
    ["a home that cannot be written", "home-unwritable", () => {}, { HOME: "/dev/null" }],
    ["an empty prompt", "config", (it) => it.write("job/prompt.md", " \n"), {}],
    ["a package that is not there", "config", () => {}, { PI_PACKAGES: "/nowhere/at/all" }],
    ["a session without its mount", "config", () => {}, { PI_SESSION_FILE: "/nowhere/current.jsonl" }],
    ["a session file that is none", "config", (it) => it.write("session/current.jsonl", "not a session\n"), "session"],
    ["a command that nobody registers", "command-unregistered", () => {}, { PI_COMMAND: "nobody knows" }],
    ["lost guardrails", "guardrails-missing", (it) => { it.baked = it.path("nowhere"); }, {}],
    ["empty guardrails", "guardrails-missing", (it) => { it.write("baked/HARD_RULES.md", "\n"); it.baked = it.path("baked"); }, {}],
    ["a lost outbox protocol", "guardrails-missing", (it) => { it.write("baked/HARD_RULES.md", "rules"); it.baked = it.path("baked"); it.write("outbox/.x", ""); }, {}],
    ["a persona that is a folder", "persona-unreadable", (it) => it.write("job/pi/APPEND_SYSTEM.md/x", ""), {}],
    ["a deadline that is past", "deadline", () => {}, { PI_JOB_DEADLINE: "1000" }],
  ]) {
    test(`${what} is code 2, ${reason}`, async () => {
      const it = job();
      prepare(it);
      const { code, exit, stdout, stderr } = await it.run("hello", env === "session" ? { PI_SESSION_FILE: it.path("session/current.jsonl") } : env);
      assert.equal(code, 2, stdout + stderr);
      assert.equal(exit.reason, reason);
      assert.deepEqual([exit.turns, exit.tokens.total, exit.usage], [0, 0, undefined]);
      assert.equal(it.requests().length, 0);
    });
  }
});
