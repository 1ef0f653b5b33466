/** One job from start to exit line. The exit code is the contract with the host; everything printed is telemetry. */
import { PI_AI_VERSION } from "@earendil-works/pi-ai";
import { isRetryableAssistantError } from "@earendil-works/pi-ai/compat";
import * as pi from "@earendil-works/pi-coding-agent";
import { Ending } from "./ending.mjs";
import { Meter } from "./meter.mjs";
import { findModel } from "./model.mjs";
import { checkHome, checkMounts, readPrompt } from "./mounts.mjs";
import { judge } from "./outcome.mjs";
import { appendedPrompts } from "./prompts.mjs";
import { Refusal } from "./refusal.mjs";
import { Report } from "./report.mjs";
import { loadResources, reportFlow } from "./resources.mjs";
import { bindExtensions, contextOf, createSession, openTranscript, pinnedSettings, runPrompt } from "./session.mjs";
import { readSettings } from "./settings.mjs";
import { Stop } from "./stop.mjs";
import { TurnBudget } from "./turns.mjs";

/** Runs the job of `env` and ends the process with its code. Never returns normally, never throws. */
export async function runJob({ env, places, graceMs }) {
  const report = new Report({ jobId: env.PI_JOB_ID, env });
  const stop = new Stop();
  const ending = new Ending({ report, stop, graceMs });
  ending.piAi = PI_AI_VERSION;
  try {
    const job = { env, places, report, stop, ending };
    stop.onSignals("terminated");
    ending.finish(await work(job, readSettings(env)));
  } catch (error) {
    ending.finish(refusedOrBroken(error, stop));
  }
}

function refusedOrBroken(error, stop) {
  if (error instanceof Refusal && !stop.cause) return { code: 2, reason: error.reason, message: error.message };
  return judge({ cause: stop.cause, failure: { reason: "runner-fault", error } });
}

async function work(job, settings) {
  const { places, stop, ending } = job;
  if (settings.deadlineMs !== undefined) stop.at(settings.deadlineMs, "deadline");
  if (stop.cause) return judge({ cause: stop.cause });
  const agentDir = pi.getAgentDir();
  checkHome(agentDir);
  checkMounts(settings, places);
  process.chdir(places.workspace);
  const prompt = readPrompt(settings, places);
  const prompts = appendedPrompts(places);
  const watch = watchSpending(job, settings);
  const session = await prepare({ ...job, settings, agentDir, prompts });
  ending.onTeardown(watch.follow(session), () => session.dispose());
  ending.contextOf = () => contextOf(session);
  stop.onStop(() => void session.abort().catch(() => {}));
  if (!stop.cause) await bindExtensions(session, (error) => watch.extensionFailed(error));
  if (!stop.cause) await runPrompt(session, settings, prompt);
  return judge({
    cause: stop.cause,
    failure: watch.commandFailure,
    last: watch.last,
    isCommand: settings.command !== undefined,
    isRetryable: isRetryableAssistantError,
  });
}

async function prepare({ places, report, ending, settings, agentDir, prompts }) {
  const { runtime, model } = await findModel({ pi, settings, places, agentDir });
  const settingsManager = pinnedSettings(pi, settings);
  const transcript = openTranscript(pi, settings, places);
  ending.session = transcript.verdict;
  const loader = await loadResources({ pi, settings, places, agentDir, settingsManager, prompts, report });
  reportFlow(settings.flow, loader, report);
  return createSession({ pi, places, agentDir, runtime, model, loader, settingsManager, transcript });
}

/** The budgets, the meter and the log lines, all fed by pi's events. */
function watchSpending({ report, stop, ending }, settings) {
  const turns = new TurnBudget(settings.maxTurns);
  const meter = new Meter({
    isClosed: () => stop.cause !== null,
    onUsage: (total) => settings.maxTokens !== undefined && total >= settings.maxTokens && stop.now("token-budget"),
  });
  meter.watch(pi.ModelRuntime);
  ending.turns = turns;
  ending.meter = meter;
  const watch = {
    last: undefined,
    commandFailure: undefined,
    extensionFailed({ event, error, extensionPath }) {
      report.event("extension_failed", { extension: extensionPath, during: event, error });
      if (event === "command") this.commandFailure = { reason: "command-failed", error };
    },
    follow: (session) => session.subscribe((event) => {
      // After a stop pi still opens a turn, and an extension may open more: none of them counts or asks the model.
      if (stop.cause && event.type === "turn_start") return stop.now(stop.cause);
      if (turns.exceededBy(event)) return stop.now("turn-budget");
      if (event.type === "message_end" && event.message.role === "assistant") {
        watch.last = event.message;
        if (!meter.metered && event.message.stopReason !== "aborted") meter.add(event.message, session.model);
      }
      tell(event, report, turns);
    }),
  };
  return watch;
}

/** What somebody who follows the job wants to see, a line each. */
function tell(event, report, turns) {
  switch (event.type) {
    case "turn_start":
      return report.event("turn", { turn: turns.turns });
    case "tool_execution_start":
      return report.event("tool", { tool: event.toolName });
    case "auto_retry_start":
      return report.event("provider_retry", { attempt: event.attempt, of: event.maxAttempts, error: event.errorMessage });
    case "message_end":
      return event.message.role === "assistant" ? report.event("reply", reply(event.message)) : undefined;
    case "compaction_end":
      return report.event("compacted", { reason: event.reason, error: event.errorMessage });
  }
}

function reply({ stopReason, content, usage }) {
  const text = content.filter((part) => part.type === "text").map((part) => part.text).join("\n").trim();
  return { stopReason, tokens: usage?.totalTokens ?? 0, text: text === "" ? undefined : text };
}
