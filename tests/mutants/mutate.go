// The mutants of a file: every small change of its text that this tool can make, each with a name that survives edits elsewhere in the file.

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// mutant is a change of one place of a file.
type mutant struct {
	file       string // below the module's folder, with slashes
	line       int
	function   string // the function around it, as Type.Method, or the name of what is declared
	before     string // the expression or statement around the change, on one line
	after      string
	twin       int // counts from 2 if the function has the same change before
	start, end int // the bytes that are replaced
	text       string
	within     *function // nil outside functions
}

// function is where a function is in its file, in bytes.
type function struct {
	start, name, body, end int    // of the declaration, after the name, after the brace that opens the body, and of the declaration's end
	call                   string // calls a copy whose name ends in %s, with what the function was called with; empty if that cannot be said
}

// name tells a mutant from all others of the module. It has no line number, so it stays the same when other lines change.
func (m *mutant) name() string {
	name := fmt.Sprintf("%s %s: %s => %s", m.file, m.function, m.before, m.after)
	if m.twin > 1 {
		name += fmt.Sprintf(" (%d)", m.twin)
	}
	return name
}

// apply returns the file's source with the change.
func (m *mutant) apply(source []byte) []byte {
	changed := append([]byte(nil), source[:m.start]...)
	return append(append(changed, m.text...), source[m.end:]...)
}

// swapped has, for each operator, what takes its place: the opposite of a comparison, and the same comparison off by one.
var swapped = map[token.Token][]token.Token{
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.GEQ, token.LEQ}, token.GEQ: {token.LSS, token.GTR},
	token.GTR: {token.LEQ, token.GEQ}, token.LEQ: {token.GTR, token.LSS},
	token.ADD: {token.SUB}, token.SUB: {token.ADD},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

// mutantsOf returns all mutants of a file, in the order of their places. Some of them do not compile. The length of an array type and the
// capacity in a make are left alone, because they change no result.
func mutantsOf(file string, source []byte) ([]mutant, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(parsed) {
		return nil, err
	}
	w := &walk{file: file, source: source, set: set, names: map[string]int{}}
	for _, declared := range parsed.Decls {
		w.declaration(declared)
	}
	return w.found, nil
}

type walk struct {
	file     string
	source   []byte
	set      *token.FileSet
	function string
	within   *function
	around   []ast.Node // from the declaration to what is visited
	found    []mutant
	names    map[string]int
}

func (w *walk) declaration(declared ast.Decl) {
	switch d := declared.(type) {
	case *ast.FuncDecl:
		w.function = d.Name.Name
		if d.Recv != nil && len(d.Recv.List) > 0 {
			w.function = strings.TrimLeft(w.textOf(d.Recv.List[0].Type), "*") + "." + w.function
		}
		if d.Body != nil {
			w.within = w.locate(d)
			w.returnEarly(d)
			w.visit(d.Body)
			w.within = nil
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				w.function = v.Names[0].Name
				w.visit(v)
			}
		}
	}
}

func (w *walk) locate(d *ast.FuncDecl) *function {
	f := &function{start: w.offset(d.Pos()), name: w.offset(d.Name.End()), body: w.offset(d.Body.Lbrace) + 1, end: w.offset(d.End())}
	call := d.Name.Name + "%s"
	if d.Recv != nil {
		names := d.Recv.List[0].Names
		if len(names) == 0 || names[0].Name == "_" {
			return f
		}
		call = names[0].Name + "." + call
	}
	if d.Type.TypeParams != nil {
		call += "[" + strings.Join(w.passed(d.Type.TypeParams), ", ") + "]"
	}
	call += "(" + strings.Join(w.passed(d.Type.Params), ", ") + ")"
	if d.Type.Results == nil {
		f.call = call + "; return"
	} else {
		f.call = "return " + call
	}
	return f
}

// passed returns what hands parameters on. One without a name is not used, so a zero value does.
func (w *walk) passed(parameters *ast.FieldList) []string {
	var all []string
	for _, p := range parameters.List {
		more := ""
		if _, variadic := p.Type.(*ast.Ellipsis); variadic {
			more = "..."
		}
		if len(p.Names) == 0 && more == "" {
			all = append(all, "*new("+w.textOf(p.Type)+")")
		}
		for _, name := range p.Names {
			switch {
			case name.Name != "_":
				all = append(all, name.Name+more)
			case more == "":
				all = append(all, "*new("+w.textOf(p.Type)+")")
			}
		}
	}
	return all
}

func (w *walk) visit(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			w.around = w.around[:len(w.around)-1]
			return false
		}
		if w.changesNoResult(n) {
			return false
		}
		w.around = append(w.around, n)
		switch n := n.(type) {
		case *ast.BinaryExpr:
			w.operator(n, n.OpPos, n.Op)
		case *ast.UnaryExpr:
			if n.Op == token.NOT || n.Op == token.SUB {
				w.add(n, n.OpPos, len(n.Op.String()), "")
			}
		case *ast.AssignStmt:
			w.operator(n, n.TokPos, n.Tok)
			if n.Tok != token.DEFINE && w.inBlock() {
				w.drop(n)
			}
		case *ast.IncDecStmt:
			w.operator(n, n.TokPos, n.Tok)
			if w.inBlock() {
				w.drop(n)
			}
		case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt, *ast.BranchStmt:
			if w.inBlock() {
				w.drop(n)
			}
		case *ast.BasicLit:
			w.literal(n)
		case *ast.Ident:
			switch n.Name {
			case "true":
				w.constant(n, "false")
			case "false":
				w.constant(n, "true")
			}
		}
		return true
	})
}

// changesNoResult reports whether a node is the length of an array type or the capacity in a make.
func (w *walk) changesNoResult(n ast.Node) bool {
	if len(w.around) == 0 {
		return false
	}
	switch parent := w.around[len(w.around)-1].(type) {
	case *ast.ArrayType:
		return parent.Len == n
	case *ast.CallExpr:
		called, ok := parent.Fun.(*ast.Ident)
		return ok && called.Name == "make" && len(parent.Args) == 3 && parent.Args[2] == n
	}
	return false
}

// inBlock reports whether the node visited is a statement of a block or case: one that can be left out.
func (w *walk) inBlock() bool {
	if len(w.around) < 2 {
		return false
	}
	switch w.around[len(w.around)-2].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

func (w *walk) operator(n ast.Node, at token.Pos, op token.Token) {
	for _, other := range swapped[op] {
		w.add(n, at, len(op.String()), other.String())
	}
}

// large is the least constant that is halved. Others are made one larger, which for large ones, such as the most steps of a search, says nothing.
const large = 1000

func (w *walk) literal(n *ast.BasicLit) {
	switch n.Kind {
	case token.INT:
		value, err := strconv.ParseInt(n.Value, 0, 64)
		switch {
		case err != nil:
		case value < large:
			w.constant(n, strconv.FormatInt(value+1, 10))
		default:
			w.constant(n, strconv.FormatInt(value/2, 10))
		}
	case token.FLOAT:
		w.constant(n, "("+n.Value+" + 1)")
	}
}

// constant replaces a constant, and shows the expression around it if that is short.
func (w *walk) constant(n ast.Expr, value string) {
	shown := ast.Node(n)
	if len(w.around) > 1 {
		parent := w.around[len(w.around)-2]
		switch parent.(type) {
		case *ast.BlockStmt, *ast.CaseClause:
		default:
			if parent.End()-parent.Pos() < 100 {
				shown = parent
			}
		}
	}
	w.add(shown, n.Pos(), int(n.End()-n.Pos()), value)
}

func (w *walk) drop(n ast.Node) {
	w.add(n, n.Pos(), int(n.End()-n.Pos()), "")
}

// returnEarly lets a function return zero values at once.
func (w *walk) returnEarly(d *ast.FuncDecl) {
	if len(d.Body.List) == 0 {
		return
	}
	var zeros []string
	if d.Type.Results != nil {
		for _, result := range d.Type.Results.List {
			for range max(1, len(result.Names)) {
				zeros = append(zeros, "*new("+w.textOf(result.Type)+")")
			}
		}
	}
	first := d.Body.List[0]
	at := w.offset(first.Pos())
	w.note(first, "its body", "return", at, at, "return "+strings.Join(zeros, ", ")+"; ")
}

// add notes a replacement of some bytes, and shows the node around them.
func (w *walk) add(n ast.Node, at token.Pos, length int, text string) {
	from, start := w.offset(n.Pos()), w.offset(at)
	before := string(w.source[from:w.offset(n.End())])
	after := before[:start-from] + text + before[start-from+length:]
	if after == "" {
		after = "nothing"
	}
	w.note(n, before, after, start, start+length, text)
}

func (w *walk) note(n ast.Node, before, after string, start, end int, text string) {
	m := mutant{file: w.file, within: w.within, line: w.set.Position(n.Pos()).Line, function: w.function, before: oneLine(before), after: oneLine(after),
		start: start, end: end, text: text}
	name := m.name()
	w.names[name]++
	m.twin = w.names[name]
	w.found = append(w.found, m)
}

func (w *walk) offset(at token.Pos) int { return w.set.Position(at).Offset }

func (w *walk) textOf(n ast.Node) string {
	return string(w.source[w.offset(n.Pos()):w.offset(n.End())])
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
