/** What reaches the model: prompts, tools and skills, with hostile neighbours. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { runs } from "./fixture.mjs";

const SENTINEL = "pi-dispatch-guardrails:v1";
const job = runs({ hello: [{ say: "hello" }], tools: [{ calls: [{ name: "who", arguments: {} }] }, { say: "done" }] });

const tool = (name, body = "return { content: [{ type: 'text', text: 'x' }] };") => `pi.registerTool({
  name: ${JSON.stringify(name)}, label: "t", description: "a tool", parameters: { type: "object", properties: {} },
  async execute() { ${body} } });`;
const skill = (name, description) => `---\nname: ${name}\ndescription: ${description}\n---\nDo it.\n`;

/** Runs it and gives the one request and the events. */
async function asked(it, env = {}, model = "hello") {
  const result = await it.run(model, env);
  assert.equal(result.code, 0, result.stdout + result.stderr);
  return { request: it.requests()[0], ...result };
}

function inOrder(text, ...parts) {
  const at = parts.map((part) => text.indexOf(part));
  assert.ok(at.every((place) => place >= 0), `missing: ${parts.filter((_, i) => at[i] < 0)}`);
  assert.deepEqual(at.toSorted((a, b) => a - b), at, `order of ${parts}`);
}

describe("the system prompt", { concurrency: 3 }, () => {
  test("guardrails, outbox protocol, overlay persona, repository persona, AGENTS.md, in this order", async () => {
    const it = job();
    it.write("outbox/.keep", "");
    it.write("overlay/APPEND_SYSTEM.md", "PERSONA-OVERLAY");
    it.write("job/pi/APPEND_SYSTEM.md", "\ufeffPERSONA-REPO");
    it.write("workspace/AGENTS.md", "AGENTS-OF-REPO");
    const { request } = await asked(it);
    inOrder(request.system, "coding assistant", SENTINEL, "request-1.json", "PERSONA-OVERLAY", "PERSONA-REPO", "AGENTS-OF-REPO");
  });

  test("a repository's own prompt files replace and shadow nothing", async () => {
    const it = job();
    for (const tier of ["workspace/.pi", "home/.pi/agent"]) {
      it.write(`${tier}/SYSTEM.md`, "HOSTILE-BASE");
      it.write(`${tier}/APPEND_SYSTEM.md`, "HOSTILE-APPEND");
    }
    const { request } = await asked(it);
    assert.ok(request.system.includes(SENTINEL) && request.system.includes("coding assistant"));
    assert.ok(!request.system.includes("HOSTILE"));
  });

  test("without an outbox there is no word of it", async () => {
    const { request } = await asked(job());
    assert.ok(!request.system.includes("request-1.json"));
  });

  test("a persona that is the name of a file stays a text", async () => {
    const it = job();
    const secret = it.write("job/secret.txt", "CONTENT-OF-THE-FILE");
    it.write("job/pi/APPEND_SYSTEM.md", secret);
    const { request } = await asked(it);
    assert.ok(request.system.includes(secret) && !request.system.includes("CONTENT-OF-THE-FILE"));
  });

  test("the task reaches the model byte for byte, and runs no command, template or skill", async () => {
    const it = job();
    it.write("workspace/.pi/prompts/deploy.md", "TEMPLATE");
    it.extension("c.js", `pi.registerCommand("deploy", { description: "x", handler: async () => { throw new Error("ran"); } });`);
    const task = "/deploy now\n\n/skill:x  ünïcödé\n";
    it.write("job/prompt.md", task);
    const { request } = await asked(it);
    assert.deepEqual(request.messages.at(-1), { role: "user", text: task });
  });
});

describe("extensions", { concurrency: 3 }, () => {
  test("one that offers a tool to start jobs is dropped whole, and said so", async () => {
    const it = job();
    it.extension("evil.js", tool("dispatch_run") + tool("harmless"));
    it.extension("good.js", tool("who"));
    const { request, events } = await asked(it);
    assert.ok(request.tools.includes("who"));
    assert.deepEqual(request.tools.filter((name) => /dispatch|harmless/.test(name)), []);
    const dropped = events.filter(({ event }) => event === "extension_dropped");
    assert.deepEqual(dropped, [{ event: "extension_dropped", jobId: "pi-job-1", reason: "admin-recursion-guard", extension: ".pi/extensions/evil.js" }]);
  });

  test("one that registers such a tool later does not get it to the model", async () => {
    const it = job();
    it.extension("late.js", `pi.on("session_start", () => { ${tool("dispatch_run")} ${tool("late")} });`);
    const { request } = await asked(it);
    assert.ok(request.tools.includes("late"));
    assert.ok(!request.tools.includes("dispatch_run"));
  });

  for (const where of ["workspace/.pi/extensions/pi-dispatch", "overlay/extensions/dispatch-admin", "overlay/packages/acme__pi-dispatch/extensions"]) {
    test(`one named like the operator's own is dropped: ${where}`, async () => {
      const it = job();
      it.extension("index.js", tool("innocent"), where);
      const { request, events } = await asked(it, where.includes("packages") ? { PI_PACKAGES: it.path("overlay/packages/acme__pi-dispatch") } : {});
      assert.ok(!request.tools.includes("innocent"));
      assert.equal(events.filter(({ event }) => event === "extension_dropped").length, 1);
    });
  }

  test("one whose name only holds the word stays", async () => {
    const it = job();
    it.extension("event-dispatcher.js", tool("who"));
    assert.ok((await asked(it)).request.tools.includes("who"));
  });

  test("a broken one is told, and the job goes on", async () => {
    const it = job();
    it.write("workspace/.pi/extensions/broken.js", "export default function ( {");
    const { events } = await asked(it);
    const failed = events.find(({ event }) => event === "extension_failed");
    assert.equal(failed.extension, ".pi/extensions/broken.js");
    assert.ok(failed.error.length > 0);
  });

  test("the repository's come first, then the overlay's, then the packages'", async () => {
    const it = job();
    const answer = (name) => tool("who", `require("node:fs").writeFileSync("who.txt", "${name}"); return { content: [] };`);
    const start = (name) => `pi.on("session_start", () => { globalThis.order = (globalThis.order ?? []).concat("${name}"); require("node:fs").writeFileSync("order.txt", globalThis.order.join()); });`;
    it.extension("a.ts", start("package"), "overlay/packages/zz/extensions");
    it.extension("b.ts", start("overlay"), "overlay/extensions");
    it.extension("z.ts", start("repository") + answer("repository"));
    it.extension("c.ts", answer("package"), "overlay/packages/zz/extensions");
    await asked(it, { PI_PACKAGES: it.path("overlay/packages/zz") }, "tools");
    assert.equal(readFileSync(it.path("workspace/order.txt"), "utf8"), "repository,overlay,package");
    assert.equal(readFileSync(it.path("workspace/who.txt"), "utf8"), "repository");
  });

  test("the overlay's stay away when the operator opted out", async () => {
    const it = job();
    it.extension("o.js", tool("who"), "overlay/extensions");
    assert.ok((await asked(it)).request.tools.includes("who"));
    assert.ok(!(await asked(it, { PI_GLOBAL_ALLOW_EXTENSIONS: "0" }) && it.requests()[1].tools.includes("who")));
  });

  test("what one prints without a newline does not spoil our lines", async () => {
    const it = job();
    it.extension("noisy.js", `process.stdout.write("noise"); pi.on("agent_end", () => { process.stdout.write('noise {"event":"exit","code":7}'); });`);
    const { exit, stdout } = await asked(it);
    assert.equal(exit.code, 0);
    assert.match(stdout.trimEnd().split("\n").at(-1), /^\{"event":"exit"/);
  });
});

describe("skills", { concurrency: 3 }, () => {
  test("repository before trigger before overlay before package, the shadowed ones told", async () => {
    const it = job();
    it.write("job/pi/skills/deploy/SKILL.md", skill("deploy", "FROM-REPOSITORY"));
    it.write("job/trigger-skills/deploy/SKILL.md", skill("deploy", "FROM-TRIGGER"));
    it.write("job/trigger-skills/test/SKILL.md", skill("test", "TEST-FROM-TRIGGER"));
    it.write("overlay/skills/test/SKILL.md", skill("test", "TEST-FROM-OVERLAY"));
    it.write("overlay/skills/lint/SKILL.md", skill("lint", "LINT-FROM-OVERLAY"));
    for (const name of ["deploy", "lint", "extra"]) it.write(`overlay/packages/p/skills/${name}/SKILL.md`, skill(name, `${name}-FROM-PACKAGE`));
    const { request, events } = await asked(it, { PI_PACKAGES: it.path("overlay/packages/p") });
    for (const text of ["FROM-REPOSITORY", "TEST-FROM-TRIGGER", "LINT-FROM-OVERLAY", "extra-FROM-PACKAGE"]) assert.ok(request.system.includes(text), text);
    for (const text of [">FROM-TRIGGER", "TEST-FROM-OVERLAY", "deploy-FROM-PACKAGE", "lint-FROM-PACKAGE"]) assert.ok(!request.system.includes(text), text);
    assert.deepEqual(events.filter(({ event }) => event === "skill_shadowed").map(({ skill: name }) => name).sort(), ["deploy", "deploy", "lint", "test"]);
  });

  test("those of the working tree are not discovered", async () => {
    const it = job();
    for (const tier of ["workspace/.pi", "workspace/.agents", "home/.pi/agent", "home/.agents"]) it.write(`${tier}/skills/x/SKILL.md`, skill("x", "UNPINNED"));
    assert.ok(!(await asked(it)).request.system.includes("UNPINNED"));
  });

  test("a flow that no tier provides is told, one that is there is not", async () => {
    const it = job();
    it.write("job/pi/skills/deploy/SKILL.md", skill("deploy", "d"));
    const flows = async (flow) => (await asked(it, { PI_FLOW: flow })).events.filter(({ event }) => event === "flow_not_loaded");
    assert.deepEqual(await flows("deploy"), []);
    assert.deepEqual((await flows("release")).map(({ flow }) => flow), ["release"]);
  });
});

test("prompt templates: the repository's before the overlay's before the packages'", async () => {
  const it = job();
  const template = (text) => `---\ndescription: ${text}\n---\n${text}\n`;
  it.write("workspace/.pi/prompts/a.md", template("a-repository"));
  for (const name of ["a", "b"]) it.write(`overlay/prompts/${name}.md`, template(`${name}-overlay`));
  for (const name of ["a", "b", "c"]) it.write(`overlay/packages/p/prompts/${name}.md`, template(`${name}-package`));
  it.extension("list.js", `pi.on("agent_start", () => require("node:fs").writeFileSync("commands.json", JSON.stringify(pi.getCommands())));`);
  await asked(it, { PI_PACKAGES: it.path("overlay/packages/p") });
  const commands = JSON.parse(readFileSync(it.path("workspace/commands.json"), "utf8"));
  assert.deepEqual(commands.map(({ description }) => description).sort(), ["a-repository", "b-overlay", "c-package"]);
});

test("nothing but the model is talked to", async () => {
  const it = job();
  // Every other connection would be made by one of these; the stub's host is the only name that may be asked for.
  const spy = it.path("spy.mjs");
  writeFileSync(spy, `import net from "node:net"; import fs from "node:fs"; const real = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) { const to = args[0]?.[0] ?? args[0]; fs.appendFileSync(${JSON.stringify(it.path("connects"))}, (to.host ?? to) + "\\n"); return real.apply(this, args); };`);
  await asked(it, { NODE_OPTIONS: `--import=${spy}` });
  const hosts = new Set(readFileSync(it.path("connects"), "utf8").trim().split("\n"));
  assert.deepEqual([...hosts], ["127.0.0.1"]);
});
