/* What somebody has opened, scrolled to or is on stays so when a part of the page is fetched again.
   htmx itself keeps the focus of what has an id; links without one are known again by their words. */
"use strict";

(() => {
  const KEPT = "details[open][id], .console-wide[id]";
  let kept = [];
  let focused = null;

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

  document.addEventListener("htmx:beforeSwap", remember);
  document.addEventListener("htmx:afterSwap", restore);
})();
