// The protocol's types, as far as they are used: each has the names and the numbers that the protocol gives it.

package lsp

// DocumentID names a document.
type DocumentID struct {
	URI     string `json:"uri"`
	Version *int   `json:"version,omitempty"`
}

// DocumentParams are the params of requests about a document.
type DocumentParams struct {
	Document DocumentID `json:"textDocument"`
}

// PositionParams are the params of requests about a place in a document.
type PositionParams struct {
	Document DocumentID `json:"textDocument"`
	Position Position   `json:"position"`
}

// OpenParams are the params of textDocument/didOpen.
type OpenParams struct {
	Document struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
}

// ChangeParams are the params of textDocument/didChange.
type ChangeParams struct {
	Document struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
	} `json:"textDocument"`
	Changes []Change `json:"contentChanges"`
}

// Severities of diagnostics.
const (
	SeverityError   = 1
	SeverityWarning = 2
)

// Diagnostic is a mistake or a warning.
type Diagnostic struct {
	Range    Range  `json:"range"`
	Severity int    `json:"severity"`
	Source   string `json:"source"`
	Message  string `json:"message"`
}

// PublishParams are the params of textDocument/publishDiagnostics.
type PublishParams struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// TextEdit replaces a range.
type TextEdit struct {
	Range   Range  `json:"range"`
	NewText string `json:"newText"`
}

// Markup is text with marks.
type Markup struct {
	Kind  string `json:"kind"` // "markdown" or "plaintext"
	Value string `json:"value"`
}

// Kinds of completion items.
const (
	ItemFunction   = 3
	ItemVariable   = 6
	ItemProperty   = 10
	ItemEnumMember = 20
	ItemConstant   = 21
	ItemEvent      = 23
)

// CompletionItem is something to complete a word with.
type CompletionItem struct {
	Label         string    `json:"label"`
	Kind          int       `json:"kind"`
	Detail        string    `json:"detail,omitempty"`
	Documentation *Markup   `json:"documentation,omitempty"`
	SortText      string    `json:"sortText,omitempty"`
	TextEdit      *TextEdit `json:"textEdit,omitempty"`
}

// CompletionList is the answer to textDocument/completion.
type CompletionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []CompletionItem `json:"items"`
}

// Hover is the answer to textDocument/hover.
type Hover struct {
	Contents Markup `json:"contents"`
	Range    Range  `json:"range"`
}

// Location is a range of a document.
type Location struct {
	URI   string `json:"uri"`
	Range Range  `json:"range"`
}

// Kinds of symbols.
const (
	SymbolModule    = 2
	SymbolNamespace = 3
	SymbolFunction  = 12
	SymbolVariable  = 13
	SymbolConstant  = 14
)

// Symbol is an entry of a document's outline.
type Symbol struct {
	Name      string   `json:"name"`
	Detail    string   `json:"detail,omitempty"`
	Kind      int      `json:"kind"`
	Range     Range    `json:"range"`
	Selection Range    `json:"selectionRange"`
	Children  []Symbol `json:"children,omitempty"`
}
