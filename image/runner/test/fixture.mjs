/** One stub and any number of jobs for a test file: `runs(scripts)` gives `job(options)`; everything goes at the end. */
import { after, before } from "node:test";
import { Job } from "./job.mjs";
import { startStub } from "./stub.mjs";

export function runs(scripts) {
  const made = [];
  let stub;
  before(async () => {
    stub = await startStub({ scripts });
  });
  after(async () => {
    for (const job of made) job.remove();
    await stub.close();
  });
  return (options = {}) => {
    const job = new Job(options.url ?? stub.url, { models: Object.keys(scripts), ...options });
    made.push(job);
    job.requests = () => stub.requests.filter(({ key }) => key === job.key);
    return job;
  };
}

export const bash = (command) => ({ calls: [{ name: "bash", arguments: { command } }] });

/** Waits until the condition holds; the test's own time limit ends it otherwise. */
export async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
}
