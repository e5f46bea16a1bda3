// Draws the charts of the page with uPlot. The data is what page.go writes; null is not known.
"use strict";

const colours = ["#0b62c4", "#c4320b", "#1a7f37", "#8250df", "#9a6700", "#116b74", "#bf3989", "#57606a"];

function digits(v) {
  return v.toFixed(Math.abs(v) < 9.995 ? 2 : 1);
}

function scaled(v, base, names) {
  let i = 0, a = Math.abs(v);
  while (a >= base * 0.99995 && i < names.length - 1) { a /= base; i++; }
  return (v < 0 ? "-" : "") + (i === 0 && Number.isInteger(a) ? String(a) : digits(a)) + " " + names[i];
}

const formats = {
  "": v => (Number.isInteger(v) ? String(v) : String(Number(v.toPrecision(4)))),
  "count": v => Math.round(v * 100) / 100 + "",
  "ratio": v => (v * 100).toFixed(1) + " %",
  "bytes": v => scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
  "ns": v => Math.abs(v) < 1e9 ? scaled(v, 1000, ["ns", "µs", "ms"]) : digits(v / 1e9) + " s",
};

// tick drops the zeros that a reader does not need: 2 GiB, not 2.00 GiB.
function tick(unit, v) {
  if (v === 0) return "0";
  return formats[unit](v).replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");
}

function xText(chart, v) {
  if (!chart.x.categories) return formats[chart.x.unit](v);
  return chart.x.categories[Math.round(v)] ?? "";
}

// incrs are the steps between ticks: powers of two for bytes, so that ticks are round.
function incrs(unit) {
  if (unit === "bytes") return Array.from({ length: 51 }, (_, i) => 2 ** i);
  return undefined;
}

function xAxis(chart) {
  const axis = { label: chart.x.label || undefined, size: 44, values: (u, vs) => vs.map(v => tick(chart.x.unit, v)) };
  if (!chart.x.categories) return { ...axis, incrs: incrs(chart.x.unit) };
  const longest = Math.max(...chart.x.categories.map(c => c.length));
  return {
    ...axis,
    space: Math.min(20 + 7 * longest, 160),
    incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000],
    values: (u, vs) => vs.map(v => (Number.isInteger(v) ? chart.x.categories[v] ?? "" : "")),
  };
}

function yRange(chart) {
  return (u, low, high) => {
    for (const l of chart.limits ?? []) { low = Math.min(low, l.Y); high = Math.max(high, l.Y); }
    if (low === null || high === null) return [0, 1];
    const bottom = chart.y.fromZero && low >= 0 ? 0 : low;
    const span = high - bottom || Math.abs(high) || 1;
    // names of marks stand at the top
    return [bottom === 0 ? 0 : bottom - span * 0.06, high + span * (chart.marks?.length ? 0.12 : 0.06)];
  };
}

function lineOf(chart, s, i) {
  const colour = colours[i % colours.length];
  const few = s.x.length <= 120;
  return {
    label: s.name, stroke: colour, width: s.dots ? 0 : 2, dash: s.dashed ? [8, 5] : undefined,
    points: { show: s.dots || few, size: s.dots ? 7 : 5, fill: s.dots ? colour : "#fff" },
    value: (u, v, si, di) => (di == null ? "" : v == null ? "unknown" : formats[chart.y.unit](v)),
  };
}

// build turns a chart into uPlot's columns: x joined over the series; bands as two hidden columns.
function build(chart) {
  const tables = [], series = [{ label: chart.x.label || "x", value: (u, v) => (v == null ? "" : xText(chart, v)) }], bands = [];
  chart.series.forEach((s, i) => {
    const columns = [s.x, s.y];
    series.push(lineOf(chart, s, i));
    if (s.band) {
      columns.push(s.high, s.low);
      const edge = { class: "band", stroke: "transparent", points: { show: false } };
      series.push(edge, { ...edge });
      bands.push({ series: [series.length - 2, series.length - 1], fill: colours[i % colours.length] + "2e" });
    }
    tables.push(columns);
  });
  return { data: tables.length === 1 ? tables[0] : uPlot.join(tables, tables.map(t => t.map(() => 2))), series, bands };
}

function drawLines(chart) {
  return u => {
    const c = u.ctx, b = u.bbox, px = devicePixelRatio;
    c.save();
    c.lineWidth = 1.5 * px;
    c.font = `${12 * px}px system-ui, sans-serif`;
    for (const l of chart.limits ?? []) {
      const y = Math.round(u.valToPos(l.Y, "y", true));
      c.strokeStyle = c.fillStyle = "#cf222e";
      c.setLineDash([6 * px, 4 * px]);
      c.beginPath(); c.moveTo(b.left, y); c.lineTo(b.left + b.width, y); c.stroke();
      c.textAlign = "left"; c.textBaseline = "bottom";
      c.fillText(`${l.Name} ${tick(chart.y.unit, l.Y)}`, b.left + 6 * px, y - 3 * px);
    }
    for (const m of chart.marks ?? []) {
      const x = Math.round(u.valToPos(m.X, "x", true));
      if (x < b.left || x > b.left + b.width) continue;
      c.strokeStyle = c.fillStyle = "#57606a";
      c.setLineDash([3 * px, 3 * px]);
      c.beginPath(); c.moveTo(x, b.top); c.lineTo(x, b.top + b.height); c.stroke();
      const right = x > b.left + b.width * 0.7;
      c.textAlign = right ? "right" : "left"; c.textBaseline = "top";
      c.fillText(m.Name, x + (right ? -5 : 5) * px, b.top + 4 * px);
    }
    c.restore();
  };
}

function noteAt(chart, u, note) {
  const i = u.cursor.idx, said = [];
  if (i != null) {
    for (const s of chart.series) {
      const at = s.x.indexOf(u.data[0][i]);
      if (at < 0) continue;
      const parts = [];
      if (s.low[at] != null) parts.push(`${formats[chart.y.unit](s.low[at])} to ${formats[chart.y.unit](s.high[at])}`);
      if (s.notes[at]) parts.push(s.notes[at]);
      if (parts.length) said.push(`${s.name}: ${parts.join(", ")}`);
    }
  }
  note.textContent = said.join("; ");
}

function drawChart(place, chart) {
  const { data, series, bands } = build(chart);
  const note = document.createElement("div");
  note.className = "note";
  const size = () => ({ width: Math.max(place.clientWidth, 320), height: Math.round(Math.min(Math.max(place.clientWidth * 0.45, 260), 460)) });
  const single = chart.x.categories && chart.x.categories.length;
  const plot = new uPlot({
    ...size(), series, bands,
    scales: {
      x: { time: false, range: single ? [-0.5, chart.x.categories.length - 0.5] : undefined },
      y: { range: yRange(chart) },
    },
    axes: [xAxis(chart), {
      label: chart.y.label || undefined, size: 84, space: 44, incrs: incrs(chart.y.unit),
      values: (u, vs) => vs.map(v => tick(chart.y.unit, v)),
    }],
    cursor: { drag: { x: true, y: false } },
    hooks: { draw: [drawLines(chart)], setCursor: [u => noteAt(chart, u, note)] },
  }, data, place);
  place.append(note);
  addEventListener("resize", () => plot.setSize(size()));
}

function drawCharts(charts) {
  for (const place of document.querySelectorAll(".chart")) {
    drawChart(place, charts[Number(place.dataset.chart)]);
  }
}
