/** Where things stand inside a job container. Fixed by the contract with the host, no setting changes them. */
export const PLACES = Object.freeze({
  workspace: "/workspace",
  job: "/job",
  outbox: "/outbox",
  overlay: "/opt/pi-global",
  baked: "/opt/pi-dispatch",
});
