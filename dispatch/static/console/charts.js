/* Draws the charts of a page: the numbers of each stand beside it as JSON, and as a table for everybody. */
"use strict";

(() => {
  const COLOURS = 6;
  const BAR_HEIGHT = 30;
  const AROUND_BARS = 70;
  const LONGEST_LABEL = 28;
  const MOST_TICKS = 6;
  const DAY = 86400;
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, DAY, 2 * DAY, 7 * DAY];
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

  /* Spans are written in one unit: that of the longest of the scale. */
  function tick(value, unit, longest) {
    if (unit === "dollars") return `$${compact.format(value)}`;
    if (unit === "percent") return `${value} %`;
    if (unit !== "seconds") return Number.isInteger(value) ? compact.format(value) : "";
    if (longest >= 2 * DAY) return `${compact.format(value / DAY)} d`;
    if (longest >= 7200) return `${compact.format(value / 3600)} h`;
    return longest >= 120 ? `${compact.format(value / 60)} min` : `${value} s`;
  }

  /* Whole minutes, hours or days between the lines of a scale of seconds; of other units the library's choice. */
  function step({ kind, unit, series, labels }) {
    if (unit !== "seconds") return undefined;
    const tops = labels.map((_, place) => {
      const values = series.map((one) => one.values[place] ?? 0);
      return kind === "lines" ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0);
    });
    const top = Math.max(0, ...tops);
    return STEPS.find((one) => top / one <= MOST_TICKS);
  }

  const cut = (label) => (label.length > LONGEST_LABEL ? `${label.slice(0, LONGEST_LABEL)}…` : label);

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

  function scales(data) {
    const { kind, unit, labels } = data;
    const stacked = kind !== "lines";
    const grid = variable("--hairline-color");
    const ink = variable("--body-quiet-color");
    const along = { stacked, grid: { display: false }, ticks: { color: ink, maxRotation: 0, autoSkipPadding: 12 } };
    if (kind === "bars") {
      along.ticks.autoSkip = false;
      along.ticks.callback = (value, place) => cut(labels[place]);
    }
    const across = {
      stacked,
      beginAtZero: true,
      grid: { color: grid },
      border: { display: false },
      suggestedMax: unit === "percent" ? 100 : undefined,
      ticks: {
        color: ink,
        maxTicksLimit: MOST_TICKS + 2,
        stepSize: step(data),
        callback: (value, _place, ticks) => tick(value, unit, ticks.at(-1).value),
      },
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

  function start() {
    drawAll(document);
    const redraw = () => drawAll(document);
    document.body.addEventListener("htmx:afterSwap", redraw);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
