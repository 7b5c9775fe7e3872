// The keys of a plan in docs/json.md, made from the lists that are encoded and the comments beside them, and the kernels in the JSON schema.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/calls"
	"github.com/dagrun/dagrun/kernels/library"
)

// keyLists returns the lists of keys in the files of a plan, by the name of the variable: each key with the comment beside it.
func keyLists(t *testing.T) map[string][][2]string {
	lists := map[string][][2]string{}
	names, err := filepath.Glob("../../planner/plan/*.go")
	require.NoError(t, err)
	for _, name := range names {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.ParseComments)
		require.NoError(t, err)
		beside := map[int]string{} // by line
		for _, group := range file.Comments {
			beside[files.Position(group.Pos()).Line] = strings.Join(strings.Fields(group.Text()), " ")
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasSuffix(spec.Names[0].Name, "Keys") {
				return true
			}
			if list, ok := spec.Values[0].(*ast.CompositeLit); ok {
				for _, element := range list.Elts {
					literal, ok := element.(*ast.BasicLit)
					require.True(t, ok, spec.Names[0].Name)
					key, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					meaning := beside[files.Position(literal.Pos()).Line]
					require.NotEmpty(t, meaning, "%s: %q has no comment, which docs/json.md shows", spec.Names[0].Name, key)
					lists[spec.Names[0].Name] = append(lists[spec.Names[0].Name], [2]string{key, meaning})
				}
			}
			return true
		})
	}
	return lists
}

// The page on JSON ends with the keys of a plan, whose writer has no struct to look at.
func TestJSONPageListsTheKeysOfPlans(t *testing.T) {
	lists := keyLists(t)
	var out strings.Builder
	for _, part := range []struct{ list, title string }{
		{"planKeys", ""}, {"streamKeys", "streams of a plan"}, {"opKeys", "ops of a stream"}, {"edgeKeys", "edges of a plan"}, {"memoryKeys", "memory of a plan"},
		{"costKeys", "costs of a plan"}, {"statsKeys", "stats of a plan"}, {"forkKeys", "fork_join of stats"}, {"bodyKeys", "bodies of a plan"},
		{"spreadKeys", "spread of a plan"}, {"residencyKeys", "spilled of a spread"},
	} {
		require.NotEmpty(t, lists[part.list], part.list)
		if part.title != "" {
			out.WriteString("\n### " + part.title + "\n\n")
		}
		for _, key := range lists[part.list] {
			fmt.Fprintf(&out, "- `%s`: %s\n", key[0], key[1])
		}
		delete(lists, part.list)
	}
	require.Empty(t, lists, "docs/json.md lacks these")
	page, err := os.ReadFile("../../docs/json.md")
	require.NoError(t, err)
	const begin = "<!-- Generated from here on; `DAGRUN_UPDATE_SCRIPTS=1 go test ./cmd/dagrun` writes it again. -->\n\n"
	written, _, found := strings.Cut(string(page), begin)
	require.True(t, found)
	requirePage(t, "json.md", written+begin+strings.TrimSuffix(out.String(), "\n"))
}

// The schema offers the kernels of the library, each with its signature. DAGRUN_UPDATE_SCRIPTS=1 writes that list again.
func TestSchemaOffersEveryKernel(t *testing.T) {
	var lines []string
	for _, k := range library.Docs() {
		for _, name := range []string{k.Name, k.Alias} {
			if name != "" {
				lines = append(lines, schemaChoice(t, name, k.Signature()+": "+k.Text))
			}
		}
	}
	requireSchemaPart(t, "\"kernel\": {\n          \"type\": \"string\",\n          \"anyOf\": [\n", ",\n            {\n", strings.Join(lines, ",\n"))
}

// The schema offers the functions of NVIDIA's libraries in the same way.
func TestSchemaOffersEveryCall(t *testing.T) {
	var lines []string
	for _, c := range calls.Docs() {
		lines = append(lines, schemaChoice(t, c.Name, c.Signature()+": "+c.Text))
	}
	requireSchemaPart(t, "\"call\": {\n          \"description\": \"A function of NVIDIA's libraries, with arguments by name.\",\n          \"anyOf\": [\n", ",\n            {\n", strings.Join(lines, ",\n"))
}

// schemaChoice is one value with what it means.
func schemaChoice(t *testing.T, name, about string) string {
	t.Helper()
	item, err := json.Marshal(name)
	require.NoError(t, err)
	var text bytes.Buffer // Go's Marshal would write > as \u003e
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(about))
	return fmt.Sprintf(`            {"const": %s, "description": %s}`, item, bytes.TrimSpace(text.Bytes()))
}

// requireSchemaPart compares what the schema has between two texts, or writes it.
func requireSchemaPart(t *testing.T, begin, end, want string) {
	t.Helper()
	const file = "../../dagrun.schema.json"
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(strings.ReplaceAll(string(data), "\r\n", "\n"), begin)
	require.True(t, ok)
	have, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if os.Getenv("DAGRUN_UPDATE_SCRIPTS") != "" {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o666))
		return
	}
	require.Equal(t, want, have, "dagrun.schema.json is out of date; DAGRUN_UPDATE_SCRIPTS=1 go test ./cmd/dagrun writes it again")
}
