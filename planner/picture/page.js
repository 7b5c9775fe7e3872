// The timeline page's script, first part: reads the data in this page, lays out rows, and draws what is visible of them. Loads nothing.
// The three parts share one scope; page_controls.js and page_table.js follow.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const nodes = data.nodes, count = nodes.name.length;
const measured = data.measured ? data.measured.replays : [];
const predicted = data.predicted;
const critical = new Uint8Array(count);
for (const i of data.path) critical[i] = 1;
const engineWords = {compute: "kernel, map or set", h2d: "copy to device", d2h: "copy to host", peer: "copy between devices", d2d: "copy on a device", host: "copy on the host"};
const glyphs = {compute: "▪", h2d: "↑", d2h: "↓", peer: "↔", d2d: "↺", host: "⌂"};
const canvas = $("timeline"), scroller = $("scroller"), memory = $("memory"), tip = $("tip");
const gutter = 176, axisHeight = 26, rowHeight = 24, rowGap = 2, sectionGap = 10;
const fixed = (v) => (Math.round(v * 100) / 100).toFixed(2);
const time = (us) => us >= 1e6 ? +(us / 1e6).toPrecision(4) + " s" : us >= 1e4 ? +(us / 1e3).toPrecision(4) + " ms" : +us.toPrecision(4) + " us";
const bytes = (n) => { // as the command prints them
  if (n === 1) return "1 byte";
  let k = 0;
  while (n >= (k ? 1023.995 : 1024) && k < 6) { n /= 1024; k++; }
  return +n.toFixed(2) + " " + ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][k];
};
const isolate = (s) => "\u2068" + s + "\u2069";
const element = (tag, text, className) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; if (className) e.className = className; return e; };

let replay = measured.length ? measured.length - 1 : -1;
let selected = -1, hovered = -1, from = 0, to = 1, rows = [], total = 0, end = 1;

// Rows: each stream and each engine has one row for the predicted run and one for the measured run. An engine that runs several
// nodes at once gets several rows.
function course(k) { return k < 0 ? predicted : measured[k]; }

function pack(ids, c) {
  const tracks = [];
  for (const i of ids) {
    let t = tracks.find((t) => t.free <= c.start[i] + 1e-6);
    if (!t) {
      if (tracks.length < 12) tracks.push(t = {ids: [], free: 0});
      else t = tracks.reduce((a, b) => a.free <= b.free ? a : b);
    }
    t.ids.push(i);
    t.free = Math.max(t.free, c.end[i]);
  }
  return tracks.map((t) => t.ids);
}

function layout() {
  rows = [];
  let y = axisHeight;
  const add = (key, label, ids, gaps, several) => {
    for (const k of replay < 0 ? [-1] : [-1, replay]) {
      const c = course(k);
      const sorted = Array.from(ids).sort((a, b) => c.start[a] - c.start[b] || a - b);
      (several ? pack(sorted, c) : [sorted]).forEach((track, n) => {
        const reach = new Float64Array(track.length);
        track.forEach((i, at) => { reach[at] = Math.max(at ? reach[at - 1] : 0, c.end[i]); });
        rows.push({key, label: n ? "" : label, kind: n ? "" : replay < 0 ? "" : k < 0 ? "predicted" : "measured", measured: k >= 0, ids: track, reach, course: c, y, gaps: k < 0 && !n ? gaps : []});
        y += rowHeight + rowGap;
      });
    }
    y += sectionGap;
  };
  const byStream = data.streams.map(() => []), byEngine = new Map();
  for (let i = 0; i < count; i++) {
    byStream[nodes.stream[i]].push(i);
    const key = nodes.device[i] * 16 + nodes.engine[i];
    if (!byEngine.has(key)) byEngine.set(key, []);
    byEngine.get(key).push(i);
  }
  byStream.forEach((ids, s) => add("s" + s, data.streams[s], ids, [], false));
  const many = nodes.device.some((d) => d !== 0);
  for (const key of [...byEngine.keys()].sort((a, b) => a - b)) {
    const device = key >> 4, engine = key & 15;
    add("e" + key, "engine " + data.engines[engine] + (many ? ", device " + device : ""), byEngine.get(key),
      data.gaps.filter((g) => g.device === device && g.engine === engine), true);
  }
  total = y;
  end = 0;
  for (const k of replay < 0 ? [-1] : [-1, replay]) for (const e of course(k).end) end = Math.max(end, e);
  end = end || 1;
  $("room").style.height = Math.max(0, total - scroller.clientHeight) + "px";
  scroller.style.height = Math.min(total + 4, Math.min(innerHeight * 0.62, 640)) + "px";
}

// Drawing.
let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "panel", "text", "soft", "line", "accent", "critical", "box", "gap", ...data.engines]) colors[name] = style.getPropertyValue("--" + name).trim();
}

function size(c, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
    c.width = Math.round(width * ratio);
    c.height = Math.round(height * ratio);
    c.style.height = height + "px";
  }
  const pen = c.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

function ticks(span, width) {
  const wished = span / Math.max(2, width / 110), power = Math.pow(10, Math.floor(Math.log10(wished)));
  return power * ([1, 2, 5].find((f) => f * power >= wished) || 10);
}

// cutText truncates text to what fits.
function cutText(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  const letters = Array.from(text);
  let low = 0, high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(letters.slice(0, middle).join("") + "…").width <= width) low = middle; else high = middle - 1;
  }
  return low ? letters.slice(0, low).join("") + "…" : "";
}

let width = 0, height = 0, drawn = [];
const xOf = (t) => gutter + (t - from) / (to - from) * (width - gutter - 8);
const tOf = (x) => from + (x - gutter) / (width - gutter - 8) * (to - from);

function drawAxis(pen) {
  const step = ticks(to - from, width - gutter);
  pen.fillStyle = colors.soft;
  pen.strokeStyle = colors.line;
  pen.textAlign = "center";
  pen.font = "11px Helvetica,Arial,sans-serif";
  for (let n = Math.ceil(from / step); n * step <= to; n++) {
    const x = Math.round(xOf(n * step)) + 0.5;
    pen.globalAlpha = 0.45;
    pen.beginPath();
    pen.moveTo(x, axisHeight - 6);
    pen.lineTo(x, height);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.fillText(time(+(n * step).toPrecision(12)), Math.max(gutter + 20, Math.min(width - 28, x)), 14);
  }
  pen.textAlign = "left";
}

function drawSpan(pen, row, i, x, y, w) {
  const engine = data.engines[nodes.engine[i]];
  pen.fillStyle = colors[engine];
  pen.fillRect(x, y, w, rowHeight);
  if (w > 2.5) {
    const thick = critical[i] && !row.measured;
    pen.strokeStyle = thick ? colors.critical : colors.box;
    pen.lineWidth = thick ? 2.5 : 1;
    pen.strokeRect(x + pen.lineWidth / 2, y + pen.lineWidth / 2, w - pen.lineWidth, rowHeight - pen.lineWidth);
    pen.lineWidth = 1;
  } else {
    pen.fillStyle = colors.box; // a fill this thin would be hard to see
    pen.fillRect(x, y + 1, Math.min(w, 1), rowHeight - 2);
    if (critical[i] && !row.measured) {
      pen.fillStyle = colors.critical;
      pen.fillRect(x - 0.5, y, w + 1, 5);
    }
  }
  if (i === selected || i === hovered) {
    pen.strokeStyle = colors.accent;
    pen.lineWidth = i === selected ? 3 : 1.5;
    pen.strokeRect(x - 1, y - 1, w + 2, rowHeight + 2);
    pen.lineWidth = 1;
  }
  const left = Math.max(x, gutter), room = Math.min(x + w, width) - left - 8;
  if (room > 12) {
    pen.fillStyle = colors.text;
    const mark = glyphs[engine] + (critical[i] && !row.measured ? "★" : "");
    pen.font = "12px Helvetica,Arial,sans-serif";
    const head = pen.measureText(mark + " ").width;
    pen.fillText(mark, left + 4, y + 16);
    const name = cutText(pen, nodes.name[i], room - head);
    if (name) pen.fillText(isolate(name), left + 4 + head, y + 16);
  }
}

function drawRow(pen, row, top) {
  const y = row.y - top;
  pen.fillStyle = row.measured ? colors.page : colors.panel;
  pen.fillRect(gutter, y, width - gutter, rowHeight);
  if (row.measured) {
    pen.strokeStyle = colors.line;
    pen.strokeRect(gutter + 0.5, y + 0.5, width - gutter - 1, rowHeight - 1);
  }
  pen.fillStyle = colors.text;
  pen.font = "bold 12px Helvetica,Arial,sans-serif";
  if (row.kind !== "measured") pen.fillText(cutText(pen, row.label, gutter - 78), 8, y + 16);
  pen.fillStyle = colors.soft;
  pen.font = "11px Helvetica,Arial,sans-serif";
  pen.fillText(row.kind, gutter - 62, y + 16);
  pen.save();
  pen.beginPath();
  pen.rect(gutter, y - 2, width - gutter, rowHeight + 4);
  pen.clip();
  for (const g of row.gaps) {
    if (g.end < from || g.start > to) continue;
    const x1 = xOf(Math.max(g.start, from)), x2 = xOf(Math.min(g.end, to));
    if (x2 - x1 < 4) continue;
    pen.strokeStyle = colors.gap;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(x1 + 2, y + rowHeight / 2);
    pen.lineTo(x2 - 2, y + rowHeight / 2);
    pen.stroke();
    pen.setLineDash([]);
    if (x2 - x1 > 70) {
      pen.fillStyle = colors.soft;
      const text = cutText(pen, "idle " + time(g.end - g.start), x2 - x1 - 12);
      const w = pen.measureText(text).width;
      pen.fillStyle = colors.panel;
      pen.fillRect((x1 + x2 - w) / 2 - 3, y + 4, w + 6, rowHeight - 8);
      pen.fillStyle = colors.soft;
      pen.fillText(text, (x1 + x2 - w) / 2, y + 16);
    }
  }
  pen.restore();
}

function drawSpans(pen, row, top) {
  const y = row.y - top;
  pen.save();
  pen.beginPath();
  pen.rect(gutter, y - 2, width - gutter, rowHeight + 4);
  pen.clip();
  // Binary search for the first span that ends in view: reach is non-decreasing.
  let low = 0, high = row.ids.length;
  while (low < high) { const m = (low + high) >> 1; if (row.reach[m] < from) low = m + 1; else high = m; }
  let last = -1;
  for (let at = low; at < row.ids.length; at++) {
    const i = row.ids[at];
    if (row.course.start[i] > to) break;
    const x = xOf(row.course.start[i]), until = xOf(row.course.end[i]);
    let w = Math.max(1, until - x);
    if (at + 1 < row.ids.length) w = Math.max(0.5, Math.min(w, xOf(row.course.start[row.ids[at + 1]]) - x));
    if (Math.floor(until) <= last && i !== selected) continue; // a node is already drawn in this pixel
    last = Math.floor(until);
    drawSpan(pen, row, i, x, y, w);
    drawn.push({node: i, row, x, y, w, h: rowHeight});
  }
  pen.restore();
}

function rowOf(i, section, wantMeasured) {
  const key = section === "e" ? "e" + (nodes.device[i] * 16 + nodes.engine[i]) : "s" + nodes.stream[i];
  return rows.find((r) => r.key === key && r.measured === wantMeasured && r.ids.includes(i));
}

function arrow(pen, x1, y1, x2, y2, color, thick) {
  pen.strokeStyle = pen.fillStyle = color;
  pen.lineWidth = thick;
  const bend = Math.max(16, Math.abs(y2 - y1) / 2) * Math.sign(y2 - y1 || 1);
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
  pen.stroke();
  const s = Math.sign(y2 - y1 || 1) * 7;
  pen.beginPath();
  pen.moveTo(x2, y2);
  pen.lineTo(x2 - 4, y2 - s);
  pen.lineTo(x2 + 4, y2 - s);
  pen.fill();
  pen.lineWidth = 1;
}

const mostArrows = 80;
let predictedRow = [];
function drawArrows(pen, top) {
  pen.save();
  pen.beginPath();
  pen.rect(gutter, axisHeight - 4, width - gutter, height);
  pen.clip();
  const seen = [];
  for (const w of data.waits) {
    if (w.to < 0 || predicted.start[w.to] < from || predicted.end[w.from] > to) continue;
    seen.push(w);
    if (seen.length > mostArrows) break;
  }
  const list = seen.length > mostArrows ? data.waits.filter((w) => w.to === selected || w.from === selected).slice(0, mostArrows) : seen;
  const draw = (a, b, thick) => {
    const r1 = predictedRow[nodes.stream[a]], r2 = predictedRow[nodes.stream[b]];
    if (r1 === undefined || r2 === undefined || r1 === r2) return;
    const down = r2.y > r1.y;
    arrow(pen, xOf(predicted.end[a]), r1.y - top + (down ? rowHeight : 0), xOf(predicted.start[b]), r2.y - top + (down ? 0 : rowHeight), colors.accent, thick);
  };
  for (const w of list) if (w.to >= 0) draw(w.from, w.to, w.to === selected || w.from === selected ? 2.5 : 1.2);
  pen.restore();
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

function draw() {
  width = scroller.clientWidth;
  height = scroller.clientHeight;
  const top = scroller.scrollTop;
  const pen = size(canvas, width, height);
  drawn = [];
  pen.save();
  const shown = rows.filter((row) => row.y + rowHeight > top + axisHeight && row.y < top + height);
  for (const row of shown) drawRow(pen, row, top);
  drawArrows(pen, top); // behind the spans, so that no arrow covers a name
  for (const row of shown) drawSpans(pen, row, top);
  pen.restore();
  pen.fillStyle = colors.page;
  pen.fillRect(0, 0, width, axisHeight - 4);
  drawAxis(pen);
  canvas.drawn = drawn;
  canvas.dataset.from = from.toFixed(4);
  canvas.dataset.to = to.toFixed(4);
  canvas.dataset.selected = selected;
  canvas.dataset.replay = replay;
  drawMemory();
}

function drawMemory() {
  if (!data.memory.length) return;
  const each = 92, w = memory.clientWidth, pen = size(memory, w, each * data.memory.length + 18);
  const x = (t) => gutter + (t - from) / (to - from) * (w - gutter - 8);
  data.memory.forEach((m, k) => {
    const most = Math.max(m.arena, ...m.bytes, 1), y0 = k * each + each - 6, scale = (each - 22) / most;
    pen.fillStyle = colors.panel;
    pen.fillRect(gutter, y0 - (each - 14), w - gutter - 8, each - 14);
    pen.save();
    pen.beginPath();
    pen.rect(gutter, y0 - each, w - gutter - 8, each + 1);
    pen.clip();
    pen.beginPath();
    pen.moveTo(x(0), y0);
    m.us.forEach((t, n) => {
      const y = y0 - m.bytes[n] * scale, next = n + 1 < m.us.length ? m.us[n + 1] : data.makespan;
      pen.lineTo(x(t), y);
      pen.lineTo(x(next), y);
    });
    pen.lineTo(x(data.makespan), y0);
    pen.closePath();
    pen.fillStyle = colors.h2d;
    pen.fill();
    pen.strokeStyle = colors.accent;
    pen.stroke();
    pen.setLineDash([6, 4]);
    pen.strokeStyle = colors.critical;
    pen.beginPath();
    pen.moveTo(gutter, y0 - m.arena * scale);
    pen.lineTo(w, y0 - m.arena * scale);
    pen.stroke();
    pen.setLineDash([]);
    if (selected >= 0) {
      pen.strokeStyle = colors.text;
      pen.beginPath();
      pen.moveTo(x(predicted.start[selected]), y0 - each + 8);
      pen.lineTo(x(predicted.start[selected]), y0);
      pen.stroke();
    }
    pen.restore();
    pen.fillStyle = colors.text;
    pen.font = "bold 12px Helvetica,Arial,sans-serif";
    pen.fillText("device " + m.device, 8, y0 - 50);
    pen.font = "11px Helvetica,Arial,sans-serif";
    pen.fillStyle = colors.soft;
    pen.fillText("arena " + bytes(m.arena) + " - -", 8, y0 - 34);
    pen.fillText("alive at most " + bytes(Math.max(...m.bytes)), 8, y0 - 19);
  });
}

// Words.
function cause(i) {
  const by = predicted.by[i], name = data.causes[predicted.cause[i]];
  if (name === "start") return ["started at once", -1];
  return [name === "host" && by < 0 ? "started as soon as the host had submitted it" : "waited for " + name, by];
}

// measuredCause finds what ended last before a node's measured start: a dependency, the node before it on its stream, or the
// copy before it on its engine.
function measuredCause(i) {
  const c = measured[replay];
  let best = -1, why = "";
  const see = (q, text) => {
    if (q !== i && c.end[q] <= c.start[i] + 0.5 && (best < 0 || c.end[q] > c.end[best])) { best = q; why = text; }
  };
  for (let k = data.edges.start[i]; k < data.edges.start[i + 1]; k++) see(data.edges.from[k], data.texts[data.edges.text[k]]);
  for (const [section, text] of [["s", "stream order"], ["e", "engine"]]) {
    if (section === "e" && data.engines[nodes.engine[i]] === "compute") continue;
    const row = rowOf(i, section, true);
    const at = row ? row.ids.indexOf(i) : -1;
    if (at > 0) see(row.ids[at - 1], text);
  }
  if (best < 0) return ["nothing that it needs ran before it", -1];
  const gap = c.start[i] - c.end[best];
  return [time(Math.max(0, gap)) + " after its " + (why === "stream order" ? "stream" : why === "engine" ? "engine" : "dependency") + " was free (" + why + ")", best];
}

function facts(i) {
  const list = [["name", nodes.name[i]], ["does", nodes.action[i]], ["stream", data.streams[nodes.stream[i]]],
    ["engine", data.engines[nodes.engine[i]] + ", device " + nodes.device[i]]];
  if (nodes.bytes[i]) list.push(["bytes", bytes(nodes.bytes[i])]);
  if (nodes.flops[i]) list.push(["operations", nodes.flops[i].toLocaleString("en")]);
  if (nodes.line[i]) list.push(["line", String(nodes.line[i])]);
  const d = predicted.end[i] - predicted.start[i];
  list.push(["predicted", time(d) + ", from " + fixed(predicted.start[i]) + " to " + fixed(predicted.end[i]) + " us" + (predicted.alone[i] < d * 0.999 ? "; " + time(predicted.alone[i]) + " alone" : "") + (nodes.cost ? "; cost: " + nodes.cost[i] : "")]);
  list.push(["reason for its start", cause(i)[0], cause(i)[1]]);
  if (replay >= 0) {
    const c = measured[replay], m = c.end[i] - c.start[i];
    const rate = nodes.bytes[i] && m > 0 ? ", " + (nodes.bytes[i] / m / 1e3).toFixed(1) + " GB/s" : "";
    list.push(["measured", time(m) + ", from " + fixed(c.start[i]) + " to " + fixed(c.end[i]) + " us" + rate]);
    list.push(["reason for its measured start", ...measuredCause(i)]);
  }
  if (critical[i]) list.push(["critical path", "★ yes, in the prediction"]);
  return list;
}

function showNode() {
  const box = $("node");
  box.textContent = "";
  if (selected < 0) { box.append(element("p", "None selected.")); return; }
  const dl = element("dl");
  for (const [key, text, by] of facts(selected)) {
    dl.append(element("dt", key));
    const dd = element("dd");
    dd.append(element("bdi", text));
    if (by >= 0 && by !== undefined) {
      const button = element("button", nodes.name[by], "link");
      button.type = "button";
      button.addEventListener("click", () => select(by, true));
      dd.append(": ", button);
    }
    dl.append(dd);
  }
  const waits = data.waits.filter((w) => w.to === selected);
  if (waits.length) {
    dl.append(element("dt", "waits for"));
    const dd = element("dd");
    for (const w of waits) {
      const button = element("button", nodes.name[w.from], "link");
      button.type = "button";
      button.addEventListener("click", () => select(w.from, true));
      const line = element("div");
      line.append("event " + w.event + ": ", button, " (", element("bdi", w.why), ")");
      dd.append(line);
    }
    dl.append(dd);
  }
  box.append(dl);
}
