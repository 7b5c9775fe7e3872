// What a browser test does in a page of SVG pictures: it measures every text and box as the browser laid them out.
(() => {
"use strict";
const out = {pictures: [], errors: window.pageErrors};
try {
  for (const svg of document.querySelectorAll("svg")) {
    const p = {nodes: 0, outside: [], overlaps: [], disorder: [], beyond: [], arrows: svg.querySelectorAll("g.arrow path").length, rows: svg.querySelectorAll(".panel rect.row").length, titles: 0, scripts: svg.querySelectorAll("script,img,foreignObject").length};
    const whole = svg.getBoundingClientRect(), slack = 0.75;
    for (const panel of svg.querySelectorAll("g.panel")) {
      const boxes = [], last = {};
      for (const g of panel.querySelectorAll("g.node")) {
        const name = g.querySelector("title").textContent.split("\n")[0], box = g.querySelector("rect").getBoundingClientRect();
        p.nodes++;
        if (name) p.titles++;
        for (const t of g.querySelectorAll("text")) {
          const r = t.getBoundingClientRect();
          if (r.left < box.left - slack || r.right > box.right + slack || r.top < box.top - slack || r.bottom > box.bottom + slack) p.outside.push(t.textContent + " " + [r.left - box.left, box.right - r.right, r.top - box.top, box.bottom - r.bottom].map((v) => v.toFixed(1)));
        }
        const before = last[g.dataset.row];
        if (before && Math.abs(before.top - box.top) < 1 && before.left > box.left) p.disorder.push(name);
        last[g.dataset.row] = box;
        for (const b of boxes) if (b.left < box.right - 1.2 && box.left < b.right - 1.2 && b.top < box.bottom - 1.2 && box.top < b.bottom - 1.2) p.overlaps.push(name);
        boxes.push(box);
      }
    }
    for (const t of svg.querySelectorAll("text")) {
      const r = t.getBoundingClientRect();
      if (r.left < whole.left - slack || r.right > whole.right + slack) p.beyond.push(t.textContent);
    }
    out.pictures.push(p);
  }
  const why = [...document.querySelectorAll("text.why")].map((t) => t.getBoundingClientRect());
  out.labels = why.length;
} catch (e) {
  out.error = String(e && e.stack || e);
}
const pre = document.createElement("pre");
pre.id = "selftest";
pre.textContent = JSON.stringify(out);
document.body.append(pre);
})();
