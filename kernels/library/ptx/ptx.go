// Package ptx holds the PTX that is made from the library's CUDA C and cuts modules out of it.
//
// A driver compiles PTX when it loads it: the first time, the whole library takes seconds, a few kernels milliseconds. So a program loads
// only the kernels that it launches. The text is embedded compressed, and only files with one of those kernels are unpacked.
package ptx

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
)

// entries.txt says which file has which kernel. It and the files are made by go generate in kernels/library.
//
//go:embed entries.txt *.ptx.gz
var files embed.FS

// functions is the name of the file with the functions that elementwise expressions call.
const functions = "functions"

// contents holds the list of all kernels, in order, and the file of each.
type contents struct {
	names []string
	in    map[string]string
}

var index = sync.OnceValue(func() *contents {
	text, err := files.ReadFile("entries.txt")
	if err != nil {
		panic(err)
	}
	c := &contents{in: map[string]string{}}
	for line := range strings.Lines(string(text)) {
		file, entry, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			panic("kernels/library/ptx: entries.txt: " + line)
		}
		c.names = append(c.names, entry)
		c.in[entry] = file
	}
	return c
})

// texts holds the unpacked files: by name, a func() *text that unpacks once.
var texts sync.Map

// file unpacks a file when it is first needed.
func file(name string) *text {
	load, ok := texts.Load(name)
	if !ok {
		load, _ = texts.LoadOrStore(name, sync.OnceValue(func() *text {
			whole, err := unpack(name)
			if err != nil {
				panic("kernels/library/ptx: " + name + ": " + err.Error())
			}
			t, err := cut(whole)
			if err != nil {
				panic("kernels/library/ptx: " + name + ": " + err.Error())
			}
			return t
		}))
	}
	return load.(func() *text)()
}

func unpack(name string) (string, error) {
	packed, err := files.ReadFile(name + ".ptx.gz")
	if err != nil {
		return "", err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	whole, err := io.ReadAll(r)
	return string(whole), err
}

// Names lists all kernels.
func Names() []string { return slices.Clone(index().names) }

// Has reports whether the library has a kernel.
func Has(name string) bool { return index().in[name] != "" }

// Entries returns a module with these kernels, or with all of them if none is named. Names that the library does not have are
// ignored: looking them up in the loaded module fails.
func Entries(names ...string) []byte {
	if len(names) == 0 {
		names = index().names
	}
	var m module
	done := map[string]bool{}
	for _, name := range names {
		if in, ok := index().in[name]; ok && !done[name] {
			t := file(in)
			m.add(t, t.entries[name])
		}
		done[name] = true
	}
	if m.header == "" {
		m.add(file(functions), "")
	}
	return m.bytes()
}

// Complete completes PTX that calls functions of functions.cu: it puts the header and those functions in front.
func Complete(body string) []byte {
	var m module
	m.add(file(functions), body)
	return m.bytes()
}

// text is a file cut into its top-level statements.
type text struct {
	header  string
	symbols map[string]string // variables and functions of the file by name
	entries map[string]string
	names   []string // of entries, in order
}

// cut splits a compiler's output into statements.
func cut(whole string) (*text, error) {
	t := &text{symbols: map[string]string{}, entries: map[string]string{}}
	var header, statement strings.Builder
	depth, inStatement := 0, false
	for line := range strings.Lines(whole) {
		bare := strings.TrimSpace(line)
		if !inStatement {
			switch {
			case bare == "" || strings.HasPrefix(bare, "//"):
				continue
			case strings.HasPrefix(bare, ".version"), strings.HasPrefix(bare, ".target"), strings.HasPrefix(bare, ".address_size"):
				header.WriteString(line)
				continue
			}
			inStatement = true
		}
		statement.WriteString(line)
		depth += strings.Count(line, "{") - strings.Count(line, "}")
		start := statement.String()[:min(statement.Len(), 40)]
		isEntry := strings.Contains(start, ".entry")
		hasBody := isEntry || strings.Contains(start, ".func")
		if depth > 0 || hasBody && bare != "}" || !hasBody && !strings.HasSuffix(bare, ";") {
			continue
		}
		s := statement.String()
		statement.Reset()
		inStatement = false
		if isEntry {
			name := s[strings.Index(s, ".entry")+len(".entry"):]
			name = strings.TrimSpace(name[:strings.IndexByte(name, '(')])
			if _, twice := t.entries[name]; twice {
				return nil, fmt.Errorf("a second entry %s", name)
			}
			t.entries[name] = s
			t.names = append(t.names, name)
			continue
		}
		name := variableName(s)
		if hasBody {
			name = functionName(s)
		}
		t.symbols[name] = s
	}
	if statement.Len() > 0 {
		return nil, fmt.Errorf("unfinished statement")
	}
	t.header = header.String()
	return t, nil
}

// variableName finds x in ".shared .align 16 .b8 x[64];".
func variableName(s string) string {
	s = strings.TrimSuffix(strings.TrimSpace(s), ";")
	if i := strings.IndexByte(s, '='); i >= 0 {
		s = s[:i]
	}
	if i := strings.IndexByte(s, '['); i >= 0 {
		s = s[:i]
	}
	fields := strings.Fields(s)
	return fields[len(fields)-1]
}

// functionName finds f in ".visible .func (.param .b32 r) f(".
func functionName(s string) string {
	s = s[strings.IndexByte(s, ')')+1:]
	return strings.TrimSpace(s[:strings.IndexByte(s, '(')])
}

// module collects kernels and the symbols that they name. A symbol that several files have is the same in all of them.
type module struct {
	header  string
	symbols map[string]string
	body    strings.Builder
}

// add adds a kernel of a file, with the symbols that it names directly or indirectly.
func (m *module) add(t *text, body string) {
	if m.symbols == nil {
		m.header, m.symbols = t.header, map[string]string{}
	}
	m.body.WriteString(body)
	for open := []string{body}; len(open) > 0; open = open[1:] {
		for symbol, declaration := range t.symbols {
			if _, known := m.symbols[symbol]; !known && strings.Contains(open[0], symbol) {
				m.symbols[symbol] = declaration
				open = append(open, declaration)
			}
		}
	}
}

// bytes returns the finished module: variables first, then functions, then kernels.
func (m *module) bytes() []byte {
	var variables, functions []string
	for _, declaration := range m.symbols {
		if strings.Contains(declaration[:min(len(declaration), 40)], ".func") {
			functions = append(functions, declaration)
		} else {
			variables = append(variables, declaration)
		}
	}
	sort.Strings(variables)
	sort.Strings(functions)
	return []byte(m.header + strings.Join(variables, "") + strings.Join(functions, "") + m.body.String())
}
