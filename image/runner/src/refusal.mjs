/**
 * A determinate "no" before any provider call: the job ends with code 2 and is not tried again.
 * `reason` is the token of the exit line, `message` tells a person what to mend.
 */
export class Refusal extends Error {
  constructor(reason, message) {
    super(message);
    this.name = "Refusal";
    this.reason = reason;
  }
}
