/**
 * What the job spent, over every session of this process: pi sends each request of each session (subagents and
 * compaction included) through ModelRuntime, so that is where we count. A direct call of pi-ai by an extension, or
 * a child process, is not seen.
 */
const MOST_ROWS = 9;
const COUNTERS = ["calls", "input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning", "total", "cost", "unpriced"];
const VIRTUAL_API = "pi-virtual";

export class Meter {
  /** Whether requests themselves are seen; else `add` is fed from the root session alone. */
  metered = false;
  #rows = new Map();
  #onUsage;
  #isClosed;

  /** `onUsage(total)` is called after each answer; while `isClosed()` no further request leaves the process. */
  constructor({ onUsage = () => {}, isClosed = () => false } = {}) {
    this.#onUsage = onUsage;
    this.#isClosed = isClosed;
  }

  /** Watches every request of every runtime of this class. False when pi has no longer such methods. */
  watch(ModelRuntime) {
    const { prototype } = ModelRuntime;
    const names = ["stream", "streamSimple"];
    if (!names.every((name) => typeof prototype?.[name] === "function")) return false;
    for (const name of names) prototype[name] = this.#watched(prototype[name]);
    this.metered = true;
    return true;
  }

  #watched(original) {
    const meter = this;
    return function (model, context, options) {
      const given = meter.#isClosed() ? { ...options, signal: AbortSignal.abort() } : options;
      const isCall = model?.api !== VIRTUAL_API && !given?.signal?.aborted;
      const stream = original.call(this, model, context, given);
      // Not counted: what was aborted before it left, and a virtual model, whose request comes by again when routed.
      if (isCall) stream.result().then((message) => meter.add(message, model), () => {});
      return stream;
    };
  }

  /** Counts one answer (an assistant message). */
  add(message, model) {
    const usage = message?.usage;
    if (!usage) return;
    const row = this.#row(message.provider ?? model?.provider, message.responseModel ?? message.model ?? model?.id);
    row.calls += 1;
    row.input += count(usage.input);
    row.output += count(usage.output);
    row.cacheRead += count(usage.cacheRead);
    row.cacheWrite += count(usage.cacheWrite);
    row.cacheWrite1h += count(usage.cacheWrite1h);
    row.reasoning += count(usage.reasoning);
    row.total += count(usage.totalTokens);
    row.cost += count(usage.cost?.total);
    if (isUnpriced(message, model)) row.unpriced += 1;
    this.#onUsage(this.tokens().total);
  }

  #row(provider, model) {
    const [one, other] = [identifier(provider), identifier(model)];
    const key = `${one} ${other}`;
    if (!this.#rows.has(key)) {
      this.#rows.set(key, { provider: one, model: other, ...Object.fromEntries(COUNTERS.map((name) => [name, 0])) });
    }
    return this.#rows.get(key);
  }

  /** The sums of the exit line. */
  tokens() {
    const sums = { input: 0, output: 0, total: 0, cost: 0 };
    for (const row of this.#rows.values()) for (const name of Object.keys(sums)) sums[name] += row[name];
    return { ...sums, cost: rounded(sums.cost), metered: this.metered };
  }

  /** The block of the exit line, biggest rows first; undefined when no model was called. */
  usage(piAi) {
    if (this.#rows.size === 0) return undefined;
    const rows = [...this.#rows.values()].sort((one, other) => other.total - one.total);
    const models = rows.slice(0, MOST_ROWS).map((row) => ({ ...row, cost: rounded(row.cost) }));
    return { v: 1, piAi, truncated: rows.length - models.length, models };
  }
}

/** Ids as the host takes them: lower case, 64 characters, no exotic ones; a foreign name must not void the block. */
export function identifier(name) {
  const plain = String(name ?? "unknown").toLowerCase().replace(/[^a-z0-9._:/-]/g, "-");
  return (/^[a-z0-9]/.test(plain) ? plain : `x${plain}`).slice(0, 64);
}

/** No price is known: the answer came without usage, or the model has none. A failed call that used nothing is free. */
function isUnpriced(message, model) {
  const used = count(message.usage.totalTokens) > 0;
  if (!used) return message.stopReason !== "error";
  if (count(message.usage.cost?.total) > 0 || message.usage.cost?.totalFromProvider) return false;
  const prices = model?.cost ?? {};
  return !["input", "output", "cacheRead", "cacheWrite"].some((name) => count(prices[name]) > 0);
}

function count(value) {
  return Number.isFinite(value) && value > 0 ? value : 0;
}

function rounded(cost) {
  return Number(cost.toFixed(10));
}
