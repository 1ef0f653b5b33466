import assert from "node:assert/strict";
import { test } from "node:test";
import { Stop } from "../src/stop.mjs";

test("the first cause stays, and every listener is told again at each call, at once", () => {
  const stop = new Stop();
  const told = [];
  stop.onStop((cause) => told.push(cause));
  stop.now("turn-budget");
  stop.now("deadline");
  assert.deepEqual(told, ["turn-budget", "turn-budget"]);
});

test("who subscribes late is told at once", () => {
  const stop = new Stop();
  stop.now("terminated");
  const told = [];
  stop.onStop((cause) => told.push(cause));
  assert.deepEqual(told, ["terminated"]);
});

test("a time that is past stops at once", () => {
  const stop = new Stop();
  stop.at(Date.now() - 1, "deadline");
  assert.equal(stop.cause, "deadline");
});

test("a time to come stops then", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const stop = new Stop();
  stop.at(1_005_000, "deadline");
  t.mock.timers.tick(4999);
  assert.equal(stop.cause, null);
  t.mock.timers.tick(1);
  assert.equal(stop.cause, "deadline");
});

test("a time beyond what a timer can hold does not stop early", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 0 });
  const stop = new Stop();
  const inSixtyDays = 60 * 86_400_000;
  stop.at(inSixtyDays, "deadline");
  t.mock.timers.tick(inSixtyDays - 1);
  assert.equal(stop.cause, null);
  t.mock.timers.tick(1);
  assert.equal(stop.cause, "deadline");
});

test("after dispose nothing is told", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 0 });
  const stop = new Stop();
  stop.onStop(() => assert.fail("told"));
  stop.at(10, "deadline");
  stop.dispose();
  t.mock.timers.tick(20);
  assert.equal(stop.cause, null);
});
