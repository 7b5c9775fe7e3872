// Drives `dagrun lsp` through the protocol library of VS Code's language client, as an extension does: opens a pipeline, mends a mistake,
// completes, explains, jumps and formats. Usage: node client.js FOLDER DAGRUN, where FOLDER holds the node_modules with
// vscode-languageserver-protocol. .ci/long runs it.
"use strict";
const {spawn} = require("child_process"), path = require("path"), assert = require("assert");
const [folder, dagrun] = process.argv.slice(2).map((name) => path.resolve(name));
const p = require(path.join(folder, "node_modules/vscode-languageserver-protocol/node"));
const server = spawn(dagrun, ["lsp"], {stdio: ["pipe", "pipe", "inherit"]});
const ended = new Promise((done) => server.on("exit", done));
const connection = p.createProtocolConnection(new p.StreamMessageReader(server.stdout), new p.StreamMessageWriter(server.stdin));
const waiting = [];
connection.onNotification(p.PublishDiagnosticsNotification.type, (found) => {
  for (const w of waiting.filter((w) => w.uri === found.uri && (found.version === undefined || found.version === w.version))) {
    waiting.splice(waiting.indexOf(w), 1);
    w.done(found.diagnostics);
  }
});
connection.onRequest("workspace/configuration", (params) => params.items.map(() => null));
connection.listen();

const uri = "file:///pipelines/a%20b/p.yaml", text = `version: 1
buffers:
  x:   {place: host, dtype: f32, shape: [4]}   # größer: äöü 🚀
  d_x: {place: device, dtype: f32, shape: [4]}
nodes:
  - {name: up, memcpy: {from: x, too: d_x}}
`;
// What VS Code's client says that it can, shortened to what a server may look at.
const capabilities = {
  general: {positionEncodings: ["utf-16"], markdown: {parser: "marked", version: "1.1.0"}, staleRequestSupport: {cancel: true, retryOnContentModified: []}},
  window: {workDoneProgress: true, showMessage: {messageActionItem: {additionalPropertiesSupport: true}}},
  workspace: {applyEdit: true, configuration: true, workspaceFolders: true, didChangeConfiguration: {dynamicRegistration: true}, didChangeWatchedFiles: {dynamicRegistration: true}},
  textDocument: {
    publishDiagnostics: {relatedInformation: true, versionSupport: true, tagSupport: {valueSet: [1, 2]}},
    synchronization: {dynamicRegistration: true, willSave: true, willSaveWaitUntil: true, didSave: true},
    completion: {dynamicRegistration: true, contextSupport: true, completionItem: {snippetSupport: true, documentationFormat: ["markdown", "plaintext"], insertReplaceSupport: true}},
    hover: {dynamicRegistration: true, contentFormat: ["markdown", "plaintext"]},
    definition: {dynamicRegistration: true, linkSupport: true},
    documentSymbol: {dynamicRegistration: true, hierarchicalDocumentSymbolSupport: true},
    formatting: {dynamicRegistration: true},
  },
};
const diagnosticsOf = (version) => new Promise((done) => waiting.push({uri, version, done}));
const at = (line, character) => ({textDocument: {uri}, position: {line, character}});
const column = (line, word) => text.split("\n")[line].indexOf(word);

(async () => {
  const {capabilities: can} = await connection.sendRequest(p.InitializeRequest.type, {processId: process.pid, clientInfo: {name: "Visual Studio Code", version: "1.90.0"},
    locale: "en", rootPath: "/pipelines", rootUri: "file:///pipelines", capabilities, trace: "off", workspaceFolders: [{uri: "file:///pipelines", name: "pipelines"}], initializationOptions: {}});
  assert(can.completionProvider && can.hoverProvider && can.definitionProvider && can.documentFormattingProvider && can.documentSymbolProvider);
  await connection.sendNotification(p.InitializedNotification.type, {});
  await connection.sendNotification("$/setTrace", {value: "off"});
  await connection.sendNotification(p.DidChangeConfigurationNotification.type, {settings: {}});

  let found = diagnosticsOf(1);
  await connection.sendNotification(p.DidOpenTextDocumentNotification.type, {textDocument: {uri, languageId: "yaml", version: 1, text}});
  const wrong = await found;
  assert.strictEqual(wrong.length, 1, JSON.stringify(wrong));
  assert.strictEqual(wrong[0].message.split("\n")[0], 'unknown key "too" in memcpy; did you mean "to"?');
  assert.deepStrictEqual(wrong[0].range.start, {line: 5, character: column(5, "too")});

  // One letter is taken out, as an edit of the document.
  found = diagnosticsOf(2);
  const o = column(5, "too") + 2;
  await connection.sendNotification(p.DidChangeTextDocumentNotification.type, {textDocument: {uri, version: 2}, contentChanges: [{range: {start: {line: 5, character: o}, end: {line: 5, character: o + 1}}, rangeLength: 1, text: ""}]});
  const left = await found;
  assert(left.every((d) => d.severity !== 1), JSON.stringify(left));

  const buffers = await connection.sendRequest(p.CompletionRequest.type, {...at(5, column(5, "x,")), context: {triggerKind: p.CompletionTriggerKind.Invoked}});
  assert(["x", "d_x"].every((name) => buffers.items.some((i) => i.label === name)), JSON.stringify(buffers));
  const hover = await connection.sendRequest(p.HoverRequest.type, at(5, column(5, "memcpy")));
  assert(hover.contents.value.startsWith("`memcpy`: Copies one buffer"), JSON.stringify(hover));
  const where = [].concat(await connection.sendRequest(p.DefinitionRequest.type, at(5, column(5, "x,"))));
  assert.strictEqual(where[0].range.start.line, 2);
  const symbols = await connection.sendRequest(p.DocumentSymbolRequest.type, {textDocument: {uri}});
  assert.deepStrictEqual(symbols.map((s) => s.name), ["x", "d_x", "up"]);
  const edits = await connection.sendRequest(p.DocumentFormattingRequest.type, {textDocument: {uri}, options: {tabSize: 2, insertSpaces: true}});
  assert(edits.length > 0 && edits.every((e) => typeof e.newText === "string"), JSON.stringify(edits));

  // What the server does not have is refused, and what is cancelled is answered all the same.
  await assert.rejects(connection.sendRequest("textDocument/codeLens", {textDocument: {uri}}), (e) => e.code === p.ErrorCodes.MethodNotFound);
  const cancelled = new p.CancellationTokenSource(), asked = connection.sendRequest(p.HoverRequest.type, at(5, 4), cancelled.token);
  cancelled.cancel();
  await asked.catch((e) => assert.strictEqual(e.code, p.LSPErrorCodes.RequestCancelled));

  await connection.sendNotification(p.DidSaveTextDocumentNotification.type, {textDocument: {uri}});
  await connection.sendNotification(p.DidCloseTextDocumentNotification.type, {textDocument: {uri}});
  await connection.sendRequest(p.ShutdownRequest.type);
  await connection.sendNotification(p.ExitNotification.type);
  assert.strictEqual(await ended, 0);
  console.log("dagrun lsp serves VS Code's protocol library");
  process.exit(0);
})().catch((e) => { console.error(e); server.kill(); process.exit(1); });
