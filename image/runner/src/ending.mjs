/**
 * The exit line and the end of the process, exactly once, whoever asks first: the job, a budget whose abort does
 * not take, a fault that nobody caught, or an extension that calls process.exit.
 */
import { judge } from "./outcome.mjs";

/** How long an abort may take before the process ends anyway; the host kills 5 s after its SIGTERM. */
const GRACE_MS = 3500;

export class Ending {
  session = { resumed: false, reason: "none" };
  turns = { turns: 0 };
  meter = undefined;
  piAi = null;
  contextOf = () => undefined;
  #report;
  #teardown = [];
  #isOver = false;

  constructor({ report, stop, graceMs = GRACE_MS }) {
    this.#report = report;
    let isArmed = false;
    stop.onStop((cause) => {
      if (isArmed) return;
      isArmed = true;
      setTimeout(() => this.finish(judge({ cause })), graceMs);
    });
    const broken = (error) => this.finish(judge({ cause: stop.cause, failure: { reason: "runner-fault", error } }));
    process.on("uncaughtException", broken);
    process.on("unhandledRejection", broken);
    process.on("exit", () => {
      if (this.#isOver) return;
      const error = "the process was ended from within before the job was over";
      const verdict = judge({ cause: stop.cause, failure: { reason: "runner-fault", error } });
      this.#say(verdict);
      process.exitCode = verdict.code;
    });
    this.#teardown.push(() => stop.dispose());
  }

  /** Steps to do right before the end; their errors change nothing. */
  onTeardown(...steps) {
    this.#teardown.push(...steps);
  }

  finish(verdict) {
    if (this.#isOver) return;
    this.#say(verdict);
    process.exit(verdict.code);
  }

  #say({ code, reason, message }) {
    this.#isOver = true;
    const context = quietly(this.contextOf);
    for (const step of this.#teardown) quietly(step);
    this.#report.event("exit", {
      code,
      reason,
      turns: this.turns.turns,
      tokens: this.meter?.tokens() ?? { input: 0, output: 0, total: 0, cost: 0, metered: false },
      usage: this.meter?.usage(this.piAi),
      context,
      session: this.session,
      message,
    });
  }
}

function quietly(step) {
  try {
    return step();
  } catch {
    return undefined;
  }
}
