// Drives yaml-language-server over its protocol with dagrun.schema.json, as an editor does, and fails if it does not offer and find what docs/editor.md says.
// Usage: node schema.js FOLDER SCHEMA, where FOLDER holds the node_modules with yaml-language-server. .ci/long runs it.
"use strict";
const {spawn} = require("child_process"), path = require("path"), assert = require("assert");
const [folder, schema] = process.argv.slice(2).map((name) => path.resolve(name));
const server = spawn("node", [path.join(folder, "node_modules/yaml-language-server/bin/yaml-language-server"), "--stdio"], {stdio: ["pipe", "pipe", "inherit"]});
const settings = {validate: true, hover: true, completion: true, schemas: {["file://" + schema]: "*.yaml"}};
const waiting = new Map(); // by the id of a request, or the address of a document whose diagnostics are awaited
let received = Buffer.alloc(0), asked = 0, opened = 0;

const send = (message) => {
  const text = Buffer.from(JSON.stringify({jsonrpc: "2.0", ...message}));
  server.stdin.write("Content-Length: " + text.length + "\r\n\r\n");
  server.stdin.write(text);
};
const answer = (key, value) => {
  const done = waiting.get(key);
  waiting.delete(key);
  if (done) done(value);
};
const take = (m) => {
  if (m.method && m.id !== undefined) send({id: m.id, result: m.method === "workspace/configuration" ? m.params.items.map((i) => i.section === "yaml" ? settings : {}) : null});
  else if (m.method === "textDocument/publishDiagnostics") answer(m.params.uri, m.params.diagnostics);
  else if (m.id !== undefined) answer(m.id, m.result);
};
server.stdout.on("data", (more) => {
  received = Buffer.concat([received, more]);
  for (;;) {
    const head = received.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = +/Content-Length: (\d+)/i.exec(received.subarray(0, head))[1];
    if (received.length < head + 4 + length) return;
    const message = JSON.parse(received.subarray(head + 4, head + 4 + length));
    received = received.subarray(head + 4 + length);
    take(message);
  }
});
const ask = (method, params) => new Promise((done) => { waiting.set(++asked, done); send({id: asked, method, params}); });
const tell = (method, params) => send({method, params});

// open sends a new document and waits for its diagnostics.
const open = async (text) => {
  const uri = "file:///pipeline" + ++opened + ".yaml";
  const found = new Promise((done) => waiting.set(uri, done));
  tell("textDocument/didOpen", {textDocument: {uri, languageId: "yaml", version: 1, text}});
  return {uri, diagnostics: await found};
};
// complete returns what is offered where the document has a |.
const complete = async (text) => {
  const at = text.indexOf("|"), before = text.slice(0, at), {uri} = await open(before + text.slice(at + 1));
  const lines = before.split("\n"), position = {line: lines.length - 1, character: lines[lines.length - 1].length};
  const list = await ask("textDocument/completion", {textDocument: {uri}, position});
  return (list.items || list).map((i) => ({label: i.label, text: i.insertText || i.textEdit.newText, about: i.documentation ? i.documentation.value || i.documentation : ""}));
};
const mistakes = async (text) => (await open(text)).diagnostics.map((d) => d.message);

const head = "version: 1\nbuffers:\n  x: {place: host, dtype: f32, shape: [4]}\n  d: {place: device, dtype: f32, shape: [4]}\nnodes:\n";
(async () => {
  const capabilities = {workspace: {configuration: true}, textDocument: {completion: {completionItem: {snippetSupport: true, documentationFormat: ["markdown"]}}, hover: {contentFormat: ["markdown"]}}};
  await ask("initialize", {processId: process.pid, rootUri: null, capabilities});
  tell("initialized", {});
  tell("workspace/didChangeConfiguration", {settings: {yaml: settings}});

  // Keys come with their colon, in block style and in one line.
  for (const [text, wanted] of [
    ["version: 1\n|\n", ["name", "sync", "params", "modules", "buffers", "nodes"]],
    ["version: 1\nbuffers:\n  x:\n    |\n", ["place", "dtype", "shape", "init", "save", "expect", "device"]],
    ["version: 1\nbuffers:\n  x:\n    init:\n      |\n", ["ramp", "uniform", "normal", "expr", "file"]],
    ["version: 1\nbuffers:\n  x:\n    expect:\n      |\n", ["file", "value", "sum", "expr", "rtol", "atol"]],
    [head + "  - name: a\n    |\n", ["memcpy", "memset", "kernel", "map", "after", "stream", "when", "shared"]],
    [head + "  - {|}\n", ["name", "memcpy", "memset", "kernel", "map", "after", "when"]],
    [head + "  - name: a\n    memcpy:\n      |\n", ["from", "to"]],
  ]) {
    const offered = await complete(text);
    for (const key of wanted) assert(offered.some((i) => i.label === key), "not offered: " + key + " in\n" + text);
    for (const item of offered) assert(item.text.includes(":"), "no colon after " + item.label + " in\n" + text);
  }
  // In a mapping inside a line, this server offers keys only after their first letter, whatever the schema, and not always with a colon.
  for (const [text, wanted] of [[head + "  - {name: a, memcpy: {t|}}\n", "to"], [head + "  - name: a\n    memset: {v|}\n", "value"]]) {
    assert((await complete(text)).some((i) => i.label === wanted), "not offered: " + wanted + " in\n" + text);
  }
  // Kernels come with their signatures, words with their choices.
  for (const text of [head + "  - name: a\n    kernel: |\n", head + "  - {name: a, kernel: |}\n"]) {
    const saxpy = (await complete(text)).find((i) => i.label === "saxpy");
    assert(saxpy && saxpy.about.startsWith("axpy(n i64, "), JSON.stringify(saxpy));
  }
  for (const text of [head + "  - name: a\n    call: |\n", head + "  - {name: a, call: |}\n"]) {
    const product = (await complete(text)).find((i) => i.label === "cublas.gemm");
    assert(product && product.about.startsWith("cublas.gemm(ta, "), JSON.stringify(product));
  }
  // The keys of loops and branches are offered, and one with a misspelt key gives one message.
  for (const [text, wanted] of [
    [head + "  - name: a\n    repeat:\n      |\n    nodes: []\n", ["times", "until", "while", "most", "every"]],
    [head + "  - name: a\n    if: d(0..1) > 0\n    |\n", ["nodes", "else", "after"]],
  ]) {
    const offered = await complete(text);
    for (const key of wanted) assert(offered.some((i) => i.label === key), "not offered: " + key + " in\n" + text);
  }
  assert.deepStrictEqual(await mistakes(head + "  - {name: a, repeat: {tims: 4}, nodes: []}\n"), ["Property tims is not allowed."]);
  assert.deepStrictEqual(await mistakes(head + "  - {name: a, call: cublas.gemm, args: {a: d, b: d, c: d}}\n"), []);
  assert.deepStrictEqual((await complete("version: 1\nbuffers:\n  x: {place: |}\nnodes: []\n")).map((i) => i.label), ["host", "device"]);
  // One precise message for a misspelt action, and none for a valid file.
  assert.deepStrictEqual(await mistakes(head + "  - {name: a, memcopy: {from: x, to: d}}\n"), ["Property memcopy is not allowed."]);
  for (const [node, key] of [
    ["{name: a, memcpy: {from: x, too: d}}", "too"],
    ["{naem: a, memcpy: {from: x, to: d}}", "naem"],
    ["{name: a, memset: {to: d, valeu: 1}}", "valeu"],
    ["{name: a, kernel: saxpy, argz: [4]}", "argz"],
    ["{foreach: {i: 4}, node: [{name: a, memcpy: {from: x, to: d}}]}", "node"],
  ]) assert.deepStrictEqual(await mistakes(head + "  - " + node + "\n"), ["Property " + key + " is not allowed."]);
  for (const [buffer, key] of [
    ["{place: host, dtype: f32, shap: [4]}", "shap"],
    ["{place: host, dtype: f32, shape: [4], init: {rampp: [0, 1]}}", "rampp"],
    ["{place: host, dtype: f32, shape: [4], expect: {fil: a.npy, rtol: 1e-6}}", "fil"],
  ]) assert.deepStrictEqual(await mistakes("version: 1\nbuffers:\n  x: " + buffer + "\nnodes: []\n"), ["Property " + key + " is not allowed."]);
  assert.deepStrictEqual(await mistakes(head + "  - {name: a, memcpy: {from: x}}\n"), ["Missing property \"to\"."]);
  assert.deepStrictEqual(await mistakes("version: 1\nbufers:\n  x: 1\nnodes: []\n"), ["Property bufers is not allowed."]);
  assert.deepStrictEqual(await mistakes(head + "  - {name: a, kernel: saxpy, args: [4, 2.0, d, d]}\n"), []);
  const {uri} = await open(head + "  - {name: a, kernel: saxpy, args: [4, 2.0, d, d]}\n");
  const hover = await ask("textDocument/hover", {textDocument: {uri}, position: {line: 5, character: 16}});
  assert(hover.contents.value.includes("axpy(n i64, alpha S, x in "), JSON.stringify(hover));
  server.kill();
  console.log("yaml-language-server offers and finds what it should");
  process.exit(0);
})().catch((e) => { console.error(e.message); server.kill(); process.exit(1); });
