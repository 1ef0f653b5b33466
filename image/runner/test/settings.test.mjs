import assert from "node:assert/strict";
import { test } from "node:test";
import { readSettings } from "../src/settings.mjs";

const GOOD = { PI_PROVIDER: "p", PI_MODEL: "m", PI_JOB_ID: "pi-job-1", PI_MAX_TURNS: "30" };

test("the least a host passes is enough, and the defaults are the contract's", () => {
  assert.deepEqual(readSettings(GOOD), {
    provider: "p", model: "m", jobId: "pi-job-1", maxTurns: 30, maxTokens: undefined, retryMax: 2, retryBaseMs: 2000,
    deadlineMs: undefined, overlayExtensions: true, packages: [], sessionFile: undefined, command: undefined, flow: undefined,
  });
});

for (const [name, value, field, expected] of [
  ["PI_MAX_TURNS", "0", "maxTurns", 0],
  ["PI_MAX_TOKENS", "250000", "maxTokens", 250_000],
  ["PI_RETRY_MAX", "0", "retryMax", 0],
  ["PI_JOB_DEADLINE", "1750000000.5", "deadlineMs", 1_750_000_000_500],
  ["PI_GLOBAL_ALLOW_EXTENSIONS", "0", "overlayExtensions", false],
  ["PI_GLOBAL_ALLOW_EXTENSIONS", "", "overlayExtensions", true],
  ["PI_PACKAGES", "/a/b:/c", "packages", ["/a/b", "/c"]],
  ["PI_SESSION_FILE", "/session/current.jsonl", "sessionFile", "/session/current.jsonl"],
  ["PI_COMMAND", "triage all 3", "command", "triage all 3"],
  ["PI_FLOW", "  ", "flow", undefined],
  ["PI_FLOW", "deploy", "flow", "deploy"],
]) {
  test(`${name}=${JSON.stringify(value)} is read`, () => assert.deepEqual(readSettings({ ...GOOD, [name]: value })[field], expected));
}

for (const [name, value] of [
  ["PI_PROVIDER", undefined], ["PI_PROVIDER", ""], ["PI_MODEL", " m"], ["PI_MODEL", "a\nb"], ["PI_JOB_ID", undefined],
  ["PI_MAX_TURNS", undefined], ["PI_MAX_TURNS", ""], ["PI_MAX_TURNS", "-1"], ["PI_MAX_TURNS", "1e3"], ["PI_MAX_TURNS", "3.5"],
  ["PI_MAX_TURNS", "0x10"], ["PI_MAX_TURNS", " 3"], ["PI_MAX_TURNS", "٣"], ["PI_MAX_TURNS", "9".repeat(16)], ["PI_MAX_TOKENS", "0"],
  ["PI_MAX_TOKENS", ""], ["PI_RETRY_MAX", "11"], ["PI_RETRY_BASE_MS", "x"], ["PI_JOB_DEADLINE", "tomorrow"], ["PI_JOB_DEADLINE", "-5"],
  ["PI_JOB_DEADLINE", "NaN"], ["PI_GLOBAL_ALLOW_EXTENSIONS", "true"], ["PI_PACKAGES", "relative"], ["PI_PACKAGES", "/ok:/a/../b"],
  ["PI_SESSION_FILE", "current.jsonl"], ["PI_SESSION_FILE", "/session/../etc/passwd"], ["PI_COMMAND", "/triage"], ["PI_COMMAND", ""],
  ["PI_COMMAND", " triage"], ["PI_COMMAND", "triage\u2028x"], ["PI_COMMAND", "triage\u0007"],
]) {
  test(`${name}=${JSON.stringify(value)} is refused by name`, () => {
    const env = { ...GOOD, [name]: value };
    if (value === undefined) delete env[name];
    assert.throws(() => readSettings(env), (error) => error.reason === "config" && error.message.includes(name));
  });
}

test("every problem is told at once", () => {
  assert.throws(() => readSettings({ PI_MAX_TURNS: "x", PI_COMMAND: "/x", PI_FLOW: "f" }), (error) => {
    for (const name of ["PI_PROVIDER", "PI_MODEL", "PI_JOB_ID", "PI_MAX_TURNS", "PI_COMMAND"]) assert.ok(error.message.includes(name), name);
    return true;
  });
});

test("a command together with a flow is refused", () => {
  assert.throws(() => readSettings({ ...GOOD, PI_COMMAND: "c", PI_FLOW: "f" }), /one or the other/);
});
