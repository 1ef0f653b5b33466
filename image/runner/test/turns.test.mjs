import assert from "node:assert/strict";
import { test } from "node:test";
import { TurnBudget } from "../src/turns.mjs";

const START = { type: "turn_start" };
const TOOL = { type: "tool_execution_start" };
const RETRY = { type: "auto_retry_start" };
const RETRY_OVER = { type: "auto_retry_end" };

/** Which of the events were answered with "exceeded", and the turns in the end. */
function feed(cap, events) {
  const budget = new TurnBudget(cap);
  const over = events.map((event) => budget.exceededBy(event));
  return { over: over.flatMap((is, at) => (is ? [at] : [])), turns: budget.turns };
}

for (const [name, cap, events, over, turns] of [
  ["a run below the cap", 3, [START, TOOL, START], [], 2],
  ["a run of exactly the cap", 2, [START, TOOL, START], [], 2],
  ["the first turn past the cap", 2, [START, START, START], [2], 2],
  ["every later turn past the cap", 1, [START, START, START, START], [1, 2, 3], 1],
  ["a cap of nought", 0, [START], [0], 0],
  ["a retry of a turn that ran no tool is free", 1, [START, RETRY, START, RETRY, START], [], 1],
  ["a retry of a turn that ran a tool counts", 1, [START, TOOL, RETRY, START], [3], 1],
  ["only the turn right after the retry is free", 1, [START, RETRY, START, START], [3], 1],
  ["a cancelled retry frees nothing", 1, [START, RETRY, RETRY_OVER, START], [3], 1],
  ["a retry after the cap was passed is not free", 1, [START, START, RETRY, START], [1, 3], 1],
  ["a tool of an earlier turn does not spoil a retry", 2, [START, TOOL, START, RETRY, START], [], 2],
]) {
  test(name, () => assert.deepEqual(feed(cap, events), { over, turns }));
}
