// The timeline page's script, second part: draws what is visible of the rows, and the memory below them. With thousands of nodes in view, what
// takes time is each call of the canvas; so boxes and memory are written to pixels first, which take a few calls per row.
let colors = {}, inks = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "panel", "text", "soft", "line", "accent", "critical", "box", "gap", ...data.engines]) {
    colors[name] = style.getPropertyValue("--" + name).trim();
    const hex = colors[name].length === 4 ? colors[name].replace(/[^#]/g, "$&$&") : colors[name];
    inks[name] = new Uint32Array(new Uint8Array([1, 3, 5, 7].map((k) => k < 7 ? parseInt(hex.slice(k, k + 2), 16) : 255)).buffer)[0];
  }
  marks.clear();
}

// pixels returns a picture of that size to write colors to, empty.
function pixels(p, width, height) {
  width = Math.max(1, width);
  height = Math.max(1, height);
  if (p.canvas.width !== width || p.canvas.height !== height || !p.image) {
    p.canvas.width = width;
    p.canvas.height = height;
    p.image = new ImageData(width, height);
    p.colors = new Uint32Array(p.image.data.buffer);
  } else p.colors.fill(0);
  return p;
}
const pixelsFor = () => ({canvas: document.createElement("canvas"), image: null, colors: null});

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

// cutText truncates text to what fits, and remembers it: the labels of rows are the same in each frame.
const cutTexts = new Map();
function cutText(pen, text, width) {
  const key = pen.font + "|" + Math.floor(width) + "|" + text;
  let cut = cutTexts.get(key);
  if (cut === undefined) {
    if (cutTexts.size > 2000) cutTexts.clear();
    cutTexts.set(key, cut = cutTextNow(pen, text, width));
  }
  return cut;
}
function cutTextNow(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  const letters = Array.from(text);
  let low = 0, high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(letters.slice(0, middle).join("") + "…").width <= width) low = middle; else high = middle - 1;
  }
  return low ? letters.slice(0, low).join("") + "…" : "";
}

let width = 0, height = 0;
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

// spansInView calls f for each box that is visible in a row, with node, left side and width: of the nodes that end in one pixel, for the first only.
function spansInView(row, f) {
  const ids = row.ids, reach = row.reach, start = row.course.start, stop = row.course.end, scale = (width - gutter - 8) / (to - from);
  // first is the first node from there on that reaches that time: reach is non-decreasing.
  const first = (low, t) => { let high = ids.length; while (low < high) { const m = (low + high) >> 1; if (reach[m] < t) low = m + 1; else high = m; } return low; };
  const chosen = selected >= 0 ? indexIn(row, selected) : -1, moments = recorded && row.key[0] === "s"; // only a thread waits for as long as a recording tells
  let last = -1;
  for (let at = first(0, from); at < ids.length; at++) {
    const i = ids[at];
    if (start[i] > to) break;
    const x = gutter + (start[i] - from) * scale, until = moments ? x : gutter + (stop[i] - from) * scale;
    if (Math.floor(until) <= last && at !== chosen) {
      const next = first(at + 1, from + (last + 1 - gutter) / scale);
      at = (chosen > at && chosen < next ? chosen : next) - 1;
      continue;
    }
    last = Math.floor(until);
    let w = Math.max(1, until - x);
    const room = at + 1 < ids.length ? (start[ids[at + 1]] - start[i]) * scale : Infinity;
    if (recorded) w = Math.max(w, 3); // the moment at which a call began
    w = Math.max(0.5, Math.min(w, room));
    f(i, x, w, room);
  }
}

// mix returns the color between two.
const mix = (a, b) => (((a & 0xfefefe) >> 1) + ((b & 0xfefefe) >> 1) | 0xff000000) >>> 0;

// drawBoxes draws the boxes of the rows. All lines of pixels of a row are one of three: at its edge, between the edge and the inside of a
// thick border, and inside. These are written, and then stretched over the height of the row.
const lines3 = pixelsFor(), thin = 2.5, labelled = 20;
function drawBoxes(pen, shown, top) {
  const ratio = window.devicePixelRatio || 1, across = Math.max(1, Math.round((width - gutter) * ratio)), p = pixels(lines3, across, shown.length * 3);
  const thick = Math.round(2.5 * ratio), edge = Math.max(1, Math.round(ratio)), engineInks = data.engines.map((name) => inks[name]), mixed = engineInks.map((ink) => mix(ink, inks.box));
  const into = p.colors;
  const fill = (color, line, a, b) => { for (let at = line * across + Math.max(0, a), until = line * across + Math.min(across, b); at < until; at++) into[at] = color; };
  const bold = shown.map(() => false), named = [];
  shown.forEach((row, k) => {
    const critical = row.course.critical, outer = 3 * k, border = outer + 1, inner = outer + 2;
    spansInView(row, (i, x, w, room) => {
      const a = Math.floor((x - gutter) * ratio), b = Math.max(a + 1, Math.floor((x + w - gutter) * ratio)), ink = engineInks[nodes.engine[i]];
      const line = critical[i] ? inks.critical : inks.box, side = critical[i] ? thick : edge;
      if (critical[i]) bold[k] = true;
      if (w <= thin) { // no room for a border on both sides
        const left = w <= 1.5 ? mixed[nodes.engine[i]] : inks.box;
        for (const at of [inner, border, outer]) {
          fill(at !== inner && critical[i] ? line : ink, at, a, b);
          if (at === inner || !critical[i]) fill(left, at, a, Math.min(b, a + edge));
        }
        return;
      }
      fill(line, outer, a, b);
      for (const at of [border, inner]) {
        fill(line, at, a, b);
        if (at === inner || !critical[i]) fill(ink, at, a + side, b - side);
      }
      if ((recorded ? room : w) > labelled) named.push(k, i, x, recorded ? room : w);
    });
  });
  const picture = p.canvas.getContext("2d");
  picture.putImageData(p.image, 0, 0);
  pen.imageSmoothingEnabled = false;
  shown.forEach((row, k) => {
    const y = row.y - top, put = (line, y, h) => pen.drawImage(p.canvas, 0, 3 * k + line, across, 1, gutter, y, across / ratio, h);
    const h = thick / ratio, e = edge / ratio;
    put(2, y, rowHeight);
    if (bold[k]) { put(1, y, h); put(1, y + rowHeight - h, h); }
    put(0, y, e);
    put(0, y + rowHeight - e, e);
  });
  return named;
}

// markOf returns the mark of an engine, drawn once: its letters are not in every font, which makes them slow to draw.
const marks = new Map();
function markOf(engine, critical) {
  const key = engine * 2 + critical, ratio = window.devicePixelRatio || 1;
  let mark = marks.get(key);
  if (mark && mark.ratio === ratio) return mark;
  const text = glyphs[data.engines[engine]] + (critical ? "★" : ""), font = "12px Helvetica,Arial,sans-serif";
  mark = {canvas: document.createElement("canvas"), ratio};
  let pen = mark.canvas.getContext("2d");
  pen.font = font;
  mark.width = pen.measureText(text + " ").width;
  mark.canvas.width = Math.max(1, Math.ceil(mark.width * ratio));
  mark.canvas.height = Math.ceil(rowHeight * ratio);
  pen = mark.canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = font;
  pen.fillStyle = colors.text;
  pen.fillText(text, 0, 16);
  marks.set(key, mark);
  return mark;
}

// nameWithin is the name of a node, truncated to what fits. Widths are measured once per name, and estimated for its parts.
const nameWidths = new Float32Array(count);
function nameWithin(pen, i, room) {
  const name = nodes.name[i], full = nameWidths[i] || (nameWidths[i] = pen.measureText(name).width + 0.01);
  if (full <= room) return name;
  const letters = Array.from(name);
  let fits = Math.min(letters.length - 1, Math.floor((room - 8) / full * letters.length));
  const cut = () => letters.slice(0, fits).join("") + "…";
  while (fits > 0 && pen.measureText(cut()).width > room) fits--;
  return fits > 0 ? cut() : "";
}

function drawNames(pen, shown, named, top) {
  pen.fillStyle = colors.text;
  pen.font = "12px Helvetica,Arial,sans-serif";
  for (let k = 0; k < named.length; k += 4) {
    const row = shown[named[k]], i = named[k + 1], x = named[k + 2], w = named[k + 3], left = Math.max(x, gutter), room = Math.min(x + w, width) - left - 8, y = row.y - top;
    const mark = markOf(nodes.engine[i], row.course.critical[i]);
    if (room < mark.width - 4) continue;
    pen.drawImage(mark.canvas, left + 4, y, mark.canvas.width / mark.ratio, rowHeight);
    const name = room > mark.width + 8 ? nameWithin(pen, i, room - mark.width) : "";
    if (name) pen.fillText(/^[\x20-\x7e…]*$/.test(name) ? name : isolate(name), left + 4 + mark.width, y + 16);
  }
}

// drawChosen outlines the node that is selected, and the one under the pointer.
function drawChosen(pen, shown, top) {
  pen.strokeStyle = colors.accent;
  for (const row of shown) {
    if ((selected < 0 || indexIn(row, selected) < 0) && (hovered < 0 || indexIn(row, hovered) < 0)) continue;
    spansInView(row, (i, x, w) => {
      if (i !== selected && i !== hovered) return;
      pen.lineWidth = i === selected ? 3 : 1.5;
      pen.strokeRect(x - 1, row.y - top - 1, w + 2, rowHeight + 2);
    });
  }
  pen.lineWidth = 1;
}

// drawBand draws the title of a device or rank, and a bar beside its rows.
function drawBand(pen, band, top) {
  const y = band.top - top;
  pen.fillStyle = colors.box;
  pen.fillRect(0, y + 2, width, 1);
  pen.fillRect(0, y + 2, 3, band.bottom - band.top - 2);
  pen.fillStyle = colors.text;
  pen.font = "bold 13px Helvetica,Arial,sans-serif";
  pen.fillText(band.name, 8, y + 18);
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
  if (row.label) pen.fillText(cutText(pen, row.label, gutter - (row.kind ? 78 : 16)), 8, y + 16);
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
    c.atWaits = waitsWhere(c, (k) => c.waits.to[k] === i || c.waits.from[k] === i).slice(0, mostArrows);
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
    const seen = [], {from: before, to: after} = c.waits;
    for (let k = 0; k < after.length && seen.length <= mostArrows; k++) if (after[k] >= 0 && c.start[after[k]] >= from && c.end[before[k]] <= to) seen.push(k);
    const list = seen.length <= mostArrows ? seen : waitsAt(c, selected);
    for (const k of list) {
      const i = before[k], j = after[k];
      if (j < 0) continue;
      const r1 = c.rows[c.stream[i]], r2 = c.rows[c.stream[j]];
      if (!r1 || !r2 || r1 === r2) continue;
      const down = r2.y > r1.y, chosen = j === selected || i === selected;
      arrow(pen, xOf(c.end[i]), r1.y - top + (down ? rowHeight : 0), xOf(c.start[j]), r2.y - top + (down ? 0 : rowHeight), colors.accent, chosen ? 2.5 : c.held[k] > 0 ? 1.6 : 0.7);
    }
  }
  if (recorded) drawRaces(pen, top);
  pen.restore();
}

// drawRaces joins the two calls of each race in view by a broken line.
function drawRaces(pen, top) {
  const c = main(), rowAt = (i) => c.rows[c.stream[i]] || rowOf(i, "e", c);
  pen.strokeStyle = colors.critical;
  pen.lineWidth = 2;
  pen.setLineDash([6, 4]);
  for (const r of recorded.races.slice(0, mostArrows)) {
    pen.beginPath();
    pen.moveTo(xOf(c.start[r.from]), rowAt(r.from).y - top + rowHeight / 2);
    pen.lineTo(xOf(c.start[r.to]), rowAt(r.to).y - top + rowHeight / 2);
    pen.stroke();
  }
  pen.setLineDash([]);
  pen.lineWidth = 1;
}

let asked = 0, opened = false;
function redraw() { asked = asked || requestAnimationFrame(draw); }

const rowsInView = () => { const top = scroller.scrollTop; return rows.filter((row) => row.y + rowHeight > top + axisHeight && row.y < top + height); };

function draw() {
  if (asked) cancelAnimationFrame(asked);
  asked = 0;
  width = scroller.clientWidth;
  height = scroller.clientHeight;
  const top = scroller.scrollTop;
  const pen = size(canvas, width, height), shown = rowsInView();
  for (const band of bands) if (band.bottom > top && band.top < top + height) drawBand(pen, band, top);
  for (const row of shown) drawRow(pen, row, top);
  drawArrows(pen, top); // behind the boxes, so that no arrow covers a name
  pen.save();
  pen.beginPath();
  pen.rect(gutter, 0, width - gutter, height);
  pen.clip();
  const named = drawBoxes(pen, shown, top);
  drawNames(pen, shown, named, top);
  drawChosen(pen, shown, top);
  pen.restore();
  pen.fillStyle = colors.page;
  pen.fillRect(0, 0, width, axisHeight - 4);
  drawAxis(pen);
  canvas.dataset.from = from.toFixed(4);
  canvas.dataset.to = to.toFixed(4);
  canvas.dataset.selected = selected;
  canvas.dataset.replay = replays().indexOf(main());
  if (opened) drawMemory();
}
// For who looks at the page from the browser's console: the data, and the boxes that are visible.
canvas.data = data;
Object.defineProperty(canvas, "bands", {get: () => bands.map((b) => ({...b, rows: rows.filter((row) => row.y > b.top && row.y < b.bottom).map((row) => row.label).filter((label) => label)}))});
Object.defineProperty(canvas, "drawn", {get: () => {
  const all = [];
  for (const row of rowsInView()) spansInView(row, (node, x, w) => all.push({node, row, x, y: row.y - scroller.scrollTop, w, h: rowHeight}));
  return all;
}});

// perPixel returns the least and the most bytes in use within each pixel column of the timeline, between two times; -1 where there are none.
function perPixel(m, until, across) {
  const low = new Float64Array(across).fill(-1), high = new Float64Array(across).fill(-1), scale = across / (to - from);
  const us = m.us, count = us.length;
  let at = 0, past = count;
  while (at < past) { const middle = (at + past) >> 1; if (us[middle] <= from) at = middle + 1; else past = middle; }
  for (at = Math.max(0, at - 1); at < count && us[at] < to; at++) {
    const a = Math.max(0, Math.floor((us[at] - from) * scale)), b = Math.min(across - 1, Math.floor(((at + 1 < count ? us[at + 1] : until) - from) * scale)), v = m.bytes[at];
    for (let x = a; x <= b; x++) {
      if (low[x] < 0 || v < low[x]) low[x] = v;
      if (v > high[x]) high[x] = v;
    }
  }
  return {low, high};
}

// drawMemory fills what is alive in the lower timeline, or in the only one; the other one is a dotted line.
const graph = pixelsFor();
function drawMemory() {
  const shown = main().memory;
  if (!shown.length) return;
  const each = 92, tall = each - 14, w = memory.clientWidth, pen = size(memory, w, each * shown.length + 18), ratio = window.devicePixelRatio || 1;
  const across = Math.max(1, Math.round((w - gutter - 8) * ratio)), down = Math.round(tall * ratio);
  const x = (t) => gutter + (t - from) / (to - from) * (w - gutter - 8);
  shown.forEach((m, k) => {
    const beside = lower ? upper.memory.find((o) => o.device === m.device) : undefined;
    const most = Math.max(m.arena, 1, m.highest, beside ? Math.max(beside.arena, beside.highest) : 0), y0 = k * each + each - 6, scale = (each - 22) / most;
    const p = pixels(graph, across, down), yOf = (v) => Math.max(0, down - Math.max(1, Math.round(v * scale * ratio)));
    p.colors.fill(inks.panel);
    const use = perPixel(m, main().makespan, across), pen2 = Math.max(1, Math.round(ratio));
    const column = (x, a, b, color) => { for (let y = a; y < b; y++) p.colors[y * across + x] = color; };
    for (let x = 0, before = -1; x < across; x++) {
      if (use.high[x] < 0) { before = -1; continue; }
      const a = yOf(use.high[x]), b = yOf(use.low[x]);
      column(x, a, down, inks.h2d);
      column(x, before >= 0 ? Math.min(a, before) : a, Math.min(down, Math.max(b, before, a) + pen2), inks.accent);
      before = b;
    }
    if (beside) {
      const other = perPixel(beside, upper.makespan, across);
      for (let x = 0; x < across; x++) if (other.high[x] >= 0 && Math.floor(x / ratio) % 5 < 2) column(x, yOf(other.high[x]), Math.min(down, yOf(other.low[x]) + pen2), inks.soft);
    }
    p.canvas.getContext("2d").putImageData(p.image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(p.canvas, gutter, y0 - tall, across / ratio, down / ratio);
    pen.setLineDash([6, 4]);
    pen.strokeStyle = colors.critical;
    pen.beginPath();
    pen.moveTo(gutter, y0 - m.arena * scale);
    pen.lineTo(w - 8, y0 - m.arena * scale);
    pen.stroke();
    pen.setLineDash([]);
    if (selected >= 0 && x(main().start[selected]) >= gutter) {
      pen.strokeStyle = colors.text;
      pen.beginPath();
      pen.moveTo(x(main().start[selected]), y0 - each + 8);
      pen.lineTo(x(main().start[selected]), y0);
      pen.stroke();
    }
    pen.fillStyle = colors.text;
    pen.font = "bold 12px Helvetica,Arial,sans-serif";
    pen.fillText(data.unit + " " + m.device, 8, y0 - 50);
    pen.font = "11px Helvetica,Arial,sans-serif";
    pen.fillStyle = colors.soft;
    pen.fillText("arena " + bytes(m.arena) + " - -", 8, y0 - 34);
    pen.fillText("alive at most " + bytes(m.highest), 8, y0 - 19);
  });
}
