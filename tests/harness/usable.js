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

/* Tables of which a part is beside their frame. */
const scrolled = () =>
  all(".console-wide, .results")
    .filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => `a table is wider than its frame: ${shown(one)}`);

const fits = () => document.documentElement.scrollWidth <= innerWidth;
