/* What tests.harness.usable asks a page. */
const FOCUSABLE = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const shown = (one) => one.outerHTML.slice(0, 120);

/* Of what is fetched again: what is read out each time, and what loses the focus (see console/live.js). */
function live() {
  const parts = all("[hx-get]").flatMap((part) => {
    const chosen = part.getAttribute("hx-select-oob");
    return chosen ? all(chosen) : [part];
  });
  return parts.flatMap((part) => [
    ...all("[role=alert]", part).map((one) => `an alert each time: ${shown(one)}`),
    ...all(FOCUSABLE, part).filter((one) => !one.id && !one.href).map((one) => `loses the focus: ${shown(one)}`),
  ]);
}

/* Whether a ring is drawn round what has the focus. */
function ringed(one) {
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  return document.activeElement === one && outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
}

/* What may take the focus, and where that would not be seen. */
function unseen() {
  const takes = all(FOCUSABLE).filter((one) => one.checkVisibility() && !one.disabled);
  const faults = takes.filter((one) => {
    one.focus({ preventScroll: true });
    return !ringed(one);
  });
  document.activeElement.blur();
  return faults.map((one) => `the focus is not seen: ${shown(one)}`);
}

/* What has the focus, by its name, and whether that can be seen; null where nothing of the page has it. */
function focused() {
  const one = document.activeElement;
  if (one === document.body) return null;
  const { top, bottom, left, right } = one.getBoundingClientRect();
  const within = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
  const label = one.labels?.length ? one.labels[0].textContent : one.textContent;
  const name = one.getAttribute("aria-label") ?? label;
  return { name: name.replace(/\s+/g, " ").trim(), seen: ringed(one) && within };
}

/* The kinds of elements that the page is made of, each with its parent's. */
function marks() {
  const classes = (one) => [...one.classList].filter((name) => !name.startsWith("htmx-")).sort();
  const kind = (one) => `${one.localName}.${classes(one).join(".")}[${one.getAttribute("role") ?? ""}]`;
  return [...new Set(all("body *").map((one) => `${kind(one.parentElement)}>${kind(one)}`))];
}

/* From which width on the rows of the page's tables have their cells side by side: see console/stacked.css. */
function sideBySide() {
  const stacked = [...document.styleSheets].find((one) => /\/stacked\b[^/]*\.css$/.test(one.href));
  return parseInt(/max-width: (\d+)px/.exec(stacked.media.mediaText)[1]) + 1;
}

/* What is wider than its place, as it is and were each of these names so long that no more than itself fits. */
function wide(names) {
  const long = (name) => name.repeat(40).slice(0, 40);
  const named = new RegExp(`\\b(${names.join("|")})\\b`, "g");
  const found = beside();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const changed = [];
  while (texts.nextNode()) {
    const { currentNode, currentNode: { data } } = texts;
    if (data.search(named) < 0) continue;
    changed.push([currentNode, data]);
    currentNode.data = data.replace(named, long);
  }
  found.push(...beside().map((one) => `with long names ${one}`));
  for (const [text, data] of changed) text.data = data;
  return found;
}

/* Tables of which a part is beside their frame, and the page of which a part is beside the window. */
function beside() {
  const cut = all(".console-wide, .results").filter((one) => one.scrollWidth > one.clientWidth);
  const found = cut.map((one) => `a table is wider than its frame: ${shown(one)}`);
  const { scrollWidth } = document.documentElement;
  return scrollWidth > innerWidth ? [...found, `the page is ${scrollWidth} px wide`] : found;
}
