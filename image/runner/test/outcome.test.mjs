import assert from "node:assert/strict";
import { test } from "node:test";
import { judge } from "../src/outcome.mjs";

const answer = (stopReason, errorMessage) => ({ role: "assistant", stopReason, errorMessage });
const never = () => false;
const always = () => true;

for (const [what, given, code, reason] of [
  ["stop", { last: answer("stop") }, 0, "completed"],
  ["toolUse", { last: answer("toolUse") }, 0, "completed"],
  ["length", { last: answer("length") }, 0, "truncated"],
  ["aborted", { last: answer("aborted") }, 2, "aborted"],
  ["500", { last: answer("error", "500: {}"), isRetryable: always }, 1, "provider-error"],
  ["401", { last: answer("error", "401: {}"), isRetryable: never }, 2, "provider-auth-refused"],
  ["403 with a space", { last: answer("error", "403 {}"), isRetryable: never }, 2, "provider-auth-refused"],
  ["401 behind the name of an API", { last: answer("error", "OpenAI API error (401): {}"), isRetryable: never }, 2, "provider-auth-refused"],
  ["500 behind the name of an API", { last: answer("error", "OpenAI API error (500): 401"), isRetryable: never }, 1, "provider-error"],
  ["401 that pi would retry", { last: answer("error", "401: rate limit"), isRetryable: always }, 1, "provider-error"],
  ["401 inside the text", { last: answer("error", "400: see 401: x"), isRetryable: never }, 1, "provider-error"],
  ["4010", { last: answer("error", "4010: x"), isRetryable: never }, 1, "provider-error"],
  ["404", { last: answer("error", "404: {}"), isRetryable: never }, 1, "provider-error"],
  ["error without a text", { last: answer("error"), isRetryable: never }, 1, "provider-error"],
  ["deferred", { last: answer("deferred") }, 1, "unknown-stop"],
  ["a word of a later pi", { last: answer("constructor") }, 1, "unknown-stop"],
  ["no answer to a prompt", { last: undefined }, 1, "no-result"],
  ["a command without an answer", { last: undefined, isCommand: true }, 0, "command-completed"],
  ["a command whose run failed", { last: answer("error", "500: {}"), isCommand: true }, 1, "provider-error"],
  ["a command whose handler raised", { last: answer("stop"), isCommand: true, failure: { reason: "command-failed", error: "x" } }, 1, "command-failed"],
  ["a fault of ours", { failure: { reason: "runner-fault", error: new Error("x") } }, 1, "runner-fault"],
  ["the turn budget before a stop reason", { cause: "turn-budget", last: answer("stop") }, 2, "turn-budget"],
  ["the turn budget before a fault", { cause: "turn-budget", failure: { reason: "runner-fault", error: "x" } }, 2, "turn-budget"],
  ["the deadline before an error", { cause: "deadline", last: answer("error", "500") }, 2, "deadline"],
  ["SIGTERM", { cause: "terminated", last: answer("aborted") }, 2, "terminated"],
]) {
  test(`${what} is code ${code}, ${reason}`, () => {
    const verdict = judge(given);
    assert.equal(verdict.code, code);
    assert.equal(verdict.reason, reason);
  });
}

test("without pi's predicate an error is never taken for a refused credential", () => {
  assert.equal(judge({ last: answer("error", "401: {}") }).code, 1);
});
