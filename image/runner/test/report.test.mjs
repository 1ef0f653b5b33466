import assert from "node:assert/strict";
import { test } from "node:test";
import { capped, Report, TEXT_CAP } from "../src/report.mjs";

function written(fields, options = {}) {
  const out = [];
  new Report({ jobId: "j", write: (text) => out.push(text), ...options }).event("exit", fields);
  assert.equal(out.length, 1);
  return out[0];
}

test("a line has a newline on both sides, and begins with event and jobId", () => {
  assert.equal(written({ code: 0, reason: "completed" }), '\n{"event":"exit","jobId":"j","code":0,"reason":"completed"}\n');
});

test("an absent field leaves no trace", () => {
  assert.equal(written({ message: undefined }), '\n{"event":"exit","jobId":"j"}\n');
});

for (const [name, character] of [["plain", "x"], ["quotes", '"'], ["newlines", "\n"], ["NUL", "\0"], ["umlauts", "ü"], ["emoji", "😀"], ["lone surrogates", "\ud800"]]) {
  test(`a message of ${name} is cut at ${TEXT_CAP} escaped characters and stays ASCII and JSON`, () => {
    const line = written({ message: character.repeat(50_000) });
    assert.match(line, /^\n[\x20-\x7e]*\n$/);
    const { message } = JSON.parse(line);
    const escaped = line.slice(line.indexOf('"message":"') + 11, -3);
    assert.ok(escaped.length <= TEXT_CAP && escaped.length > TEXT_CAP - 20, `${escaped.length}`);
    assert.ok(message.endsWith(" [cut]"));
  });
}

test("a text of exactly the cap is not cut", () => {
  assert.equal(capped("x".repeat(TEXT_CAP), TEXT_CAP), "x".repeat(TEXT_CAP));
  assert.equal(capped("x".repeat(TEXT_CAP + 1), TEXT_CAP).length, TEXT_CAP);
});

test("the values of secret variables never appear, the longer of two nested ones first", () => {
  const env = { STUB_API_KEY: "sk-123456789", OTHER_TOKEN: "sk-123456789-longer", PI_MODEL: "sk-123456789-model", SHORT_KEY: "abc" };
  const line = written({ message: "got sk-123456789-longer and sk-123456789, abc" }, { env });
  assert.equal(JSON.parse(line).message, "got [redacted] and [redacted], abc");
});

test("the fullest exit line stays inside the host's 8 KiB", () => {
  const id = "m".repeat(64);
  const row = { provider: id, model: id };
  for (const name of ["calls", "input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning", "total", "cost", "unpriced"]) row[name] = 123_456_789.012345;
  const line = written({
    code: 2, reason: "provider-auth-refused", turns: 1_000_000, tokens: { input: 1e15, output: 1e15, total: 1e15, cost: 1e9, metered: true },
    usage: { v: 1, piAi: "100.100.100", truncated: 100, models: Array(9).fill(row) },
    context: { tokens: 1e15, window: 1e15 }, session: { resumed: false, reason: "absent" }, message: "ü".repeat(9000),
  }, { jobId: "p".repeat(255) });
  assert.ok(line.length < 8192, `${line.length}`);
});
