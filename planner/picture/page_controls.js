// The timeline page's script, third part: choosing nodes, moving and zooming with mouse and keyboard, and the list of idle times.

// Choosing.
function select(i, show) {
  selected = i;
  if (i >= 0 && show) reveal(i);
  const name = i >= 0 ? "Timeline. " + nodes.name[i] + ", " + facts(i).slice(1).map((f) => f[0] + " " + f[1] + (f[2] >= 0 ? " " + nodes.name[f[2]] : "")).join("; ")
    : "Timeline of " + count + (recorded ? " calls on " : " nodes on ") + upper.streams.length + " streams";
  canvas.setAttribute("aria-label", name);
  showNode();
  drawTable(show);
  redraw();
}

function reveal(i) {
  const s = Math.min(upper.start[i], main().start[i]), e = Math.max(upper.end[i], main().end[i]);
  if (s < from || e > to) {
    const span = Math.max(to - from, (e - s) * 1.4);
    view((s + e) / 2 - span / 2, (s + e) / 2 + span / 2);
  }
  const row = rowOf(i, "s", upper);
  if (row && (row.y < scroller.scrollTop + axisHeight || row.y + 2 * rowHeight > scroller.scrollTop + scroller.clientHeight)) scroller.scrollTop = row.y - scroller.clientHeight / 2;
}

function view(a, b) {
  const least = Math.max(end * 1e-7, 1e-3), most = end * 1.04;
  let span = Math.min(most, Math.max(least, b - a));
  const middle = (a + b) / 2;
  a = Math.max(-end * 0.02, Math.min(middle - span / 2, end * 1.02 - span));
  from = a;
  to = a + span;
  redraw();
}
function zoom(factor, at) { view(at - (at - from) * factor, at + (to - at) * factor); }
function fit() { view(-end * 0.02, end * 1.02); }
const center = () => selected >= 0 ? (upper.start[selected] + upper.end[selected]) / 2 : (from + to) / 2;

// show chooses the timelines of the upper and the lower rows; null below for only one.
function show(above, below) {
  const before = end;
  upper = above;
  lower = below;
  layout();
  streamRows();
  if (to - from > before || to > end * 1.02) fit();
  for (const [list, c] of [["upper", upper], ["lower", lower]]) $(list).value = c ? courses.indexOf(c) : "";
  const all = replays(), at = all.indexOf(main());
  $("replays").hidden = at < 0;
  $("replay").textContent = "replay " + (at + 1) + " of " + all.length;
  $("replay-before").disabled = at <= 0;
  $("replay-next").disabled = at === all.length - 1;
  explain();
  buildTable();
  sayMemory();
  if (opened) fillLists();
  select(selected, false);
}
function fillLists() {
  sortTable();
  listGaps();
  listWaits();
}
// replays are the measured replays of the run that is shown below, or alone.
function replays() { return main().measured ? courses.filter((c) => c.measured && c.plan === main().plan) : []; }
function step(by) {
  const all = replays(), next = all[all.indexOf(main()) + by];
  if (next) show(lower ? upper : next, lower ? next : null);
}
function streamRows() { for (const c of shownCourses()) c.rows = c.streams.map((_, s) => rows.find((r) => r.key === "s" + s && r.course === c)); }

function nextCritical() {
  const path = main().path;
  if (path.length) select(path[(path.indexOf(selected) + 1) % path.length], true);
}

function inRow(step) {
  if (selected < 0) { if (count) select(firstVisible(), true); return; }
  const row = rowOf(selected, "s", upper), at = indexIn(row, selected) + step;
  if (at >= 0 && at < row.ids.length) select(row.ids[at], true);
}
function firstVisible() {
  for (const row of rowsInView()) {
    let first = -1;
    if (!row.below) spansInView(row, (i, x, w) => { if (first < 0 && x + w >= gutter) first = i; });
    if (first >= 0) return first;
  }
  return 0;
}
function otherRow(step) {
  if (selected < 0) { inRow(0); return; }
  const t = upper.start[selected], list = rows.filter((row) => row.course === upper && (recorded || row.key[0] === "s"));
  for (let at = list.indexOf(rowOf(selected, "s", upper)) + step; at >= 0 && at < list.length; at += step) {
    const ids = list[at].ids;
    if (!ids.length) continue;
    select(ids.reduce((a, b) => Math.abs(upper.start[b] - t) < Math.abs(upper.start[a] - t) ? b : a), true);
    return;
  }
}

canvas.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const move = (part) => view(from + (to - from) * part, to + (to - from) * part);
  const keys = {
    ArrowLeft: () => e.shiftKey ? move(-0.2) : inRow(-1), ArrowRight: () => e.shiftKey ? move(0.2) : inRow(1),
    ArrowUp: () => otherRow(-1), ArrowDown: () => otherRow(1), PageUp: () => move(-0.9), PageDown: () => move(0.9),
    "+": () => zoom(0.6, center()), "=": () => zoom(0.6, center()), "-": () => zoom(1 / 0.6, center()), _: () => zoom(1 / 0.6, center()),
    Home: fit, End: () => { let last = 0; for (let i = 1; i < count; i++) if (main().end[i] > main().end[last]) last = i; if (count) select(last, true); },
    Enter: () => { if (selected >= 0 && main().by[selected] >= 0) select(main().by[selected], true); },
    c: nextCritical, "[": () => step(-1), "]": () => step(1), Escape: () => { tip.hidden = true; select(-1); },
  };
  const act = keys[e.key];
  if (!act) return;
  e.preventDefault();
  act();
});

// Mouse.
function hit(e) {
  const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
  if (x < gutter) return null;
  const row = rowsInView().find((r) => y >= r.y - scroller.scrollTop && y <= r.y - scroller.scrollTop + rowHeight);
  let best = null, nearest = Infinity;
  if (row) spansInView(row, (i, left, w) => {
    const away = Math.abs(left + w / 2 - x);
    if (x < left - 2 || x > left + w + 2 || away >= nearest) return;
    best = {node: i, row};
    nearest = away;
  });
  return best;
}
function gapAt(e) {
  const box = canvas.getBoundingClientRect(), t = tOf(e.clientX - box.left), y = e.clientY - box.top + scroller.scrollTop;
  const row = rows.find((r) => y >= r.y && y <= r.y + rowHeight);
  const gap = row && e.clientX - box.left > gutter ? row.gaps.find((g) => t >= g.start && t <= g.end) : undefined;
  return gap && {course: row.course, gap};
}
function showTip(e, text) {
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, e.clientY + 18 + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 10 : e.clientY + 18) + "px";
}
let drag = null;
canvas.addEventListener("pointerdown", (e) => {
  if (e.button !== 0) return;
  drag = {x: e.clientX, y: e.clientY, from, to, scroll: scroller.scrollTop, moved: false};
  if (e.isTrusted) canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener("pointermove", (e) => {
  if (drag) {
    const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
    if (Math.abs(dx) + Math.abs(dy) > 4) drag.moved = true;
    if (drag.moved) {
      tip.hidden = true;
      const shift = -dx / (width - gutter - 8) * (drag.to - drag.from);
      scroller.scrollTop = drag.scroll - dy;
      view(drag.from + shift, drag.to + shift);
    }
    return;
  }
  const spot = hit(e), node = spot ? spot.node : -1;
  if (node !== hovered) { hovered = node; redraw(); }
  const gap = spot ? undefined : gapAt(e);
  if (node >= 0) showTip(e, facts(node).map((f) => f[0] + ": " + isolate(f[1]) + (f[2] >= 0 ? " " + isolate(nodes.name[f[2]]) : "")).join("\n"));
  else if (gap) showTip(e, gapText(gap.course, gap.gap));
  else tip.hidden = true;
});
canvas.addEventListener("pointerup", (e) => {
  const moved = drag && drag.moved;
  drag = null;
  if (moved) return;
  const spot = hit(e);
  canvas.focus({preventScroll: true});
  select(spot ? spot.node : -1, false);
  if (spot) showInTable();
});
canvas.addEventListener("pointerleave", () => { tip.hidden = true; if (hovered >= 0) { hovered = -1; redraw(); } });
canvas.addEventListener("dblclick", (e) => {
  const spot = hit(e);
  if (!spot) return;
  const s = spot.row.course.start[spot.node], d = Math.max(spot.row.course.end[spot.node] - s, end * 1e-6);
  view(s - d, s + 2 * d);
});
// The wheel alone scrolls the rows and then the page, as everywhere; browsers report a pinch as the wheel with Ctrl.
canvas.addEventListener("wheel", (e) => {
  tip.hidden = true;
  const unit = e.deltaMode === 1 ? 24 : 1, zooms = e.ctrlKey || e.metaKey;
  if (!zooms && !e.shiftKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
  e.preventDefault();
  if (!zooms && (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))) {
    const d = (e.deltaX || e.deltaY) * unit / (width - gutter) * (to - from);
    view(from + d, to + d);
    return;
  }
  zoom(Math.exp(Math.max(-200, Math.min(200, e.deltaY * unit)) * 0.0022), tOf(e.clientX - canvas.getBoundingClientRect().left));
}, {passive: false});
scroller.addEventListener("scroll", redraw);
for (const event of ["blur", "pointercancel"]) addEventListener(event, () => { tip.hidden = true; }, true);
addEventListener("scroll", (e) => { if (e.target.contains(canvas)) tip.hidden = true; }, true); // a list that scrolls moves nothing under the pointer
addEventListener("resize", () => { fitWindow(); redraw(); drawTable(false); });

function gapText(c, g) {
  const [why, by] = cause(c, g.next);
  return "engine " + data.engines[g.engine] + " idle " + time(g.end - g.start) + ", from " + fixed(g.start) + " us\nended by " + isolate(nodes.name[g.next]) + "\nwhich " + why.replace("started at once", "was ready at once") + (by >= 0 ? ": " + isolate(nodes.name[by]) : "");
}

// nodeCell is a table cell with a button that selects a node.
function nodeCell(i) {
  const cell = element("td");
  if (i < 0) return cell;
  const button = element("button", nodes.name[i], "link");
  button.type = "button";
  button.addEventListener("click", () => { select(i, true); canvas.focus(); });
  cell.append(button);
  return cell;
}

// listGaps fills the table of idle engines, of the lower timeline or of the only one.
function listGaps() {
  const c = main(), gaps = c.gaps.slice().sort((a, b) => (b.end - b.start) - (a.end - a.start));
  const many = nodes.device.some((d) => d !== 0);
  $("gaps-section").hidden = !gaps.length;
  $("h-gaps").textContent = "Idle engines, " + c.title;
  $("gaps").tBodies[0].replaceChildren(...gaps.map((g) => {
    const tr = element("tr"), [why, by] = cause(c, g.next);
    tr.append(element("td", data.engines[g.engine] + (many ? ", " + data.unit + " " + g.device : "")), element("td", fixed(g.start)), element("td", fixed(g.end - g.start)),
      nodeCell(g.next), element("td", why.replace("waited for ", "") + (by >= 0 ? ": " + nodes.name[by] : "")));
    return tr;
  }));
}

// listWaits fills the table of the waits that held their streams, the longest first.
const mostWaits = 200;
function listWaits() {
  const c = main(), waits = c.waits.to.length, held = waitsWhere(c, (k) => c.held[k] > 0).sort((a, b) => c.held[b] - c.held[a] || a - b);
  const same = lower && upper.plan === lower.plan;
  $("waits-section").hidden = !waits || Boolean(recorded); // how long a stream waited is not known of calls
  $("h-waits").textContent = "Waits that held, " + c.title;
  const sum = held.reduce((s, k) => s + c.held[k], 0);
  $("waits-text").textContent = held.length + " of " + waits + " waits held a stream" + (held.length ? ", " + time(sum) + " in all" + (held.length > mostWaits ? "; the longest " + mostWaits + ":" : ":") : ".");
  $("waits").hidden = !held.length;
  $("waits-beside").hidden = !same;
  $("waits-beside").textContent = same ? upper.short + " us" : "";
  $("waits").tBodies[0].replaceChildren(...held.slice(0, mostWaits).map((k) => {
    const before = c.waits.from[k], after = c.waits.to[k], tr = element("tr");
    tr.append(element("td", fixed(c.held[k])));
    if (same) tr.append(element("td", fixed(upper.held[k])));
    tr.append(element("td", after < 0 ? "" : c.streams[c.stream[after]]), nodeCell(after), nodeCell(before), element("td", data.texts[c.waits.why[k]]));
    return tr;
  }));
}
