/**
 * The one way to end a run early. The first cause wins (`turn-budget`, `token-budget`, `deadline`, `terminated`);
 * whoever subscribed is told at once, synchronously, and again at each later call: an extension may start
 * another run after an abort.
 */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class Stop {
  cause = null;
  #listeners = [];
  #timers = new Set();

  onStop(listener) {
    this.#listeners.push(listener);
    if (this.cause) listener(this.cause);
  }

  now(cause) {
    this.cause ??= cause;
    for (const listener of this.#listeners) listener(this.cause);
  }

  /** Stops at `atMs` (epoch milliseconds), at once when that is past. */
  at(atMs, cause) {
    const left = atMs - Date.now();
    if (left <= 0) return this.now(cause);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.at(atMs, cause);
    }, Math.min(left, LONGEST_TIMER_MS));
    this.#timers.add(timer);
  }

  /** SIGTERM and SIGINT become a cause; the process does not die of them. */
  onSignals(cause) {
    for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => this.now(cause));
  }

  dispose() {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#listeners = [];
  }
}
