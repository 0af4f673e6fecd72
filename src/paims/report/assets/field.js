// Sliders that move the curve of a field, or the table of a few outputs.
"use strict";

(function () {
  const source = document.getElementById("field-data");
  const root = document.getElementById("explore");
  if (!source || !root) return;
  const data = JSON.parse(source.textContent);
  const mixtures = data.mixtures.map((one) => new Mixture(one));
  const first = data.mixtures[0];
  const LEVELS = [0.025, 0.975];
  const WIDTH = 720;
  const HEIGHT = 300;
  const EDGE = { left: 60, right: 18, top: 10, bottom: 30 };
  const SVG = "http://www.w3.org/2000/svg";
  const point = first.ends.map(([low, high]) => 0.5 * (low + high));
  let limits = null;

  // Mean and 95 % interval of every output at a point.
  function predict(x) {
    const each = mixtures.map((mixture) => mixture.predict(x, LEVELS));
    if (!data.loadings) {
      return each.map((e) => ({ mean: e.mean, low: e.quantiles[0], high: e.quantiles[1] }));
    }
    return data.names.map((_, j) => {
      let mean = 0;
      let variance = data.noise[j];
      data.loadings.forEach((row, a) => {
        mean += row[j] * each[a].mean;
        data.loadings.forEach((other, b) => {
          variance += row[j] * other[j] * data.correlation[a][b] * each[a].std * each[b].std;
        });
      });
      const half = 1.96 * Math.sqrt(Math.max(variance, 0)) * data.scale[j];
      const centre = data.shift[j] + data.scale[j] * mean;
      return { mean: centre, low: centre - half, high: centre + half };
    });
  }
  window.paims = { names: first.names, outputs: data.names, predict };

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

  const form = document.createElement("form");
  form.className = "sliders";
  form.addEventListener("submit", (event) => event.preventDefault());
  const sliders = first.names.map((name, i) => {
    const [low, high] = first.ends[i];
    const row = document.createElement("div");
    row.className = "slider";
    const label = document.createElement("label");
    label.textContent = name;
    label.htmlFor = `slider-${i}`;
    const range = document.createElement("input");
    Object.assign(range, { type: "range", id: `slider-${i}`, min: 0, max: 200, step: 1 });
    range.value = 100;
    const told = document.createElement("output");
    told.textContent = short(point[i]);
    range.addEventListener("input", () => {
      point[i] = low + ((high - low) * Number(range.value)) / 200;
      told.textContent = short(point[i]);
      range.setAttribute("aria-valuetext", told.textContent);
      update();
    });
    range.setAttribute("aria-valuetext", told.textContent);
    row.append(label, range, told);
    form.appendChild(row);
    return range;
  });

  let show;
  if (data.curve) {
    const figure = document.createElement("figure");
    const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
    const axes = element("g", { class: "axes" }, svg);
    const band = element("path", { class: "band95" }, svg);
    const mean = element("path", { class: "mean" }, svg);
    figure.appendChild(svg);
    root.replaceChildren(form, figure);
    const order = data.positions.map((_, j) => j);
    order.sort((a, b) => data.positions[a] - data.positions[b]);
    const ends = [data.positions[order[0]], data.positions[order[order.length - 1]]];
    const span = ends[1] - ends[0] || 1;
    show = (rows) => {
      const low = Math.min(...rows.map((r) => r.low));
      const high = Math.max(...rows.map((r) => r.high));
      const margin = 0.04 * (high - low) || 1;
      // The scale only grows, so that curves can be compared while a slider moves.
      limits = limits || [low - margin, high + margin];
      limits = [Math.min(limits[0], low - margin), Math.max(limits[1], high + margin)];
      const X = (s) => EDGE.left + ((WIDTH - EDGE.left - EDGE.right) * (s - ends[0])) / span;
      const inner = HEIGHT - EDGE.top - EDGE.bottom;
      const Y = (y) => EDGE.top + (inner * (limits[1] - y)) / (limits[1] - limits[0]);
      const at = (j, value) =>
        `${X(data.positions[j]).toFixed(1)} ${Y(value).toFixed(1)}`;
      axes.replaceChildren();
      for (let t = 0; t <= 4; t++) {
        const y = limits[0] + ((limits[1] - limits[0]) * t) / 4;
        const x = ends[0] + (span * t) / 4;
        element("line", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: Y(y), y2: Y(y) }, axes);
        element("text", { x: EDGE.left - 6, y: Y(y) + 3.5, class: "y" }, axes).textContent =
          short(y);
        element("text", { x: X(x), y: HEIGHT - 8, class: "x" }, axes).textContent = short(x);
      }
      const up = order.map((j) => at(j, rows[j].high));
      const down = order.slice().reverse().map((j) => at(j, rows[j].low));
      band.setAttribute("d", `M${[...up, ...down].join("L")}Z`);
      mean.setAttribute("d", `M${order.map((j) => at(j, rows[j].mean)).join("L")}`);
      svg.setAttribute(
        "aria-label",
        `Predicted outputs with 95 % bands: mean ${short(rows[order[0]].mean)} at the first, ` +
          `${short(rows[order[order.length - 1]].mean)} at the last.`
      );
    };
  } else {
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    ["Output", "Mean", "95 % from", "to"].forEach((text) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = text;
      head.appendChild(cell);
    });
    const body = table.createTBody();
    const cells = data.names.map((name) => {
      const row = body.insertRow();
      const label = document.createElement("th");
      label.scope = "row";
      label.textContent = name;
      row.appendChild(label);
      return [row.insertCell(), row.insertCell(), row.insertCell()];
    });
    // A long name scrolls in a frame of its own, and not the page.
    const frame = document.createElement("div");
    Object.assign(frame, { className: "wide", tabIndex: 0, role: "region" });
    frame.setAttribute("aria-label", "Table of the predictions");
    frame.appendChild(table);
    root.replaceChildren(form, frame);
    show = (rows) => {
      rows.forEach((r, j) => {
        cells[j][0].textContent = short(r.mean);
        cells[j][1].textContent = short(r.low);
        cells[j][2].textContent = short(r.high);
      });
    };
  }

  function update() {
    show(predict(point));
  }
  window.paims.set = (values) => {
    values.forEach((value, i) => {
      const [low, high] = first.ends[i];
      sliders[i].value = (200 * (value - low)) / (high - low);
      sliders[i].dispatchEvent(new Event("input"));
    });
  };
  update();
  root.dataset.ready = "yes";
})();
