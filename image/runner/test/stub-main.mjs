/** The stub as a program of its own: `stub-main.mjs FOLDER`, with FOLDER/scripts.json; records into FOLDER/requests.jsonl. */
import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startStub } from "./stub.mjs";

const folder = process.argv[2];
const scripts = JSON.parse(readFileSync(join(folder, "scripts.json"), "utf8"));
const record = (request) => appendFileSync(join(folder, "requests.jsonl"), `${JSON.stringify(request)}\n`);
const stub = await startStub({ scripts, host: "0.0.0.0", port: 8080, onRequest: record });
writeFileSync(join(folder, "ready.part"), stub.url);
renameSync(join(folder, "ready.part"), join(folder, "ready"));
process.on("SIGTERM", () => process.exit(0));
