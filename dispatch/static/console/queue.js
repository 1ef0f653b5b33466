/* The box at the head of a list of jobs ticks all those that are shown. Without this file each is ticked by hand. */
"use strict";

const ALL = "[data-chooses-all]";

document.querySelectorAll(ALL).forEach((box) => {
  box.labels[0].hidden = false;
});

document.addEventListener("change", (event) => {
  const table = event.target.closest("table");
  const all = table && table.querySelector(ALL);
  if (!all) {
    return;
  }
  const boxes = [...table.querySelectorAll("input[name=job]")];
  if (event.target === all) {
    boxes.forEach((box) => {
      box.checked = all.checked;
    });
  }
  const chosen = boxes.filter((box) => box.checked).length;
  all.checked = boxes.length > 0 && chosen === boxes.length;
  all.indeterminate = chosen > 0 && chosen < boxes.length;
});
