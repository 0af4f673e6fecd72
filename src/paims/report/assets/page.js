// Sliders and curves: what the emulator says along each input through the chosen point.
"use strict";

(function () {
  const source = document.getElementById("mixture-data");
  const root = document.getElementById("explore");
  if (!source || !root) return;
  const data = JSON.parse(source.textContent);
  const mixture = new Mixture(data);
  const LEVELS = [0.025, 0.25, 0.75, 0.975];
  const N_POINTS = 61;
  const WIDTH = 320;
  const HEIGHT = 200;
  const EDGE = { left: 52, right: 18, top: 10, bottom: 36 };
  const SVG = "http://www.w3.org/2000/svg";
  // For those who want the numbers: paims.predict([x1, x2, ...], [0.025, 0.975]).
  window.paims = {
    names: data.names,
    predict: (x, levels) => mixture.predict(x, levels),
    along: (x, i, values, levels) => mixture.line(x, i, values, levels),
  };

  const point = data.ends.map(([low, high]) => 0.5 * (low + high));
  let limits = null;

  function short(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e5 || size < 1e-3) return value.toExponential(2).replace("e+", "e");
    return String(Number(value.toPrecision(4)));
  }

  function element(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (parent) parent.appendChild(made);
    return made;
  }

  function ticks(low, high, count) {
    const raw = (high - low) / count;
    const unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw / 1.6);
    const out = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
      out.push(k * step);
    }
    return out;
  }

  // One chart: bands, mean, the chosen value, axes. Built once, redrawn by `draw`.
  function chart(i) {
    const figure = document.createElement("figure");
    figure.className = "slice";
    const svg = element("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `Predicted output along ${data.names[i]}`,
    });
    const parts = {
      axes: element("g", { class: "axes" }, svg),
      wide: element("path", { class: "band95" }, svg),
      narrow: element("path", { class: "band50" }, svg),
      mean: element("path", { class: "mean" }, svg),
      mark: element("line", { class: "mark", y1: EDGE.top, y2: HEIGHT - EDGE.bottom }, svg),
      dot: element("circle", { class: "dot", r: 4 }, svg),
    };
    figure.appendChild(svg);
    return { figure, svg, ...parts };
  }

  const form = document.createElement("form");
  form.className = "sliders";
  form.addEventListener("submit", (event) => event.preventDefault());
  const sliders = data.names.map((name, i) => {
    const [low, high] = data.ends[i];
    const row = document.createElement("div");
    row.className = "slider";
    const label = document.createElement("label");
    label.textContent = name;
    label.htmlFor = `slider-${i}`;
    const range = document.createElement("input");
    range.type = "range";
    range.id = `slider-${i}`;
    range.min = 0;
    range.max = 200;
    range.step = 1;
    range.value = 100;
    const box = document.createElement("input");
    box.type = "number";
    box.step = "any";
    box.min = low;
    box.max = high;
    box.value = short(point[i]);
    box.setAttribute("aria-label", `Value of ${name}`);
    range.addEventListener("input", () => {
      point[i] = low + ((high - low) * Number(range.value)) / 200;
      box.value = short(point[i]);
      range.setAttribute("aria-valuetext", box.value);
      refresh();
    });
    range.setAttribute("aria-valuetext", box.value);
    box.addEventListener("change", () => {
      const typed = Number(box.value);
      if (box.value === "" || !Number.isFinite(typed)) return;
      // The emulator knows the box of the runs; outside of it it would only extrapolate.
      point[i] = Math.min(Math.max(typed, low), high);
      if (point[i] !== typed) box.value = short(point[i]);
      range.value = Math.round((200 * (point[i] - low)) / (high - low));
      refresh();
    });
    row.append(label, range, box);
    form.appendChild(row);
    return { range, box };
  });

  const readout = document.createElement("p");
  readout.className = "readout";
  readout.id = "readout";
  readout.setAttribute("aria-live", "polite");
  const grid = document.createElement("div");
  grid.className = "slices";
  const charts = data.names.map((_, i) => chart(i));
  charts.forEach((c) => grid.appendChild(c.figure));
  root.replaceChildren(form, readout, grid);

  function curve(i) {
    const [low, high] = data.ends[i];
    const step = (high - low) / (N_POINTS - 1);
    const values = Array.from({ length: N_POINTS }, (_, k) => low + k * step);
    return mixture.line(point, i, values, LEVELS).map((row, k) => ({ x: values[k], ...row }));
  }

  function path(rows, value, X, Y) {
    return rows.map((r, k) => `${k ? "L" : "M"}${X(r.x).toFixed(1)} ${Y(value(r)).toFixed(1)}`);
  }

  function band(rows, a, b, X, Y) {
    const back = rows.slice().reverse();
    const down = path(back, (r) => r.quantiles[a], X, Y).map((s) => s.replace("M", "L"));
    return [...path(rows, (r) => r.quantiles[b], X, Y), ...down, "Z"].join(" ");
  }

  function draw(i, rows, here) {
    const [low, high] = data.ends[i];
    const X = (x) => EDGE.left + ((WIDTH - EDGE.left - EDGE.right) * (x - low)) / (high - low);
    const inner = HEIGHT - EDGE.top - EDGE.bottom;
    const Y = (y) => EDGE.top + (inner * (limits[1] - y)) / (limits[1] - limits[0]);
    const c = charts[i];
    c.axes.replaceChildren();
    const bottom = HEIGHT - EDGE.bottom;
    ticks(limits[0], limits[1], 4).forEach((t) => {
      element("line", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: Y(t), y2: Y(t) }, c.axes);
      const text = element("text", { x: EDGE.left - 6, y: Y(t) + 3.5, class: "y" }, c.axes);
      text.textContent = short(t);
    });
    ticks(low, high, 4).forEach((t) => {
      const text = element("text", { x: X(t), y: bottom + 14, class: "x" }, c.axes);
      text.textContent = short(t);
    });
    const name = { x: (EDGE.left + WIDTH - EDGE.right) / 2, y: HEIGHT - 5, class: "x name" };
    element("text", name, c.axes).textContent = data.names[i];
    c.wide.setAttribute("d", band(rows, 0, 3, X, Y));
    c.narrow.setAttribute("d", band(rows, 1, 2, X, Y));
    c.mean.setAttribute("d", path(rows, (r) => r.mean, X, Y).join(" "));
    c.mark.setAttribute("x1", X(point[i]));
    c.mark.setAttribute("x2", X(point[i]));
    c.dot.setAttribute("cx", X(point[i]));
    c.dot.setAttribute("cy", Y(here.mean));
    c.svg.setAttribute(
      "aria-label",
      `Predicted output along ${data.names[i]} from ${short(low)} to ${short(high)}: mean ` +
        `${short(rows[0].mean)} at the lower end, ${short(rows[N_POINTS - 1].mean)} at the upper.`
    );
  }

  function update() {
    const here = mixture.predict(point, LEVELS);
    const all = data.names.map((_, i) => curve(i));
    const lows = all.flat().map((r) => r.quantiles[0]);
    const highs = all.flat().map((r) => r.quantiles[3]);
    // The scale only grows, so that curves can be compared while a slider moves.
    const low = Math.min(...lows);
    const high = Math.max(...highs);
    const margin = 0.04 * (high - low) || 1;
    limits = limits || [low - margin, high + margin];
    limits = [Math.min(limits[0], low - margin), Math.max(limits[1], high + margin)];
    all.forEach((rows, i) => draw(i, rows, here));
    const q = here.quantiles.map(short);
    readout.textContent =
      `At ${data.names.map((name, i) => `${name} = ${short(point[i])}`).join(", ")}: ` +
      `mean ${short(here.mean)}, standard deviation ${short(here.std)}; ` +
      `50 % between ${q[1]} and ${q[2]}, 95 % between ${q[0]} and ${q[3]}.`;
    readout.dataset.mean = here.mean;
  }

  let waiting = false;
  function refresh() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      update();
    });
  }

  window.paims.set = (values) => {
    values.forEach((value, i) => {
      sliders[i].box.value = value;
      sliders[i].box.dispatchEvent(new Event("change"));
    });
  };
  update();
  root.dataset.ready = "yes";
})();
