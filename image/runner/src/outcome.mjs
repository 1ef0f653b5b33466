/** How a job ended, as exit code, reason token and message. Pure. */

/** How pi writes a provider's status: "401: {…}", "401 {…}" or "Mistral API error (401): {…}", by the kind of API. */
const REFUSED_CREDENTIAL = /^(?:(?:401|403)(?::| |$)|[\w .-]{1,64} API error \((?:401|403)\): )/;

const BY_STOP_REASON = {
  stop: { code: 0, reason: "completed" },
  toolUse: { code: 0, reason: "completed" },
  length: { code: 0, reason: "truncated" },
  aborted: { code: 2, reason: "aborted" },
};

/**
 * `cause`: why we stopped the run ourselves, if we did; it goes before everything.
 * `failure`: { reason, error } of a fault of ours or of a command's handler.
 * `last`: the last assistant message of THIS job; `isRetryable`: pi's own predicate on it.
 */
export function judge({ cause, failure, last, isCommand, isRetryable = () => true }) {
  if (cause) return { code: 2, reason: cause };
  if (failure) return { code: 1, reason: failure.reason, message: messageOf(failure.error) };
  if (!last) {
    return isCommand
      ? { code: 0, reason: "command-completed" }
      : { code: 1, reason: "no-result", message: "the run ended without an answer of the model" };
  }
  const known = Object.hasOwn(BY_STOP_REASON, last.stopReason) ? BY_STOP_REASON[last.stopReason] : undefined;
  if (known) return { ...known };
  const message = last.errorMessage ?? `stop reason ${last.stopReason}`;
  if (last.stopReason !== "error") return { code: 1, reason: "unknown-stop", message };
  if (REFUSED_CREDENTIAL.test(message) && !isRetryable(last)) {
    return { code: 2, reason: "provider-auth-refused", message };
  }
  return { code: 1, reason: "provider-error", message };
}

export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
