-- Drives `dagrun lsp` in Neovim: opens a pipeline with a mistake, mends it, completes, explains and formats. dagrun must be on the PATH.
-- Usage: nvim --headless --clean -c "luafile tests/editor/neovim.lua", in the folder of the repository. .ci/long runs it.
local function fail(text)
  io.stderr:write(text .. "\n")
  vim.cmd("cquit 1")
end

local function wait(what, holds)
  if not vim.wait(120000, holds, 20) then fail("waited in vain for " .. what) end
end

local function main()
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder, "p")
  local file = folder .. "/p.yaml"
  vim.fn.writefile({
    "version: 1",
    "buffers:",
    "  x:   {place: host, dtype: f32, shape: [4]}   # größer 🚀",
    "  d_x: {place: device, dtype: f32, shape: [4]}",
    "nodes:",
    "  - {name: up, memcpy: {from: x, too: d_x}}",
  }, file)

  if vim.lsp.start then -- as docs/editor.md has it
    local page = table.concat(vim.fn.readfile("docs/editor.md"), "\n")
    loadstring(page:match("```lua\n(.-)\n```"))()
    vim.cmd("filetype on")
  else -- before Neovim 0.8
    vim.api.nvim_create_autocmd("FileType", {
      pattern = "yaml",
      callback = function(event)
        vim.lsp.buf_attach_client(event.buf, vim.lsp.start_client({ name = "dagrun", cmd = { "dagrun", "lsp" } }))
      end,
    })
    vim.cmd("filetype on")
  end
  vim.cmd("edit " .. file)
  local buffer = vim.api.nvim_get_current_buf()
  wait("a diagnostic", function() return #vim.diagnostic.get(buffer) > 0 end)
  local wrong = vim.diagnostic.get(buffer)
  if #wrong ~= 1 or wrong[1].lnum ~= 5 or not wrong[1].message:find('unknown key "too" in memcpy; did you mean "to"?', 1, true) then
    fail("other diagnostics: " .. vim.inspect(wrong))
  end

  vim.api.nvim_buf_set_lines(buffer, 5, 6, false, { "  - {name: up, memcpy: {from: x, to: d_x}}" })
  wait("the mistake to go", function()
    for _, d in ipairs(vim.diagnostic.get(buffer)) do
      if d.severity == vim.diagnostic.severity.ERROR then return false end
    end
    return true
  end)

  local function ask(method, line, column)
    local answers = vim.lsp.buf_request_sync(buffer, method, { textDocument = vim.lsp.util.make_text_document_params(buffer), position = { line = line, character = column } }, 120000)
    for _, answer in pairs(answers or {}) do
      if answer.result then return answer.result end
    end
    fail("no answer to " .. method)
  end
  local offered = {}
  for _, item in ipairs(ask("textDocument/completion", 5, 30).items) do offered[item.label] = true end
  if not (offered.x and offered.d_x) then fail("not offered: x and d_x, but " .. vim.inspect(offered)) end
  if not ask("textDocument/hover", 5, 16).contents.value:find("Copies one buffer", 1, true) then fail("no hover") end

  if vim.lsp.buf.format then vim.lsp.buf.format({ timeout_ms = 120000 }) else vim.lsp.buf.formatting_sync(nil, 120000) end
  if table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n"):find("too", 1, true) then fail("formatting brought the mistake back") end
  vim.cmd("write")
  print("dagrun lsp serves Neovim\n")
  vim.cmd("qall!")
end

local ok, why = xpcall(main, debug.traceback)
if not ok then fail(why) end
