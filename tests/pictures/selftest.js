// What a browser test does inside a timeline page: it presses keys, clicks, turns the wheel, and writes down what came of it.
(async () => {
"use strict";
const out = {};
try {
  const $ = (id) => document.getElementById(id);
  const canvas = $("timeline"), data = canvas.data;
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const key = async (k, more) => { canvas.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true, cancelable: true, ...more})); await frame(); };
  const state = () => ({from: +canvas.dataset.from, to: +canvas.dataset.to, selected: +canvas.dataset.selected, replay: +canvas.dataset.replay});
  const mouse = (type, d, more) => {
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent(type, {clientX: box.left + d.x, clientY: box.top + d.y, button: 0, bubbles: true, cancelable: true, pointerId: 1, ...more}));
  };
  await frame();

  // What is drawn: spans of a row in order, none over another, all inside.
  let overlaps = 0, disorder = 0, outside = 0;
  const last = new Map();
  for (const d of canvas.drawn) {
    const before = last.get(d.row);
    if (before && before.x + before.w > d.x + 0.51) overlaps++;
    if (before && before.x > d.x) disorder++;
    if (d.y + d.h < 0 || d.y > canvas.clientHeight || d.x > canvas.clientWidth) outside++;
    last.set(d.row, d);
  }
  Object.assign(out, {nodes: data.nodes.name.length, drawn: canvas.drawn.length, overlaps, disorder, outside, title: document.title,
    heading: $("name").textContent, summary: $("summary").textContent, canvasWidth: canvas.clientWidth, pageWidth: document.documentElement.scrollWidth, windowWidth: innerWidth});

  // Keys.
  out.start = state();
  await key("+");
  out.zoomedIn = state();
  await key("Home");
  out.home = state();
  await key("ArrowRight");
  out.first = state();
  await key("ArrowRight");
  out.second = state();
  await key("ArrowDown");
  out.down = state();
  await key("End");
  out.end = state();
  const upper = data.courses[data.upper], main = data.lower < 0 ? upper : data.courses[data.lower];
  out.endBy = main.by[out.end.selected];
  out.label = canvas.getAttribute("aria-label");
  out.nodeText = $("node").textContent;
  await key("Enter");
  out.enter = state();
  await key("Escape");
  out.escape = state();
  await key("c");
  out.critical = state();
  out.path = main.path;
  await key("+");
  await key("+");
  out.beforePan = state();
  await key("ArrowRight", {shiftKey: true});
  out.panned = state();
  await key("Home");
  await key("[");
  out.replayBefore = state();
  out.replayText = $("replay").textContent;
  await key("]");
  out.replayNext = state();

  // Mouse: a click chooses, the wheel zooms where it is, dragging moves, hovering tells.
  await key("Escape");
  const wide = canvas.drawn.filter((d) => d.y > 30 && d.y < canvas.clientHeight - 30).sort((a, b) => b.w - a.w)[0];
  const middle = {x: Math.max(190, wide.x + wide.w / 2), y: wide.y + wide.h / 2};
  // The event of an earlier scroll may come late and hide what the first move shows.
  for (let k = 0; k < 20 && $("tip").hidden; k++) {
    mouse("pointermove", middle);
    await frame();
  }
  out.tip = $("tip").hidden ? "" : $("tip").textContent;
  mouse("pointerdown", middle);
  mouse("pointerup", middle);
  await frame();
  out.clicked = {want: wide.node, ...state()};
  out.wantTip = data.nodes.name[wide.node];
  const at = (state().from + state().to) / 2;
  const box = canvas.getBoundingClientRect();
  const scrolls = new WheelEvent("wheel", {deltaY: -100, clientX: box.left + 300, clientY: box.top + 60, bubbles: true, cancelable: true});
  const before = state();
  mouse("pointermove", middle);
  canvas.dispatchEvent(scrolls);
  await frame();
  out.wheelScrolls = !scrolls.defaultPrevented && state().from === before.from && state().to === before.to;
  out.tipGone = $("tip").hidden;
  canvas.dispatchEvent(new WheelEvent("wheel", {ctrlKey: true, deltaY: -100, clientX: box.left + (176 + canvas.clientWidth - 8) / 2, clientY: box.top + 60, bubbles: true, cancelable: true}));
  await frame();
  out.wheel = {...state(), at};
  const a = {x: 400, y: canvas.clientHeight - 12}, b = {x: 300, y: canvas.clientHeight - 12};
  mouse("pointerdown", a);
  mouse("pointermove", b);
  mouse("pointerup", b);
  await frame();
  out.dragged = state();
  await key("Home");

  // The table: only what is in view, sorted by time, sortable, reached by keyboard.
  const rows = () => [...document.querySelectorAll("#rows > [role=row]")];
  out.rows = rows().length;
  out.rowCount = +$("table").getAttribute("aria-rowcount");
  const headers = [...document.querySelectorAll("#head [role=columnheader]")];
  out.headers = headers.map((h) => h.textContent);
  out.sorted = headers.filter((h) => h.getAttribute("aria-sort") !== "none").map((h) => h.textContent + ":" + h.getAttribute("aria-sort"));
  const measured = data.courses.filter((c) => c.measured && c.plan === 0);
  const starts = measured.length ? measured[state().replay].start : main.start;
  const ids = () => rows().map((r) => +r.id.slice(3));
  out.byTime = ids().every((id, k, all) => !k || starts[all[k - 1]] <= starts[id]);
  headers[0].querySelector("button").click();
  await frame();
  const names = ids().map((id) => data.nodes.name[id]);
  out.byName = names.every((n, k) => !k || names[k - 1] <= n) && headers[0].getAttribute("aria-sort") === "ascending";
  headers[0].querySelector("button").click();
  await frame();
  out.descending = headers[0].getAttribute("aria-sort");
  $("table").dispatchEvent(new KeyboardEvent("keydown", {key: "Home", bubbles: true, cancelable: true}));
  $("table").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true, cancelable: true}));
  await frame();
  out.tableSelected = rows().findIndex((r) => r.getAttribute("aria-selected") === "true");
  out.tableActive = $("table").getAttribute("aria-activedescendant") === "row" + state().selected;
  $("find").value = data.nodes.name[0].slice(0, 12);
  $("find").dispatchEvent(new Event("input"));
  await frame();
  out.found = rows().length > 0 && ids().every((id) => data.nodes.name[id].toLowerCase().includes($("find").value.trim().toLowerCase()) || data.texts[data.nodes.kind[id]].includes($("find").value));
  const matches = +$("found-count").textContent.split(" of ")[1], firstFound = state().selected;
  out.matches = data.nodes.name.filter((n, i) => n.toLowerCase().includes($("find").value.trim().toLowerCase()) || data.texts[data.nodes.kind[i]].includes($("find").value)).length === matches && $("found-count").textContent.startsWith("1 of ");
  $("find").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
  await frame();
  out.foundNext = matches < 2 || state().selected !== firstFound && $("found-count").textContent === "2 of " + matches;
  $("found-before").click();
  $("found-before").click();
  out.foundWraps = $("found-count").textContent === matches + " of " + matches || matches < 2;
  $("find").value = "";
  $("find").dispatchEvent(new Event("input"));
  out.gaps = document.querySelectorAll("#gaps tbody tr").length;
  const now = measured.length ? measured[state().replay] : main;
  out.wantGaps = now.gaps.length;
  out.waits = document.querySelectorAll("#waits tbody tr").length;
  out.wantWaits = Math.min(200, now.held.filter((us) => us > 0).length);
  out.findings = [...document.querySelectorAll("#findings > div")].map((box) => box.querySelector("h3").textContent + " | " + box.querySelector("dt").textContent + ": " + box.querySelector("dd").textContent);
  out.wantFindings = now.lines[0].head + ": " + now.lines[0].text;
  out.firstSection = document.querySelector("main > section h2").textContent;

  // The lists of timelines: another one below, the same twice, only one.
  const pick = async (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event("change")); await frame(); };
  out.choices = [...$("upper").options].map((o) => o.textContent);
  const kinds = () => [...new Set(canvas.drawn.map((d) => d.row.course.title))].sort();
  await key("Home");
  if (data.courses.length > 1) {
    await pick("lower", "");
    out.single = [kinds(), $("lower").value, document.querySelectorAll("#findings > div").length];
    await pick("upper", data.courses.length - 1);
    await pick("lower", 0);
    out.swapped = kinds();
    out.swappedHeads = [...document.querySelectorAll("#head [role=columnheader]")].map((h) => h.textContent);
    await pick("upper", data.upper);
    await pick("lower", data.lower);
  }
  out.restored = kinds();
  out.memory = $("memory").clientHeight;
  out.memoryText = $("memory-text").textContent;

  // Reach: what the Tab key comes to, each with a name.
  const reach = [...document.querySelectorAll("a[href],button,input,[tabindex='0']")].filter((e) => e.offsetParent !== null || e === canvas);
  out.reach = reach.length;
  out.nameless = reach.filter((e) => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.labels && e.labels.length)).length;

  // Contrast of text on what it stands on, in both themes.
  const luminance = (hex) => {
    const full = hex.length === 4 ? "#" + [...hex.slice(1)].map((c) => c + c).join("") : hex;
    const [r, g, b] = [1, 3, 5].map((k) => parseInt(full.slice(k, k + 2), 16) / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  out.contrast = {};
  for (const theme of ["light", "dark"]) {
    document.documentElement.dataset.theme = theme;
    const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
    for (const on of ["page", "panel", "row", "compute", "h2d", "d2h", "peer", "d2d", "host"]) out.contrast[theme + " text on " + on] = contrast(color("text"), color(on));
    for (const on of ["page", "panel"]) out.contrast[theme + " soft on " + on] = contrast(color("soft"), color(on));
    out.contrast[theme + " link"] = contrast(color("accent"), color("page"));
  }
  const theme = document.documentElement.dataset.theme;
  $("theme").click();
  out.themed = theme !== document.documentElement.dataset.theme;

  out.scripts = document.querySelectorAll("script").length;
  out.images = document.querySelectorAll("img").length;
} catch (e) {
  out.error = String(e && e.stack || e);
}
out.errors = window.pageErrors;
const pre = document.createElement("pre");
pre.id = "selftest";
pre.textContent = JSON.stringify(out);
document.body.append(pre);
})();
