/**
 * The lines on stdout: one JSON object each, first key `event`, a newline on BOTH sides, so that what an
 * extension prints without a newline cannot glue itself to a line of ours. ASCII only: the host bounds its
 * tail in bytes, and an escaped line has as many bytes as characters.
 */
import { writeSync } from "node:fs";

/** Escaped characters that one text of a line may take: nine usage rows and this stay well inside 8 KiB. */
export const TEXT_CAP = 2000;

const SECRET_NAME = /KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|_PAT$/i;
const SHORTEST_SECRET = 8;

export class Report {
  #jobId;
  #write;
  #secrets;

  /** `write` takes a string and may not fail; `env` is searched for values that no line may show. */
  constructor({ jobId = null, env = {}, write = writeStdout } = {}) {
    this.#jobId = jobId;
    this.#write = write;
    this.#secrets = Object.entries(env)
      .filter(([name, value]) => SECRET_NAME.test(name) && (value?.length ?? 0) >= SHORTEST_SECRET)
      .map(([, value]) => value)
      .sort((one, other) => other.length - one.length);
  }

  /** One line. Texts are redacted and capped; everything else is written as it is. */
  event(name, fields = {}) {
    const line = { event: name, jobId: this.#jobId };
    for (const [key, value] of Object.entries(fields)) {
      if (value !== undefined) line[key] = typeof value === "string" ? this.#clean(value) : value;
    }
    this.#write(`\n${ascii(JSON.stringify(line))}\n`);
  }

  #clean(text) {
    let clean = text.toWellFormed();
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, "[redacted]");
    return capped(clean, TEXT_CAP);
  }
}

/** The longest beginning of `text` whose JSON form (without the quotes) has at most `most` ASCII characters. */
export function capped(text, most) {
  if (text.length * 6 <= most || escapedLength(text) <= most) return text;
  const mark = " [cut]";
  let kept = "";
  let length = mark.length;
  for (const character of text) {
    length += escapedLength(character);
    if (length > most) break;
    kept += character;
  }
  return kept + mark;
}

function escapedLength(text) {
  return ascii(JSON.stringify(text)).length - 2;
}

function ascii(json) {
  return json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Synchronous, because process.exit follows; a full pipe is waited for, a closed one is nobody's loss. */
function writeStdout(text) {
  const bytes = Buffer.from(text);
  let from = 0;
  while (from < bytes.length) {
    try {
      from += writeSync(1, bytes, from);
    } catch (error) {
      if (error.code !== "EAGAIN") return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
