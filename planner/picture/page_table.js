// The timeline page's script, fourth part: the table, of which only the rows in view are in the document, the words around the timeline, and
// the first drawing.
const lineHeight = 26;
const head = $("head"), body = $("body"), lines = $("rows"), table = $("table");
let order = [], sortBy = "", ascending = true;
const kindOf = (i) => data.texts[nodes.kind[i]];
const take = (c, i) => c.end[i] - c.start[i];
let columns = [];
function tableColumns() {
  const beside = lower && lower.plan !== upper.plan;
  const times = (c) => [
    {name: c.short + " start", wide: "132px", least: 132, number: true, value: (i) => c.start[i], text: (i) => fixed(c.start[i])},
    {name: c.short + " us", wide: "112px", least: 112, number: true, value: (i) => take(c, i), text: (i) => fixed(take(c, i))},
  ];
  if (recorded) return [
    {name: "call", wide: "minmax(150px,2fr)", least: 150, value: (i) => nodes.name[i], text: (i) => (main().critical[i] ? "★ " : "") + nodes.name[i]},
    {name: "kind", wide: "minmax(90px,1fr)", least: 90, value: (i) => kindOf(i)},
    {name: "stream", wide: "130px", least: 130, value: (i) => upper.streams[upper.stream[i]] || ""},
    {name: "thread", wide: "140px", least: 140, value: (i) => recorded.threads[nodes.device[i]]},
    {name: "host start", wide: "112px", least: 112, number: true, value: (i) => upper.start[i], text: (i) => fixed(upper.start[i])},
    {name: "waited us at most", wide: "160px", least: 160, number: true, value: (i) => take(upper, i), text: (i) => take(upper, i) > 0 ? fixed(take(upper, i)) : ""},
    {name: "place", wide: "minmax(140px,2fr)", least: 140, value: (i) => data.texts[nodes.action[i]]},
  ];
  const stream = (c, name) => ({name, wide: "76px", number: true, least: 76, value: (i) => c.stream[i]});
  return [
    {name: "node", wide: "minmax(150px,2fr)", least: 150, value: (i) => nodes.name[i], text: (i) => (main().critical[i] ? "★ " : "") + nodes.name[i]},
    {name: "kind", wide: "minmax(90px,1fr)", least: 90, value: (i) => kindOf(i)},
    stream(upper, "stream"), ...(beside ? [stream(lower, "below")] : []),
    {name: "engine", wide: "84px", least: 84, value: (i) => data.engines[nodes.engine[i]]},
    ...times(upper),
    ...(lower ? [...times(lower), {name: "difference us", wide: "116px", least: 116, number: true, value: (i) => take(lower, i) - take(upper, i), text: (i) => fixed(take(lower, i) - take(upper, i))}] : []),
    {name: "waited for", wide: "minmax(140px,2fr)", least: 140, value: (i) => data.causes[main().cause[i]], text: (i) => { const by = main().by[i]; return data.causes[main().cause[i]] + (by >= 0 ? ": " + nodes.name[by] : ""); }},
  ];
}
function buildTable() {
  const kept = columns.map((c) => c.name);
  columns = tableColumns();
  document.documentElement.style.setProperty("--columns", columns.map((c) => c.wide).join(" "));
  document.documentElement.style.setProperty("--least", columns.reduce((s, c) => s + c.least, 20) + "px");
  table.setAttribute("aria-rowcount", count + 1);
  const row = element("div");
  row.setAttribute("role", "row");
  row.style.display = "contents";
  for (const c of columns) {
    const cell = element("div"), button = element("button", c.name);
    cell.setAttribute("role", "columnheader");
    button.type = "button";
    if (c.number) button.style.textAlign = "right";
    button.addEventListener("click", () => { ascending = sortBy === c.name ? !ascending : true; sortBy = c.name; sortTable(); drawTable(false); });
    cell.append(button);
    row.append(cell);
    c.cell = cell;
    c.button = button;
  }
  head.replaceChildren(row);
  if (!columns.some((c) => c.name === sortBy) || kept.length === 0) sortBy = main().short + " start";
}
let words = "";
function sortTable() {
  const c = columns.find((c) => c.name === sortBy), sign = ascending ? 1 : -1;
  order = [];
  for (let i = 0; i < count; i++) if (!words || nodes.name[i].toLowerCase().includes(words) || kindOf(i).toLowerCase().includes(words)) order.push(i);
  const values = new Array(count);
  for (const i of order) values[i] = c.value(i);
  order.sort(c.number ? (a, b) => sign * (values[a] - values[b]) || a - b : (a, b) => sign * (values[a] < values[b] ? -1 : values[a] > values[b] ? 1 : 0) || a - b);
  for (const k of columns) {
    k.cell.setAttribute("aria-sort", k === c ? ascending ? "ascending" : "descending" : "none");
    k.button.textContent = k.name + (k === c ? ascending ? " ▲" : " ▼" : "");
  }
  lines.style.height = order.length * lineHeight + "px";
}
function showInTable() {
  const at = order.indexOf(selected);
  if (at < 0) return;
  const y = at * lineHeight;
  if (y < body.scrollTop) body.scrollTop = y;
  else if (y + lineHeight > body.scrollTop + body.clientHeight) body.scrollTop = y + lineHeight - body.clientHeight;
}
function drawTable(follow) {
  if (!opened) return;
  if (follow) showInTable();
  const first = Math.max(0, Math.floor(body.scrollTop / lineHeight) - 4), last = Math.min(order.length, first + Math.ceil(body.clientHeight / lineHeight) + 9);
  const fragment = document.createDocumentFragment();
  for (let at = first; at < last; at++) {
    const i = order[at], row = element("div");
    row.id = "row" + i;
    row.style.top = at * lineHeight + "px";
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", at + 2);
    row.setAttribute("aria-selected", i === selected);
    for (const c of columns) {
      const text = c.text ? c.text(i) : String(c.value(i)), cell = element("div", text, c.number ? "cell number" : "cell");
      cell.setAttribute("role", "gridcell");
      if (!c.number) cell.title = text;
      row.append(cell);
    }
    fragment.append(row);
  }
  lines.replaceChildren(fragment);
  if (selected >= 0) table.setAttribute("aria-activedescendant", "row" + selected); else table.removeAttribute("aria-activedescendant");
}
body.addEventListener("scroll", () => requestAnimationFrame(() => drawTable(false)));
lines.addEventListener("click", (e) => {
  const row = e.target.closest("[role=row]");
  if (row) { table.focus({preventScroll: true}); select(+row.id.slice(3), true); }
});
table.addEventListener("keydown", (e) => {
  if (e.target !== table) return;
  const at = order.indexOf(selected), page = Math.floor(body.clientHeight / lineHeight) - 1;
  const steps = {ArrowDown: at + 1, ArrowUp: at < 0 ? 0 : at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: order.length - 1};
  if (e.key === "Enter" && selected >= 0) { e.preventDefault(); canvas.focus(); reveal(selected); return; }
  if (!(e.key in steps) || !order.length) return;
  e.preventDefault();
  select(order[Math.max(0, Math.min(order.length - 1, steps[e.key]))], true);
});

// The rest.
function folded(title, ...inside) {
  const box = element("details");
  box.append(element("summary", title), ...inside);
  return box;
}
function summarize() {
  $("name").textContent = data.name;
  $("summary").replaceChildren(...data.plans.map((p) => {
    const lines = p.summary.split("\n").map((line) => element("span", line));
    return lines.length > 1 ? folded(lines.length + " ranks", ...lines) : lines[0];
  }));
  for (const list of ["upper", "lower"]) {
    if (list === "lower") $(list).append(new Option("nothing", ""));
    courses.forEach((c, k) => $(list).append(new Option(c.title, k)));
    $(list).addEventListener("change", () => show(courses[$("upper").value], $("lower").value === "" ? null : courses[$("lower").value]));
  }
  $("choice").hidden = courses.length < 2;
}
// explain says what binds each timeline that is shown, the lower one first: it is the measured one. Of several ranks it shows the one that
// ends last; the others are folded.
function explain() {
  $("findings").replaceChildren(...(lower ? [lower, upper] : [upper]).map((c) => {
    const box = element("div"), last = c.lines.filter((line) => line.of === c.lines[0].of), others = c.lines.filter((line) => line.of !== c.lines[0].of);
    const list = (lines) => {
      const dl = element("dl");
      for (const line of lines) dl.append(element("dt", (line.of ? line.of + ": " : "") + line.head), element("dd", line.text));
      return dl;
    };
    box.append(element("h3", c.title + ": " + time(c.makespan)), list(last));
    if (others.length) box.append(folded("the other ranks, which end before it", list(others)));
    return box;
  }));
}
function sayMemory() {
  const c = main();
  $("memory-section").hidden = !c.memory.length;
  $("h-memory").textContent = "Device memory, " + c.title;
  $("memory-text").textContent = c.memory.map((m) => data.unit[0].toUpperCase() + data.unit.slice(1) + " " + m.device + ": at most " + bytes(m.highest) + " in use, of which " + bytes(m.kept) + " are in use all the time; the layout takes " + bytes(m.arena) + ".").join(" ") +
    (lower && upper.memory.length ? " The dotted line is " + upper.title + ", at most " + upper.memory.map((m) => bytes(m.highest)).join(" and ") + "." : "");
  memory.setAttribute("aria-label", $("memory-text").textContent);
}
function buildLegend() {
  const seen = new Set(nodes.engine);
  data.engines.forEach((name, e) => {
    if (!seen.has(e)) return;
    const item = element("li"), sample = element("i", glyphs[name]);
    sample.style.background = "var(--" + name + ")";
    item.append(sample, engineWords[name]);
    $("legend").append(item);
  });
  const item = element("li"), sample = element("i", "★");
  sample.style.border = "2.5px solid var(--critical)";
  sample.style.lineHeight = "10px";
  item.append(sample, recorded ? "race" : "critical path");
  $("legend").append(item, element("li", "→ wait: from record to wait"), element("li", recorded ? "a box begins where the call did; only where a thread waited in it, it has a length, and that is the most it can have been" : "╌ engine idle"));
}
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  readColors();
  redraw();
}
const darkly = matchMedia("(prefers-color-scheme: dark)");
darkly.addEventListener("change", (e) => setTheme(e.matches ? "dark" : "light"));
$("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
$("zoom-in").addEventListener("click", () => zoom(0.6, center()));
$("zoom-out").addEventListener("click", () => zoom(1 / 0.6, center()));
$("fit").addEventListener("click", fit);
$("critical").addEventListener("click", nextCritical);
$("replay-before").addEventListener("click", () => step(-1));
$("replay-next").addEventListener("click", () => step(1));
$("find").addEventListener("input", (e) => {
  words = e.target.value.trim().toLowerCase();
  sortTable();
  body.scrollTop = 0;
  select(words && order.length ? order[0] : -1, true);
  showFound();
});
function showFound() {
  $("found").hidden = !words;
  $("found-count").textContent = order.length ? order.indexOf(selected) + 1 + " of " + order.length : "none";
  $("found-before").disabled = $("found-next").disabled = order.length < 2;
}
function nextFound(step) {
  if (!words || !order.length) return;
  select(order[(order.indexOf(selected) + step + order.length) % order.length], true);
  showFound();
}
$("found-before").addEventListener("click", () => nextFound(-1));
$("found-next").addEventListener("click", () => nextFound(1));
$("find").addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); nextFound(e.shiftKey ? -1 : 1); } });
let screenTheme = "";
addEventListener("beforeprint", () => { screenTheme = document.documentElement.dataset.theme; setTheme("light"); draw(); });
addEventListener("afterprint", () => setTheme(screenTheme));

if (recorded) {
  $("h-findings").textContent = "What dagrun check says";
  $("h-node").textContent = "Call";
  $("h-table").textContent = "Calls";
  $("critical").textContent = "★ Races";
  $("critical").title = "Next call that is part of a race (c)";
  $("critical").hidden = !recorded.races.length;
  $("keys-more").textContent = "races";
}
summarize();
buildLegend();
document.documentElement.dataset.theme = darkly.matches ? "dark" : "light";
readColors();
show(upper, lower);
draw();
// What lies below the timeline is filled in after its first picture.
requestAnimationFrame(() => setTimeout(() => {
  opened = true;
  fillLists();
  drawTable(false);
  drawMemory();
}));
