// The sliders of memories.html. MEMORIES comes from docs/memories.py.
const COLOURS = { CRS: "#0072B2", PRS: "#D55E00", CBRS: "#56B4E9", OCDM: "#E69F00" };
const NAMES = {
  imbalance: "imbalance, largest class over smallest",
  rho: "rho of PRS and OCDM",
  size: "samples in memory",
};
const GROUPS = [["frequent", 0, 7], ["middle", 7, 13], ["rare", 13, 20]];

function countsOf(sampler, at) {
  const rho = MEMORIES.samplers[sampler] ? ` ${at.rho}` : "";
  return MEMORIES.memory[`${sampler} ${at.imbalance} ${at.size}${rho}`];
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

// A sampler's memory as bars, a class each; the line is the mix of the stream.
function panel(sampler, counts, stream, top) {
  const [width, height, left, bottom] = [320, 170, 34, 24];
  const step = (width - left) / counts.length;
  const y = (value) => height - bottom - (value / top) * (height - bottom - 22);
  const bars = counts.map((count, k) => {
    const at = `x="${left + k * step + 1}" y="${y(count)}"`;
    const size = `width="${step - 2}" height="${y(0) - y(count)}"`;
    return `<rect ${at} ${size} fill="${COLOURS[sampler]}"/>`;
  });
  const share = sum(counts) / sum(stream);
  const points = stream.map((n, k) => `${left + (k + 0.5) * step},${y(n * share)}`);
  const ticks = [0, top].map(
    (tick) => `<text x="${left - 4}" y="${y(tick) + 4}" text-anchor="end">${tick}</text>`,
  );
  return `<svg viewBox="0 0 ${width} ${height}" role="img" fill="currentColor"
    aria-label="${sampler}: labels in memory by class, ${counts.join(", ")}">
    <text x="${left}" y="12" font-weight="bold">${sampler}: labels in memory</text>${bars.join("")}
    <polyline points="${points.join(" ")}" fill="none" stroke="currentColor"
      stroke-width="1.5"/>${ticks.join("")}
    <text x="${left}" y="${height - 6}">most frequent class</text>
    <text x="${width}" y="${height - 6}" text-anchor="end">rarest</text></svg>`;
}

function table(counts, stream) {
  const share = (row, from, to) => (100 * sum(row.slice(from, to))) / sum(row);
  const line = (name, row) => {
    const cells = GROUPS.map(([, from, to]) => `<td>${share(row, from, to).toFixed(0)} %</td>`);
    return `<tr><th scope="row">${name}</th>${cells.join("")}<td>${row.at(-1)}</td></tr>`;
  };
  const heads = GROUPS.map(([name, from, to]) => `<th>${to - from} ${name}</th>`);
  const rows = Object.entries(counts).map(([name, row]) => line(name, row));
  return `<table class="docutils"><thead><tr><th>share of the labels</th>${heads.join("")}
    <th>samples of the rarest</th></tr></thead><tbody>${line("stream", stream)}
    ${rows.join("")}</tbody></table>`;
}

function draw(root, at) {
  const stream = MEMORIES.stream[at.imbalance];
  const counts = {};
  for (const sampler of Object.keys(MEMORIES.samplers)) {
    counts[sampler] = countsOf(sampler, at);
  }
  const mix = Object.values(counts).map((row) => (Math.max(...stream) * sum(row)) / sum(stream));
  const top = Math.ceil(Math.max(...Object.values(counts).flat(), ...mix));
  const panels = Object.entries(counts).map(([name, row]) => panel(name, row, stream, top));
  root.querySelector(".panels").innerHTML = panels.join("");
  root.querySelector(".shares").innerHTML = table(counts, stream);
}

function begin(root) {
  const at = { ...MEMORIES.start };
  root.innerHTML = '<div class="sliders"></div><div class="panels"></div><div class="shares"></div>';
  for (const [name, words] of Object.entries(NAMES)) {
    const values = MEMORIES.sliders[name];
    const label = document.createElement("label");
    const last = values.length - 1;
    label.innerHTML = `<span>${words}: <output></output></span>
      <input type="range" name="${name}" min="0" max="${last}" step="1">`;
    const slider = label.querySelector("input");
    const move = () => {
      at[name] = values[slider.value];
      label.querySelector("output").value = at[name];
      slider.setAttribute("aria-valuetext", at[name]);
      draw(root, at);
    };
    slider.value = values.indexOf(at[name]);
    slider.addEventListener("input", move);
    root.querySelector(".sliders").append(label);
    move();
  }
}

begin(document.getElementById("memories"));
