// The timeline page's script, first part: reads the data in this page, lays out rows, and says what is known of a node. Loads nothing.
// The four parts share one scope; page_draw.js, page_controls.js and page_table.js follow.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const nodes = data.nodes, count = nodes.name.length;
const courses = data.courses;
const recorded = data.recorded; // the page is of the calls of a program: rows are streams and threads, and times are those of the host

// unpack reads a column that page_columns.go wrote, into an array of that kind.
function unpack(text, Kind) {
  const raw = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  let at = 0;
  const unsigned = () => {
    for (let value = 0, scale = 1;; scale *= 128) {
      const byte = raw[at++];
      if (byte < 128) return value + byte * scale;
      value += (byte - 128) * scale;
    }
  };
  const out = new Kind(unsigned()), count = out.length;
  for (let k = 0, value = 0; k < count;) {
    let step = raw[at++];
    if (step >= 128) {
      const next = raw[at];
      if (next < 128) { step += (next - 1) * 128; at++; } else { at--; step = unsigned(); }
    }
    if (step !== 0) out[k++] = value += step % 2 ? -(step + 1) / 2 : step / 2;
    else {
      const until = k + unsigned();
      out.fill(value, k, until);
      k = until;
    }
  }
  return out;
}
const whole = (text) => unpack(text, Int32Array), wide = (text) => unpack(text, Float64Array);
function microseconds(text) {
  const out = wide(text);
  for (let k = 0; k < out.length; k++) out[k] /= 1e3;
  return out;
}
// later reads a property when it is first used: the first picture needs few of them.
function later(object, read, ...names) {
  for (const name of names) {
    const text = object[name];
    if (text === undefined) continue;
    Object.defineProperty(object, name, {configurable: true, enumerable: true, get: () => {
      const value = read(text);
      Object.defineProperty(object, name, {value, enumerable: true});
      return value;
    }});
  }
}
later(nodes, whole, "engine", "device", "line", "action", "kind");
later(nodes, wide, "bytes", "flops");
later(data.edges, whole, "start", "from", "text");
for (const p of data.plans) {
  later(p, whole, "band", "stream", "cost");
  later(p.waits, whole, "from", "to", "event", "why");
}
for (const c of courses) {
  const start = c.start = wide(c.start), end = c.end = wide(c.duration); // a course has getters, which makes its other properties slow too
  for (let i = 0; i < count; i++) {
    end[i] = (start[i] + end[i]) / 1e3;
    start[i] /= 1e3;
  }
  later(c, microseconds, "alone", "held");
  later(c, whole, "by", "cause", "order");
  c.path = Array.from(whole(c.path));
  for (const m of c.memory) {
    later(m, microseconds, "us");
    later(m, wide, "bytes");
  }
  c.streams = data.plans[c.plan].streams;
  c.band = data.plans[c.plan].band;
  Object.defineProperty(c, "stream", {get: () => data.plans[c.plan].stream});
  c.waits = data.plans[c.plan].waits;
  c.critical = new Uint8Array(count);
  for (const i of c.path) c.critical[i] = 1;
}
const engineWords = recorded ? Object.fromEntries(data.engines.map((name, e) => [name, recorded.words[e]])) : {compute: "kernel, map or set", h2d: "copy to device", d2h: "copy to host", peer: "copy between devices", d2d: "copy on a device", host: "copy on the host"};
const glyphs = {compute: "▪", h2d: "↑", d2h: "↓", peer: "↔", d2d: "↺", host: "⌂"};
// The lower rows are those of engines, or of threads. A key holds the device and the engine.
const keyOf = recorded ? (i) => nodes.device[i] * 16 : (i) => nodes.device[i] * 16 + nodes.engine[i];
const keyWords = (key) => recorded ? recorded.threads[key >> 4] : "engine " + data.engines[key & 15];
const bandOf = (key) => recorded ? 0 : key >> 4;
const canvas = $("timeline"), scroller = $("scroller"), memory = $("memory"), tip = $("tip");
const gutter = 176, axisHeight = 26, rowHeight = 24, rowGap = 2, sectionGap = 10, bandHead = 24;
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
let selected = -1, hovered = -1, from = 0, to = Infinity, rows = [], bands = [], total = 0, end = 1;

// Rows: each stream and each engine has one row for each timeline that is shown. An engine that runs several nodes at once gets several rows.
// With several devices or ranks, the rows of each are one band, which has a title.
const mostTracks = 12;
function pack(ids, c) {
  const tracks = [], free = [], start = c.start, stop = c.end;
  for (const i of ids) {
    let t = 0, earliest = 0;
    while (t < free.length && free[t] > start[i] + 1e-6) {
      if (free[t] < free[earliest]) earliest = t;
      t++;
    }
    if (t === free.length) {
      if (t < mostTracks) { tracks.push([]); free.push(0); } else t = earliest;
    }
    tracks[t].push(i);
    free[t] = Math.max(free[t], stop[i]);
  }
  return tracks;
}

function layout() {
  rows = [];
  bands = [];
  let y = axisHeight;
  const add = (key, label, ids, gaps, several) => {
    let first = true;
    for (const c of shownCourses()) {
      const list = ids(c);
      if (!list) continue; // this plan has the stream on another device
      (several ? pack(list, c) : [list]).forEach((track, n) => {
        const reach = new Float64Array(track.length), stop = c.end;
        for (let at = 0, most = 0; at < track.length; at++) reach[at] = most = Math.max(most, stop[track[at]]);
        rows.push({key, label: first ? label : "", kind: n || !lower ? "" : c.short, below: c === lower, ids: track, reach, course: c, y, gaps: n ? [] : gaps(c)});
        first = false;
        y += rowHeight + rowGap;
      });
    }
    y += sectionGap;
  };
  const engines = new Set();
  for (const c of shownCourses()) {
    const ofStream = c.ofStream = c.streams.map(() => []), ofEngine = c.ofEngine = new Map();
    const place = c.place = new Int32Array(count); // of each node in the order of starts
    const order = c.order, stream = c.stream;
    for (let at = 0, last = -1, list; at < count; at++) {
      const i = order[at], key = keyOf(i);
      place[i] = at;
      if (stream[i] >= 0) ofStream[stream[i]].push(i); // the host's own calls are on no stream
      if (key !== last && !(list = ofEngine.get(last = key))) ofEngine.set(key, list = []);
      list.push(i);
    }
    for (const key of c.ofEngine.keys()) engines.add(key);
  }
  const numbers = new Set([...engines].map(bandOf)), most = Math.max(...shownCourses().map((c) => c.streams.length));
  for (const c of shownCourses()) for (const b of c.band) numbers.add(b);
  const many = [...numbers].some((b) => b !== 0), order = [...engines].sort((a, b) => a - b);
  for (const b of [...numbers].sort((a, b) => a - b)) {
    const name = data.unit + " " + b, top = y;
    if (many) y += bandHead;
    for (let s = 0; s < most; s++) {
      const named = shownCourses().find((c) => c.band[s] === b);
      if (named) add("s" + s, many ? named.streams[s].replace(name + ", ", "").replace(", " + name, "") : named.streams[s], (c) => c.band[s] === b ? c.ofStream[s] : undefined, () => [], false);
    }
    for (const key of order) {
      const engine = key & 15;
      if (bandOf(key) === b) add("e" + key, keyWords(key), (c) => c.ofEngine.get(key) || [], (c) => c.gaps.filter((g) => g.device === b && g.engine === engine), !recorded);
    }
    if (many) bands.push({name, top, bottom: y - sectionGap});
  }
  total = y;
  end = 0;
  for (const {end: stop} of shownCourses()) for (let i = 0; i < count; i++) if (stop[i] > end) end = stop[i];
  end = end || 1;
  fitWindow();
}

// indexIn returns where a node is in a row, -1 if it is not.
function indexIn(row, i) {
  const place = row.course.place;
  let low = 0, high = row.ids.length;
  while (low < high) { const m = (low + high) >> 1; if (place[row.ids[m]] < place[i]) low = m + 1; else high = m; }
  return row.ids[low] === i ? low : -1;
}

function rowOf(i, section, c) {
  const key = section === "e" || c.stream[i] < 0 ? "e" + keyOf(i) : "s" + c.stream[i];
  return rows.find((r) => r.key === key && r.course === c && indexIn(r, i) >= 0);
}

// fitWindow gives the timeline the height that its rows and the window allow.
function fitWindow() {
  scroller.style.height = Math.min(total + 4, innerHeight * 0.62, 640) + "px";
  $("room").style.height = Math.max(0, total - scroller.clientHeight) + "px";
}

// Words.
function cause(c, i) {
  const by = c.by[i], name = data.causes[c.cause[i]];
  if (name === "start") return ["started at once", -1];
  if (by < 0) return [name === "host" ? "started as soon as the host had submitted it" : "waited for " + name, -1];
  const text = dependency(by, i), gap = c.start[i] - c.end[by];
  return [(c.measured && gap >= 0.5 ? time(gap) + " after it: " : "") + "waited for " + name + (text ? " (" + text + ")" : ""), by];
}

// waitsWhere returns the numbers of the waits that a condition holds for.
function waitsWhere(c, holds) {
  const list = [];
  for (let k = 0; k < c.waits.to.length; k++) if (holds(k)) list.push(k);
  return list;
}

// dependency is the reason why a node depends on another, or "".
function dependency(before, i) {
  for (let k = data.edges.start[i]; k < data.edges.start[i + 1]; k++) if (data.edges.from[k] === before) return data.texts[data.edges.text[k]];
  return "";
}

// callFacts is what is known of a call of a program.
function callFacts(i) {
  const c = main(), list = [["name", nodes.name[i]], ["kind", kindOf(i)], ["thread", recorded.threads[nodes.device[i]]]];
  if (c.stream[i] >= 0) list.push(["stream", c.streams[c.stream[i]]]);
  if (data.texts[nodes.action[i]]) list.push(["place", data.texts[nodes.action[i]]]);
  if (nodes.bytes[i]) list.push(["bytes", bytes(nodes.bytes[i])]);
  list.push(["began", fixed(c.start[i]) + " us after the first call"]);
  if (c.end[i] > c.start[i]) list.push(["the host waited", "at most " + time(c.end[i] - c.start[i])]);
  for (const k of waitsWhere(c, (k) => c.waits.to[k] === i)) list.push(["waits for", data.texts[c.waits.why[k]], c.waits.from[k]]);
  for (const r of recorded.races) if (r.from === i || r.to === i) list.push(["race", r.text + ", and nothing orders it with", r.from === i ? r.to : r.from]);
  return list;
}

function facts(i) {
  if (recorded) return callFacts(i);
  const places = shownCourses().map((c) => c.streams[c.stream[i]]);
  const list = [["name", nodes.name[i]], ["does", data.texts[nodes.action[i]]], ["stream", places[0] === places[places.length - 1] ? places[0] : places.join("; below: ")],
    ["engine", data.engines[nodes.engine[i]] + ", " + data.unit + " " + nodes.device[i]]];
  if (nodes.bytes[i]) list.push(["bytes", bytes(nodes.bytes[i])]);
  if (nodes.flops[i]) list.push(["operations", nodes.flops[i].toLocaleString("en")]);
  if (nodes.line[i]) list.push(["line", String(nodes.line[i])]);
  for (const c of shownCourses()) {
    const d = c.end[i] - c.start[i], cost = data.plans[c.plan].cost;
    const rate = c.measured && nodes.bytes[i] && d > 0 ? ", " + (nodes.bytes[i] / d / 1e3).toFixed(1) + " GB/s" : "";
    list.push([c.title, time(d) + ", from " + fixed(c.start[i]) + " to " + fixed(c.end[i]) + " us" + rate + (c.alone && c.alone[i] < d * 0.999 ? "; " + time(c.alone[i]) + " alone" : "") + (cost && !c.measured ? "; cost: " + data.texts[cost[i]] : "")]);
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
  for (const c of recorded ? [] : shownCourses()) {
    const waits = waitsWhere(c, (k) => c.waits.to[k] === selected);
    if (!waits.length) continue;
    dl.append(element("dt", "waits, " + c.title));
    const dd = element("dd");
    for (const k of waits) {
      const before = c.waits.from[k];
      const button = element("button", nodes.name[before], "link");
      button.type = "button";
      button.addEventListener("click", () => select(before, true));
      const line = element("div");
      line.append("event " + c.waits.event[k] + ": ", button, " (", element("bdi", data.texts[c.waits.why[k]]), ")", c.held[k] > 0 ? "; held the stream for " + time(c.held[k]) : "; held nothing");
      dd.append(line);
    }
    dl.append(dd);
  }
  box.append(dl);
}
