import assert from "node:assert/strict";
import { test } from "node:test";
import { identifier, Meter } from "../src/meter.mjs";

const PRICED = { id: "m", provider: "p", cost: { input: 3, output: 15, cacheRead: 0, cacheWrite: 0 } };
const FREE = { id: "m", provider: "p", cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };

function message({ total = 120, cost = 0.5, stopReason = "stop", provider = "p", model = "m", ...usage } = {}) {
  return { role: "assistant", provider, model, stopReason, usage: { input: 40, output: 20, cacheRead: 60, cacheWrite: 0, totalTokens: total, cost: { total: cost }, ...usage } };
}

test("answers add up per provider and model, biggest first", () => {
  const meter = new Meter();
  meter.add(message({ reasoning: 5 }), PRICED);
  meter.add(message({ provider: "q", total: 1000 }), PRICED);
  meter.add(message(), PRICED);
  assert.deepEqual(meter.tokens(), { input: 120, output: 60, total: 1240, cost: 1.5, metered: false });
  const { models, truncated, v, piAi } = meter.usage("1.2.3");
  assert.deepEqual([v, piAi, truncated], [1, "1.2.3", 0]);
  assert.deepEqual(models.map(({ provider, calls, total }) => [provider, calls, total]), [["q", 1, 1000], ["p", 2, 240]]);
  assert.deepEqual(models[1], {
    provider: "p", model: "m", calls: 2, input: 80, output: 40, cacheRead: 120, cacheWrite: 0, cacheWrite1h: 0, reasoning: 5, total: 240, cost: 1, unpriced: 0,
  });
});

test("no call, no usage block", () => assert.equal(new Meter().usage("1.0.0"), undefined));

test("more models than rows are cut and counted, the sums stay whole", () => {
  const meter = new Meter();
  for (let i = 1; i <= 12; i += 1) meter.add(message({ model: `m${i}`, total: i }), PRICED);
  const { models, truncated } = meter.usage(null);
  assert.deepEqual([models.length, truncated, models.at(-1).total, meter.tokens().total], [9, 3, 4, 78]);
});

for (const [what, given, model, unpriced] of [
  ["a priced answer", message(), PRICED, 0],
  ["an answer without usage", message({ total: 0, cost: 0 }), PRICED, 1],
  ["a failed call that used nothing", message({ total: 0, cost: 0, stopReason: "error" }), PRICED, 0],
  ["a call cut off before its usage came", message({ total: 0, cost: 0, stopReason: "aborted" }), PRICED, 1],
  ["an answer of a model without a price", message({ cost: 0 }), FREE, 1],
  ["an answer of an unknown model", message({ cost: 0 }), undefined, 1],
  ["a free answer of a priced model", message({ cost: 0 }), PRICED, 0],
]) {
  test(`${what} counts ${unpriced} unpriced`, () => {
    const meter = new Meter();
    meter.add(given, model);
    assert.equal(meter.usage(null).models[0].unpriced, unpriced);
  });
}

test("counters that are no numbers count nothing", () => {
  const meter = new Meter();
  meter.add(message({ input: NaN, output: -5, cacheRead: undefined, total: Infinity, cost: "x" }), PRICED);
  assert.deepEqual(meter.tokens(), { input: 0, output: 0, total: 0, cost: 0, metered: false });
});

for (const [given, expected] of [
  ["Claude-X", "claude-x"], ["a b", "a-b"], [".hidden", "x.hidden"], ["", "x"], [undefined, "unknown"], ["é", "x-"], ["org/m:free", "org/m:free"], ["M".repeat(99), "m".repeat(64)],
]) {
  test(`the id ${JSON.stringify(given)} becomes ${expected}`, () => {
    assert.equal(identifier(given), expected);
    assert.match(identifier(given), /^[a-z0-9][a-z0-9._:/-]{0,63}$/);
  });
}

function runtimeClass() {
  return class {
    calls = [];
    stream(model, context, options) {
      this.calls.push(options);
      return { result: async () => message() };
    }
    streamSimple(model, context, options) {
      return this.stream(model, context, options);
    }
  };
}

const settled = () => new Promise(setImmediate);

test("requests of every runtime are seen, and the total is told after each", async () => {
  const totals = [];
  const meter = new Meter({ onUsage: (total) => totals.push(total) });
  const Runtime = runtimeClass();
  Runtime.prototype.streamSimple = function streamSimple() { return { result: async () => message() }; };
  assert.equal(meter.watch(Runtime), true);
  new Runtime().streamSimple(PRICED, {}, {});
  new Runtime().stream(PRICED, {}, {});
  await settled();
  assert.deepEqual(totals, [120, 240]);
  assert.equal(meter.tokens().metered, true);
});

test("a request whose signal was aborted before it left is none, nor is a virtual model's", async () => {
  const meter = new Meter();
  const Runtime = runtimeClass();
  meter.watch(Runtime);
  new Runtime().stream(PRICED, {}, { signal: AbortSignal.abort() });
  new Runtime().stream({ ...PRICED, api: "pi-virtual" }, {}, {});
  await settled();
  assert.equal(meter.usage(null), undefined);
});

test("once closed, every further request carries an aborted signal", () => {
  let isClosed = false;
  const meter = new Meter({ isClosed: () => isClosed });
  const Runtime = runtimeClass();
  meter.watch(Runtime);
  const runtime = new Runtime();
  runtime.stream(PRICED, {}, { maxTokens: 5 });
  isClosed = true;
  runtime.stream(PRICED, {}, { maxTokens: 5 });
  runtime.stream(PRICED, {});
  assert.deepEqual(runtime.calls.map((options) => options?.signal?.aborted), [undefined, true, true]);
  assert.equal(runtime.calls[1].maxTokens, 5);
});

test("a pi without these methods is noticed", () => {
  const meter = new Meter();
  assert.equal(meter.watch(class {}), false);
  assert.equal(meter.metered, false);
});
