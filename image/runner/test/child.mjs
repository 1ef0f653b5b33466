/** The runner with its folders elsewhere than in a container. */
process.env.PI_OFFLINE = "1";
const { places, graceMs } = JSON.parse(process.argv[2]);
const { runJob } = await import("../src/job.mjs");
await runJob({ env: process.env, places, graceMs });
