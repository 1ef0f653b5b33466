/* What somebody has opened or scrolled to stays so when a part of the page is fetched again. htmx keeps the focus. */
"use strict";

(() => {
  const KEPT = "details[open][id], .console-wide[id]";
  let kept = [];

  const state = ({ id, open, scrollLeft, scrollTop }) => ({ id, open, scrollLeft, scrollTop });

  function remember({ detail }) {
    if (detail.shouldSwap) kept = [...detail.target.querySelectorAll(KEPT)].map(state);
  }

  function restore() {
    for (const { id, open, scrollLeft, scrollTop } of kept) {
      const found = document.getElementById(id);
      if (!found) continue;
      if (open) found.open = true;
      found.scrollTo(scrollLeft, scrollTop);
    }
    kept = [];
  }

  document.addEventListener("htmx:beforeSwap", remember);
  document.addEventListener("htmx:afterSwap", restore);
})();
