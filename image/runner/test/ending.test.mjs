/** Commands, sessions, signals, deadlines, and runs that do not end by themselves. */
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { describe, test } from "node:test";
import { bash, runs, until } from "./fixture.mjs";

const job = runs({
  hello: [{ say: "hello" }],
  sleeps: [bash("echo $$ > shell.pid; sleep 300")],
  stalls: [{ say: "thinking", stall: true }],
  hangs: [{ calls: [{ name: "hang", arguments: {} }] }],
  forever: [bash("true")],
});

const command = (name, body) => `pi.registerCommand(${JSON.stringify(name)}, { description: "c", handler: async (args, ctx) => { ${body} } });`;
const isAlive = (pid) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("commands", { concurrency: 3 }, () => {
  test("one runs with its arguments, without the model", async () => {
    const it = job();
    it.extension("c.js", command("triage", `require("node:fs").writeFileSync("args.txt", args);`));
    const { code, exit } = await it.run("hello", { PI_COMMAND: "triage all  3" });
    assert.deepEqual([code, exit.reason, exit.turns, it.requests().length], [0, "command-completed", 0, 0]);
    assert.equal(readFileSync(it.path("workspace/args.txt"), "utf8"), "all  3");
  });

  test("the run that one starts is waited for, though prompt() has returned", async () => {
    const it = job();
    it.extension("c.js", command("ask", `pi.sendUserMessage("from the command: " + args);`));
    const { code, exit } = await it.run("hello", { PI_COMMAND: "ask me" });
    assert.deepEqual([code, exit.reason, exit.turns, it.requests().length], [0, "completed", 1, 1]);
    assert.equal(it.requests()[0].messages.at(-1).text, "from the command: me");
  });

  test("one that raises is infra, its words in the exit line", async () => {
    const it = job();
    it.extension("c.js", command("bad", `throw new Error("boom");`));
    const { code, exit } = await it.run("hello", { PI_COMMAND: "bad" });
    assert.deepEqual([code, exit.reason, exit.message], [1, "command-failed", "boom"]);
  });

  test("a name that two extensions register is refused rather than guessed", async () => {
    const it = job();
    it.extension("a.js", command("same", ""));
    it.extension("b.js", command("same", ""));
    const { code, exit } = await it.run("hello", { PI_COMMAND: "same" });
    assert.deepEqual([code, exit.reason, it.requests().length], [2, "command-unregistered", 0]);
  });

  test("a template or a skill is no command", async () => {
    const it = job();
    it.write("workspace/.pi/prompts/deploy.md", "TEMPLATE");
    const { exit } = await it.run("hello", { PI_COMMAND: "deploy" });
    assert.deepEqual([exit.reason, it.requests().length], ["command-unregistered", 0]);
  });

  test("the turns and tokens of a session that one opens in this process are metered and bounded", async () => {
    const it = job();
    it.extension("nest.js", command("nest", `
      const { createAgentSession, SessionManager, ModelRuntime } = await import("@earendil-works/pi-coding-agent");
      const modelRuntime = await ModelRuntime.create({ modelsPath: ${JSON.stringify(it.path("overlay/models.json"))} });
      for (let i = 0; i < 5; i += 1) {
        const { session } = await createAgentSession({ modelRuntime, model: modelRuntime.getModel("stub", "hello"), sessionManager: SessionManager.inMemory() });
        await session.prompt("nested").catch(() => {});
        session.dispose();
      }`));
    const { code, exit } = await it.run("hello", { PI_COMMAND: "nest", PI_MAX_TOKENS: "200" });
    assert.deepEqual([code, exit.reason, exit.tokens.total, exit.tokens.metered, it.requests().length], [2, "token-budget", 240, true, 2]);
  });
});

describe("sessions", { concurrency: 3 }, () => {
  test("an empty file is a cold start and is filled; the next run goes on and counts only itself", async () => {
    const it = job();
    const file = it.write("session/current.jsonl", "");
    const first = await it.run("hello", { PI_SESSION_FILE: file });
    assert.deepEqual([first.exit.session, first.exit.tokens.total], [{ resumed: false, reason: "absent" }, 120]);
    assert.ok(statSync(file).size > 0);
    it.write("job/prompt.md", "And then?");
    const second = await it.run("hello", { PI_SESSION_FILE: file });
    assert.deepEqual([second.exit.session, second.exit.tokens.total, second.exit.turns], [{ resumed: true, reason: "ok" }, 120, 1]);
    assert.deepEqual(it.requests()[1].messages.filter(({ role }) => role === "user").map(({ text }) => text), ["Do the task.", "And then?"]);
  });

  test("the working directory of the transcript is not believed", async () => {
    const it = job();
    const file = it.write("session/current.jsonl", `${JSON.stringify({ type: "session", version: 3, id: "00000000-0000-4000-8000-000000000000", timestamp: "2025-01-01T00:00:00.000Z", cwd: "/etc" })}\n`);
    const { code } = await it.run("hello", { PI_SESSION_FILE: file });
    assert.equal(code, 0);
    assert.ok(!it.requests()[0].system.includes("/etc"));
    assert.ok(it.requests()[0].system.includes(it.path("workspace")));
  });
});

describe("stops", { concurrency: 3 }, () => {
  for (const signal of ["SIGTERM", "SIGINT"]) {
    test(`${signal} ends a running tool and its children, code 2, exit line written`, async () => {
      const it = job();
      const { child, done, out } = it.start("sleeps");
      await until(() => out.stdout.includes('"event":"tool"'));
      await until(() => statSync(it.path("workspace/shell.pid"), { throwIfNoEntry: false })?.size > 0);
      child.kill(signal);
      const { code, exit } = await done;
      assert.deepEqual([code, exit.code, exit.reason, exit.turns], [2, 2, "terminated", 1]);
      assert.ok(!isAlive(Number(readFileSync(it.path("workspace/shell.pid"), "utf8"))));
    });
  }

  test("SIGTERM ends an answer that does not come", async () => {
    const it = job();
    const { child, done } = it.start("stalls");
    await until(() => it.requests().length > 0);
    child.kill("SIGTERM");
    const { code, exit } = await done;
    assert.deepEqual([code, exit.reason, exit.usage.models[0].unpriced], [2, "terminated", 1]);
  });

  test("the deadline ends it, code 2", async () => {
    const it = job();
    const { code, exit } = await it.run("stalls", { PI_JOB_DEADLINE: String(Date.now() / 1000 + 2.5) });
    assert.deepEqual([code, exit.reason], [2, "deadline"]);
  });

  test("an abort that does not take is ended after the grace, with the same code", async () => {
    const it = job();
    it.extension("hang.js", `pi.registerTool({ name: "hang", label: "h", description: "h", parameters: { type: "object", properties: {} }, execute: () => new Promise(() => setInterval(() => {}, 1000)) });`);
    const { child, done, out } = it.start("hangs", {}, { graceMs: 300 });
    await until(() => out.stdout.includes('"event":"tool"'));
    child.kill("SIGTERM");
    const { code, exit } = await done;
    assert.deepEqual([code, exit.reason], [2, "terminated"]);
  });

  test("a timer that an extension leaves behind does not keep the job alive", async () => {
    const it = job();
    it.extension("timer.js", `setInterval(() => {}, 1000);`);
    assert.equal((await it.run("hello")).code, 0);
  });

  test("an extension that goes on after the cap asks the model nothing more", async () => {
    const it = job();
    it.extension("again.js", `pi.on("agent_end", () => { globalThis.n = (globalThis.n ?? 0) + 1; if (globalThis.n < 4) pi.sendUserMessage("go on", { deliverAs: "followUp" }); });`);
    const { code, exit } = await it.run("forever", { PI_MAX_TURNS: "2" });
    assert.deepEqual([code, exit.reason, exit.turns, it.requests().length], [2, "turn-budget", 2, 2]);
  });

  for (const [what, body, reason] of [
    ["calls process.exit(0)", `pi.on("turn_start", () => process.exit(0));`, /from within/],
    ["raises in a timer", `pi.on("turn_start", () => { setTimeout(() => { throw new Error("boom"); }); });`, /boom/],
    ["leaves a rejection", `pi.on("turn_start", () => { void Promise.reject(new Error("boom")); });`, /boom/],
  ]) {
    test(`an extension that ${what} makes no success of it`, async () => {
      const it = job();
      it.extension("bad.js", body);
      const { code, exit } = await it.run("stalls");
      assert.deepEqual([code, exit.code, exit.reason], [1, 1, "runner-fault"]);
      assert.match(exit.message, reason);
    });
  }
});
