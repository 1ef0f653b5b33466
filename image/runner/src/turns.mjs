/**
 * The turn budget of the root session. pi has no turn limit, so its events are counted here; whoever is told
 * `true` must abort at once, in the listener, without waiting for anything: then no request leaves past the cap.
 * A turn that opens pi's own retry of a turn that ran no tool is not counted.
 */
export class TurnBudget {
  #cap;
  #started = 0;
  #ranTool = false;
  #retryFollows = false;

  constructor(cap) {
    this.#cap = cap;
  }

  /** Takes one session event; true when it opened a turn past the cap (again and again, however many follow). */
  exceededBy(event) {
    if (event.type === "tool_execution_start") this.#ranTool = true;
    if (event.type === "auto_retry_start") this.#retryFollows = !this.#ranTool;
    if (event.type === "auto_retry_end") this.#retryFollows = false;
    if (event.type !== "turn_start") return false;
    const isFree = this.#retryFollows && this.#started <= this.#cap;
    this.#retryFollows = false;
    this.#ranTool = false;
    if (!isFree) this.#started += 1;
    return this.#started > this.#cap;
  }

  /** Turns that could use the provider: the one that was cut off at its start is none. */
  get turns() {
    return Math.min(this.#started, this.#cap);
  }
}
