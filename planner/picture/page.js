// The timeline page's script, first part: reads the data in this page, lays out rows, and draws what is visible of them. Loads nothing.
// The three parts share one scope; page_controls.js and page_table.js follow.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const nodes = data.nodes, count = nodes.name.length;
const courses = data.courses;
for (const c of courses) {
  c.streams = data.plans[c.plan].streams;
  c.stream = data.plans[c.plan].stream;
  c.waits = data.plans[c.plan].waits;
  c.critical = new Uint8Array(count);
  for (const i of c.path) c.critical[i] = 1;
}
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

let upper = courses[data.upper], lower = data.lower < 0 ? null : courses[data.lower]; // the timelines that are shown, one below the other
const main = () => lower || upper, shownCourses = () => lower ? [upper, lower] : [upper];
let selected = -1, hovered = -1, from = 0, to = Infinity, rows = [], total = 0, end = 1;

// Rows: each stream and each engine has one row for each timeline that is shown. An engine that runs several nodes at once gets several rows.
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
    let first = true;
    for (const c of shownCourses()) {
      const sorted = ids(c).sort((a, b) => c.start[a] - c.start[b] || a - b);
      (several ? pack(sorted, c) : [sorted]).forEach((track, n) => {
        const reach = new Float64Array(track.length);
        track.forEach((i, at) => { reach[at] = Math.max(at ? reach[at - 1] : 0, c.end[i]); });
        rows.push({key, label: first ? label : "", kind: n || !lower ? "" : c.short, below: c === lower, ids: track, reach, course: c, y, gaps: n ? [] : gaps(c)});
        first = false;
        y += rowHeight + rowGap;
      });
    }
    y += sectionGap;
  };
  const byStream = new Map(), byEngine = new Map();
  for (const c of shownCourses()) {
    const lists = c.streams.map(() => []);
    for (let i = 0; i < count; i++) lists[c.stream[i]].push(i);
    byStream.set(c, lists);
  }
  for (let i = 0; i < count; i++) {
    const key = nodes.device[i] * 16 + nodes.engine[i];
    if (!byEngine.has(key)) byEngine.set(key, []);
    byEngine.get(key).push(i);
  }
  const most = Math.max(...shownCourses().map((c) => c.streams.length));
  for (let s = 0; s < most; s++) {
    const named = shownCourses().find((c) => s < c.streams.length);
    add("s" + s, named.streams[s], (c) => byStream.get(c)[s] || [], () => [], false);
  }
  const many = nodes.device.some((d) => d !== 0);
  for (const key of [...byEngine.keys()].sort((a, b) => a - b)) {
    const device = key >> 4, engine = key & 15;
    add("e" + key, "engine " + data.engines[engine] + (many ? ", device " + device : ""), () => byEngine.get(key).slice(),
      (c) => c.gaps.filter((g) => g.device === device && g.engine === engine), true);
  }
  total = y;
  end = 0;
  for (const c of shownCourses()) for (const e of c.end) end = Math.max(end, e);
  end = end || 1;
  fitWindow();
}

// fitWindow gives the timeline the height that its rows and the window allow.
function fitWindow() {
  scroller.style.height = Math.min(total + 4, innerHeight * 0.62, 640) + "px";
  $("room").style.height = Math.max(0, total - scroller.clientHeight) + "px";
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
    const thick = row.course.critical[i];
    pen.strokeStyle = thick ? colors.critical : colors.box;
    pen.lineWidth = thick ? 2.5 : 1;
    pen.strokeRect(x + pen.lineWidth / 2, y + pen.lineWidth / 2, w - pen.lineWidth, rowHeight - pen.lineWidth);
    pen.lineWidth = 1;
  } else {
    pen.fillStyle = colors.box; // a fill this thin would be hard to see
    pen.fillRect(x, y + 1, Math.min(w, 1), rowHeight - 2);
    if (row.course.critical[i]) {
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
    const mark = glyphs[engine] + (row.course.critical[i] ? "★" : "");
    pen.font = "12px Helvetica,Arial,sans-serif";
    const head = pen.measureText(mark + " ").width;
    pen.fillText(mark, left + 4, y + 16);
    const name = cutText(pen, nodes.name[i], room - head);
    if (name) pen.fillText(isolate(name), left + 4 + head, y + 16);
  }
}

function drawRow(pen, row, top) {
  const y = row.y - top;
  pen.fillStyle = row.below ? colors.page : colors.panel;
  pen.fillRect(gutter, y, width - gutter, rowHeight);
  if (row.below) {
    pen.strokeStyle = colors.line;
    pen.strokeRect(gutter + 0.5, y + 0.5, width - gutter - 1, rowHeight - 1);
  }
  pen.fillStyle = colors.text;
  pen.font = "bold 12px Helvetica,Arial,sans-serif";
  if (row.label) pen.fillText(cutText(pen, row.label, gutter - 78), 8, y + 16);
  pen.fillStyle = colors.soft;
  pen.font = "11px Helvetica,Arial,sans-serif";
  pen.fillText(cutText(pen, row.kind, row.label ? 58 : gutter - 16), row.label || pen.measureText(row.kind).width < 58 ? gutter - 62 : 8, y + 16);
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

function rowOf(i, section, c) {
  const key = section === "e" ? "e" + (nodes.device[i] * 16 + nodes.engine[i]) : "s" + c.stream[i];
  return rows.find((r) => r.key === key && r.course === c && r.ids.includes(i));
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
// waitsAt are the waits of a node, found once for as long as it is selected.
function waitsAt(c, i) {
  if (c.at !== i) {
    c.at = i;
    c.atWaits = c.waits.map((_, k) => k).filter((k) => c.waits[k].to === i || c.waits[k].from === i).slice(0, mostArrows);
  }
  return c.atWaits;
}

// drawArrows draws the waits of each timeline that is shown; those that held their stream are thicker.
function drawArrows(pen, top) {
  pen.save();
  pen.beginPath();
  pen.rect(gutter, axisHeight - 4, width - gutter, height);
  pen.clip();
  for (const c of shownCourses()) {
    const seen = [];
    for (let k = 0; k < c.waits.length && seen.length <= mostArrows; k++) {
      const w = c.waits[k];
      if (w.to >= 0 && c.start[w.to] >= from && c.end[w.from] <= to) seen.push(k);
    }
    const list = seen.length <= mostArrows ? seen : waitsAt(c, selected);
    for (const k of list) {
      const w = c.waits[k];
      if (w.to < 0) continue;
      const r1 = c.rows[c.stream[w.from]], r2 = c.rows[c.stream[w.to]];
      if (!r1 || !r2 || r1 === r2) continue;
      const down = r2.y > r1.y, chosen = w.to === selected || w.from === selected;
      arrow(pen, xOf(c.end[w.from]), r1.y - top + (down ? rowHeight : 0), xOf(c.start[w.to]), r2.y - top + (down ? 0 : rowHeight), colors.accent, chosen ? 2.5 : c.held[k] > 0 ? 1.6 : 0.7);
    }
  }
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
  canvas.dataset.replay = replays().indexOf(lower);
  drawMemory();
}

// drawMemory fills what is alive in the lower timeline, or in the only one; the other one is an outline.
function drawMemory() {
  const shown = main().memory;
  if (!shown.length) return;
  const each = 92, w = memory.clientWidth, pen = size(memory, w, each * shown.length + 18);
  const x = (t) => gutter + (t - from) / (to - from) * (w - gutter - 8);
  shown.forEach((m, k) => {
    const beside = lower ? upper.memory.find((o) => o.device === m.device) : undefined;
    const most = Math.max(m.arena, 1, highest(m), beside ? Math.max(beside.arena, highest(beside)) : 0), y0 = k * each + each - 6, scale = (each - 22) / most;
    const outline = (m, until) => {
      pen.beginPath();
      pen.moveTo(x(0), y0);
      m.us.forEach((t, n) => {
        const y = y0 - m.bytes[n] * scale, next = n + 1 < m.us.length ? m.us[n + 1] : until;
        pen.lineTo(x(t), y);
        pen.lineTo(x(next), y);
      });
      pen.lineTo(x(until), y0);
      pen.closePath();
    };
    pen.fillStyle = colors.panel;
    pen.fillRect(gutter, y0 - (each - 14), w - gutter - 8, each - 14);
    pen.save();
    pen.beginPath();
    pen.rect(gutter, y0 - each, w - gutter - 8, each + 1);
    pen.clip();
    outline(m, main().makespan);
    pen.fillStyle = colors.h2d;
    pen.fill();
    pen.strokeStyle = colors.accent;
    pen.stroke();
    if (beside) {
      outline(beside, upper.makespan);
      pen.strokeStyle = colors.soft;
      pen.setLineDash([2, 3]);
      pen.stroke();
    }
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
      pen.moveTo(x(main().start[selected]), y0 - each + 8);
      pen.lineTo(x(main().start[selected]), y0);
      pen.stroke();
    }
    pen.restore();
    pen.fillStyle = colors.text;
    pen.font = "bold 12px Helvetica,Arial,sans-serif";
    pen.fillText("device " + m.device, 8, y0 - 50);
    pen.font = "11px Helvetica,Arial,sans-serif";
    pen.fillStyle = colors.soft;
    pen.fillText("arena " + bytes(m.arena) + " - -", 8, y0 - 34);
    pen.fillText("alive at most " + bytes(highest(m)), 8, y0 - 19);
  });
}
const highest = (m) => m.bytes.reduce((a, b) => Math.max(a, b), 0);

// Words.
function cause(c, i) {
  const by = c.by[i], name = data.causes[c.cause[i]];
  if (name === "start") return ["started at once", -1];
  if (by < 0) return [name === "host" ? "started as soon as the host had submitted it" : "waited for " + name, -1];
  const text = dependency(by, i), gap = c.start[i] - c.end[by];
  return [(c.measured && gap >= 0.5 ? time(gap) + " after it: " : "") + "waited for " + name + (text ? " (" + text + ")" : ""), by];
}

// dependency is the reason why a node depends on another, or "".
function dependency(before, i) {
  for (let k = data.edges.start[i]; k < data.edges.start[i + 1]; k++) if (data.edges.from[k] === before) return data.texts[data.edges.text[k]];
  return "";
}

function facts(i) {
  const places = shownCourses().map((c) => c.streams[c.stream[i]]);
  const list = [["name", nodes.name[i]], ["does", nodes.action[i]], ["stream", places[0] === places[places.length - 1] ? places[0] : places.join("; below: ")],
    ["engine", data.engines[nodes.engine[i]] + ", device " + nodes.device[i]]];
  if (nodes.bytes[i]) list.push(["bytes", bytes(nodes.bytes[i])]);
  if (nodes.flops[i]) list.push(["operations", nodes.flops[i].toLocaleString("en")]);
  if (nodes.line[i]) list.push(["line", String(nodes.line[i])]);
  for (const c of shownCourses()) {
    const d = c.end[i] - c.start[i], cost = data.plans[c.plan].cost;
    const rate = c.measured && nodes.bytes[i] && d > 0 ? ", " + (nodes.bytes[i] / d / 1e3).toFixed(1) + " GB/s" : "";
    list.push([c.title, time(d) + ", from " + fixed(c.start[i]) + " to " + fixed(c.end[i]) + " us" + rate + (c.alone && c.alone[i] < d * 0.999 ? "; " + time(c.alone[i]) + " alone" : "") + (cost && !c.measured ? "; cost: " + cost[i] : "")]);
    list.push([c.measured ? "reason for its measured start" : "reason for its start", ...cause(c, i)]);
  }
  const on = shownCourses().filter((c) => c.critical[i]);
  if (on.length) list.push(["critical path", "★ yes, " + on.map((c) => c.title).join(" and ")]);
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
  for (const c of shownCourses()) {
    const waits = c.waits.map((_, k) => k).filter((k) => c.waits[k].to === selected);
    if (!waits.length) continue;
    dl.append(element("dt", "waits, " + c.title));
    const dd = element("dd");
    for (const k of waits) {
      const w = c.waits[k];
      const button = element("button", nodes.name[w.from], "link");
      button.type = "button";
      button.addEventListener("click", () => select(w.from, true));
      const line = element("div");
      line.append("event " + w.event + ": ", button, " (", element("bdi", w.why), ")", c.held[k] > 0 ? "; held the stream for " + time(c.held[k]) : "; held nothing");
      dd.append(line);
    }
    dl.append(dd);
  }
  box.append(dl);
}
