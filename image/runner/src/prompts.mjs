/**
 * The text that is appended to pi's own system prompt. We read the files ourselves and pass the text: pi takes
 * a path that it cannot read as the prompt itself, so a lost guardrails file would become a prompt that is a path.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Refusal } from "./refusal.mjs";

/** Guardrails first, then the outbox protocol (only where there is an outbox), overlay persona, repository persona. */
export function appendedPrompts(places) {
  const texts = [must(join(places.baked, "HARD_RULES.md"))];
  if (existsSync(places.outbox)) texts.push(must(join(places.baked, "OUTBOX_PROTOCOL.md")));
  for (const path of [join(places.overlay, "APPEND_SYSTEM.md"), join(places.job, "pi", "APPEND_SYSTEM.md")]) {
    if (existsSync(path)) texts.push(read(path, "persona-unreadable"));
  }
  return texts.filter((text) => text.trim() !== "");
}

function must(path) {
  const text = read(path, "guardrails-missing");
  if (text.trim() === "") throw new Refusal("guardrails-missing", `${path} is empty`);
  return text;
}

function read(path, reason) {
  try {
    return readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    throw new Refusal(reason, `${path} cannot be read (${error?.code ?? error})`);
  }
}
