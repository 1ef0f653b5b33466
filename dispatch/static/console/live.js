/* What somebody has opened, scrolled to or is on stays so when a part of the page is fetched again.
   htmx itself keeps the focus of what has an id; links without one are known again by their words.
   What could not be fetched is told: else a page would go on saying what was true once. */
"use strict";

(() => {
  const KEPT = "details[open][id], .console-wide[id]";
  let kept = [];
  let focused = null;
  const missed = new Set();

  const state = ({ id, open, scrollLeft, scrollTop }) => ({ id, open, scrollLeft, scrollTop });
  const isLike = (one) => (other) => other.href === one.href && other.textContent === one.textContent;

  function remember({ detail: { shouldSwap, target } }) {
    if (!shouldSwap) return;
    kept = [...target.querySelectorAll(KEPT)].map(state);
    const one = document.activeElement;
    focused = !one.id && one.matches("a[href]") && target.contains(one) ? one : null;
  }

  function restore() {
    for (const { id, open, scrollLeft, scrollTop } of kept) {
      const found = document.getElementById(id);
      if (!found) continue;
      if (open) found.open = true;
      found.scrollTo(scrollLeft, scrollTop);
    }
    if (focused && !focused.isConnected) {
      [...document.links].find(isLike(focused))?.focus({ preventScroll: true });
    }
    kept = [];
    focused = null;
  }

  const isFetched = ({ detail }) => detail.requestConfig.verb === "get";

  function miss(event) {
    if (!isFetched(event)) return;
    missed.add(event.detail.requestConfig.path);
    if (document.getElementById("console-missed")) return;
    const note = document.createElement("p");
    note.id = "console-missed";
    note.className = "console-notice console-notice-bad";
    note.setAttribute("role", "alert");
    const at = new Date().toISOString().slice(11, 19);
    note.textContent = `Not refreshed since ${at} UTC: what stands here may be old. It is tried again.`;
    document.getElementById("content").prepend(note);
  }

  function met(event) {
    if (!event.detail.successful || !isFetched(event)) return;
    missed.delete(event.detail.requestConfig.path);
    if (!missed.size) document.getElementById("console-missed")?.remove();
  }

  document.addEventListener("htmx:responseError", miss);
  document.addEventListener("htmx:sendError", miss);
  document.addEventListener("htmx:timeout", miss);
  document.addEventListener("htmx:afterRequest", met);
  document.addEventListener("htmx:beforeSwap", remember);
  document.addEventListener("htmx:afterSwap", restore);
})();
