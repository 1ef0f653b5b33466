/** The entrypoint of the image: `exec node main.mjs` with the job's environment. */
import { PLACES } from "./places.mjs";

// Before pi is loaded: no install, no catalogue, no telemetry; a job talks to its model and to nobody else by itself.
process.env.PI_OFFLINE = "1";
process.env.PI_TELEMETRY = "0";

const { runJob } = await import("./job.mjs");
await runJob({ env: process.env, places: PLACES });
