// The library's module: committed PTX, cut into entries so that a program loads only the kernels it launches. A driver
// compiles PTX when it is loaded; the whole library takes it seconds the first time, a handful of kernels milliseconds.

package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"sync"
)

//go:generate go run ./internal/makeptx

//go:embed ptx/*.ptx
var ptxFiles embed.FS

//go:embed cuda/*.cu cuda/*.cuh
var cudaFiles embed.FS

// Sources are the library's CUDA C files, for those who compile them with their own compiler.
func Sources() fs.FS {
	sub, err := fs.Sub(cudaFiles, "cuda")
	if err != nil {
		panic(err)
	}
	return sub
}

// LibraryModule is the library's code: PTX with these entries (all of them, if none is named) and the Go references of
// every kernel. A name that is not in the library is left out: looking it up in the loaded module says so.
func LibraryModule(entries ...string) *Module {
	return &Module{Name: "library", Kind: PTX, Code: libraryPTX().only(entries), References: references()}
}

var references = sync.OnceValue(func() map[string]Reference {
	all := map[string]Reference{}
	for _, versions := range library().byName {
		for _, k := range versions {
			all[k.entry] = k.reference
		}
	}
	return all
})

// ptxText is PTX cut into its top-level statements.
type ptxText struct {
	header  string
	symbols map[string]string // module-scope variables and functions by name
	entries map[string]string
	names   []string // of entries, in order
}

var libraryPTX = sync.OnceValue(func() *ptxText {
	all := &ptxText{symbols: map[string]string{}, entries: map[string]string{}}
	names, err := fs.Glob(ptxFiles, "ptx/*.ptx")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := ptxFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		if err := all.add(string(text)); err != nil {
			panic("kernels: " + name + ": " + err.Error())
		}
	}
	return all
})

// add takes a compiler's output in. Files share a header; a variable that two files have must be the same in both.
func (t *ptxText) add(text string) error {
	var header, statement strings.Builder
	depth, inStatement := 0, false
	for line := range strings.Lines(text) {
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
				return fmt.Errorf("a second entry %s", name)
			}
			t.entries[name] = s
			t.names = append(t.names, name)
			continue
		}
		name := variableName(s)
		if hasBody {
			name = functionName(s)
		}
		if old, ok := t.symbols[name]; ok && old != s {
			return fmt.Errorf("variable %s differs between files", name)
		}
		t.symbols[name] = s
	}
	if statement.Len() > 0 {
		return fmt.Errorf("unfinished statement")
	}
	if t.header != "" && t.header != header.String() {
		return fmt.Errorf("header differs between files")
	}
	t.header = header.String()
	return nil
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

// only is a module of these entries, or of all, and what they name.
func (t *ptxText) only(entries []string) []byte {
	if len(entries) == 0 {
		entries = t.names
	}
	var body strings.Builder
	done := map[string]bool{}
	for _, name := range entries {
		if !done[name] {
			body.WriteString(t.entries[name])
		}
		done[name] = true
	}
	return t.module(body.String())
}

// module puts the header and what a text names, directly or not, in front of it: variables first, then functions.
func (t *ptxText) module(body string) []byte {
	used := map[string]bool{}
	for texts := []string{body}; len(texts) > 0; texts = texts[1:] {
		for symbol, text := range t.symbols {
			if !used[symbol] && strings.Contains(texts[0], symbol) {
				used[symbol] = true
				texts = append(texts, text)
			}
		}
	}
	var variables, functions []string
	for symbol := range used {
		if text := t.symbols[symbol]; strings.Contains(text[:min(len(text), 40)], ".func") {
			functions = append(functions, text)
		} else {
			variables = append(variables, text)
		}
	}
	sort.Strings(variables)
	sort.Strings(functions)
	return []byte(t.header + strings.Join(variables, "") + strings.Join(functions, "") + body)
}
