/** pi's one agent session of this job, with everything that a repository could otherwise change pinned. */
import { Refusal } from "./refusal.mjs";
import { FORBIDDEN_TOOLS } from "./resources.mjs";

/** Retries are ours to fix (they cost money); cache warming would spend tokens outside any turn. */
export function pinnedSettings(pi, settings) {
  return pi.SettingsManager.inMemory({
    retry: {
      enabled: settings.retryMax > 0,
      maxRetries: settings.retryMax,
      baseDelayMs: settings.retryBaseMs,
      provider: { maxRetries: 0 },
    },
    cacheWarming: "off",
  });
}

/** { manager, verdict }: the transcript to go on with, working directory forced, and what the exit line says of it. */
export function openTranscript(pi, settings, places) {
  if (settings.sessionFile === undefined) {
    return { manager: pi.SessionManager.inMemory(places.workspace), verdict: { resumed: false, reason: "none" } };
  }
  let manager;
  try {
    manager = pi.SessionManager.open(settings.sessionFile, undefined, places.workspace);
  } catch (error) {
    throw new Refusal("config", `PI_SESSION_FILE holds no session of pi: ${error.message}`);
  }
  const resumed = manager.buildSessionContext().messages.length > 0;
  return { manager, verdict: { resumed, reason: resumed ? "ok" : "absent" } };
}

export async function createSession({ pi, places, agentDir, runtime, model, loader, settingsManager, transcript }) {
  const { session } = await pi.createAgentSession({
    cwd: places.workspace,
    agentDir,
    modelRuntime: runtime,
    model,
    settingsManager,
    resourceLoader: loader,
    sessionManager: transcript.manager,
    excludeTools: [FORBIDDEN_TOOLS], // also what an extension registers after it was loaded
  });
  return session;
}

/** Starts the extensions. `onError({ event, error, extensionPath })` hears of every fault of theirs. */
export async function bindExtensions(session, onError) {
  const cancelled = async () => ({ cancelled: true });
  await session.bindExtensions({
    mode: "print",
    commandContextActions: {
      waitForIdle: () => session.waitForIdle(),
      reload: () => session.reload(),
      // A job is one session: what would replace it is cancelled, not an error.
      newSession: cancelled,
      fork: cancelled,
      navigateTree: cancelled,
      switchSession: cancelled,
    },
    onError,
  });
}

/** Sends the job's one prompt and waits for everything that it started. */
export async function runPrompt(session, settings, prompt) {
  if (settings.command === undefined) {
    await session.prompt(prompt, { expandPromptTemplates: false }); // else task text could run a command or a skill
  } else {
    const [name] = settings.command.split(" ", 1);
    if (!session.extensionRunner.getCommand(name)) {
      // pi would send an unknown command to the model as text.
      throw new Refusal("command-unregistered", `no extension registers the command ${JSON.stringify(name)}`);
    }
    await session.prompt(prompt);
  }
  await session.waitForIdle(); // a command's message starts its run after prompt() has returned
}

/** How full the context is, or undefined when pi cannot tell (right after a compaction). */
export function contextOf(session) {
  const usage = session?.getContextUsage();
  if (!Number.isSafeInteger(usage?.tokens) || !(usage.contextWindow > 0)) return undefined;
  return { tokens: usage.tokens, window: usage.contextWindow };
}
