/* Draws the charts of a page: the numbers of each stand beside it as JSON, and as a table for everybody. */
"use strict";

(() => {
  const COLOURS = 6;
  const BAR_HEIGHT = 30;
  const AROUND_BARS = 70;
  const drawn = new Map();
  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function colours(series) {
    let plain = 0;
    return series.map(({ tone }) => {
      if (tone !== "plain") return variable(`--chart-${tone}`);
      plain += 1;
      return variable(`--chart-${((plain - 1) % COLOURS) + 1}`);
    });
  }

  function tick(value, unit) {
    if (unit === "dollars") return `$${compact.format(value)}`;
    if (unit === "percent") return `${value} %`;
    if (unit !== "seconds") return Number.isInteger(value) ? compact.format(value) : "";
    if (value >= 5400) return `${compact.format(value / 3600)} h`;
    return value >= 90 ? `${compact.format(value / 60)} min` : `${value} s`;
  }

  function datasets({ kind, series }) {
    const colour = colours(series);
    return series.map((one, place) => ({
      label: one.label,
      data: one.values,
      shown: one.shown,
      backgroundColor: colour[place],
      borderColor: kind === "lines" ? colour[place] : variable("--body-bg"),
      borderWidth: kind === "lines" ? 2 : { top: 1 },
      pointRadius: one.values.length > 60 ? 0 : 2,
      spanGaps: false,
      maxBarThickness: 42,
    }));
  }

  function scales({ kind, unit }) {
    const stacked = kind !== "lines";
    const grid = variable("--hairline-color");
    const ink = variable("--body-quiet-color");
    const along = { stacked, grid: { display: false }, ticks: { color: ink, maxRotation: 0, autoSkipPadding: 12 } };
    if (kind === "bars") along.ticks.autoSkip = false;
    const across = {
      stacked,
      beginAtZero: true,
      grid: { color: grid },
      border: { display: false },
      ticks: { color: ink, maxTicksLimit: 6, callback: (value) => tick(value, unit) },
    };
    return kind === "bars" ? { x: across, y: along } : { x: along, y: across };
  }

  function configuration(data) {
    const isOne = data.series.length === 1;
    return {
      type: data.kind === "lines" ? "line" : "bar",
      data: { labels: data.labels, datasets: datasets(data) },
      options: {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        indexAxis: data.kind === "bars" ? "y" : "x",
        interaction: { mode: "index", intersect: false, axis: data.kind === "bars" ? "y" : "x" },
        scales: scales(data),
        plugins: {
          legend: { display: !isOne, labels: { color: variable("--body-fg"), boxWidth: 12 } },
          tooltip: {
            callbacks: { label: ({ dataset, dataIndex }) => ` ${dataset.label}: ${dataset.shown[dataIndex]}` },
          },
        },
      },
    };
  }

  function draw(figure) {
    const canvas = figure.querySelector("canvas");
    const source = document.getElementById(figure.dataset.chart);
    if (!canvas || !source) return;
    const data = JSON.parse(source.textContent);
    if (data.kind === "bars") canvas.parentElement.style.height = `${data.labels.length * BAR_HEIGHT + AROUND_BARS}px`;
    drawn.get(canvas)?.destroy();
    drawn.set(canvas, new window.Chart(canvas, configuration(data)));
  }

  function forgetGone() {
    for (const [canvas, chart] of drawn) {
      if (!canvas.isConnected) {
        chart.destroy();
        drawn.delete(canvas);
      }
    }
  }

  function drawAll(within) {
    if (!window.Chart) return;
    forgetGone();
    window.Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    within.querySelectorAll("[data-chart]").forEach(draw);
  }

  /* What somebody has opened stays open when a part of the page is fetched again. */
  function keepOpen() {
    const open = new Set([...document.querySelectorAll("details[open][id]")].map(({ id }) => id));
    document.body.addEventListener("htmx:afterSwap", () => {
      open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    }, { once: true });
  }

  function start() {
    drawAll(document);
    document.body.addEventListener("htmx:beforeSwap", keepOpen);
    document.body.addEventListener("htmx:afterSwap", () => drawAll(document));
    const redraw = () => drawAll(document);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
