// docs/json.md, and the kernels in the JSON schema. The page is the reference of the JSON documents of trace, bench and plan --explain, made from the Go types that are encoded: keys, types, and
// the comments beside the fields.

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
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels"
)

// fieldComments returns the comments of the fields of a package's structs: the text after a field, or else before it.
func fieldComments(t *testing.T, folder string) map[string]string {
	comments := map[string]string{}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, names, folder)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if structure, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range structure.Fields.List {
					text := field.Comment.Text()
					if text == "" {
						text = field.Doc.Text()
					}
					for _, id := range field.Names {
						comments[spec.Name.Name+"."+id.Name] = strings.Join(strings.Fields(text), " ")
					}
				}
			}
			return true
		})
	}
	return comments
}

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

// planTables writes the tables of the plan, whose writer has no struct to look at.
func (p *jsonPage) planTables() {
	lists := keyLists(p.t)
	for _, part := range []struct{ list, title string }{
		{"planKeys", "## plan\n\n`dagrun plan FILE --output json`, and the `plan` of other documents:"}, {"streamKeys", "### streams of a plan"}, {"opKeys", "### ops of a stream"},
		{"edgeKeys", "### edges of a plan"}, {"memoryKeys", "### memory of a plan"}, {"costKeys", "### costs of a plan"}, {"statsKeys", "### stats of a plan"},
		{"forkKeys", "### fork_join of stats"}, {"bodyKeys", "### bodies of a plan"}, {"spreadKeys", "### spread of a plan"}, {"residencyKeys", "### spilled of a spread"},
	} {
		require.NotEmpty(p.t, lists[part.list], part.list)
		p.out.WriteString(part.title + "\n\n| key | meaning |\n|---|---|\n")
		for _, key := range lists[part.list] {
			fmt.Fprintf(&p.out, "| `%s` | %s |\n", key[0], strings.ReplaceAll(key[1], "|", "\\|"))
		}
		p.out.WriteByte('\n')
		delete(lists, part.list)
	}
	require.Empty(p.t, lists, "docs/json.md lacks these")
}

// jsonPage writes the tables of documents, and then those of the types that they hold.
type jsonPage struct {
	t        *testing.T
	comments map[string]map[string]string // by package
	seen     map[reflect.Type]bool
	waiting  []reflect.Type
	out      strings.Builder
}

// typeText names the JSON type of a Go type, and puts structs on the list of those to describe.
func (p *jsonPage) typeText(typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.Pointer:
		return p.typeText(typ.Elem())
	case reflect.Slice:
		if typ == reflect.TypeFor[json.RawMessage]() {
			return "object"
		}
		return "array of " + p.typeText(typ.Elem())
	case reflect.Map:
		return "object with values: " + p.typeText(typ.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "string"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		if !p.seen[typ] {
			p.seen[typ] = true
			p.waiting = append(p.waiting, typ)
		}
		title := p.title(typ)
		return fmt.Sprintf("[%s](#%s)", title, strings.ReplaceAll(title, " ", "-"))
	}
	return "number"
}

// title is a Go type's name as words.
func (p *jsonPage) title(typ reflect.Type) string {
	var b strings.Builder
	for _, r := range typ.Name() {
		if unicode.IsUpper(r) && b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func (p *jsonPage) table(typ reflect.Type) {
	p.out.WriteString("| key | type | meaning |\n|---|---|---|\n")
	p.rows(typ)
	p.out.WriteByte('\n')
}

func (p *jsonPage) rows(typ reflect.Type) {
	folder := strings.TrimPrefix(strings.TrimPrefix(typ.PkgPath(), "github.com/dagrun/dagrun"), "/")
	if folder == "main" || folder == "" {
		folder = "cmd/dagrun"
	}
	if p.comments[folder] == nil {
		p.comments[folder] = fieldComments(p.t, filepath.Join("../..", folder))
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		key, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && key == "":
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			p.rows(inner)
			continue
		case key == "" || key == "-":
			continue
		}
		meaning := p.comments[folder][typ.Name()+"."+field.Name]
		if meaning == "" {
			p.t.Errorf("%s.%s.%s has no comment, which docs/json.md shows", folder, typ.Name(), field.Name)
		}
		if option == "omitempty" {
			meaning += " (may be missing)"
		}
		fmt.Fprintf(&p.out, "| `%s` | %s | %s |\n", key, p.typeText(field.Type), strings.ReplaceAll(meaning, "|", "\\|"))
	}
}

func TestJSONPageIsFresh(t *testing.T) {
	p := &jsonPage{t: t, comments: map[string]map[string]string{}, seen: map[reflect.Type]bool{}}
	p.out.WriteString("# The JSON of trace, bench and plan\n\n" + generated +
		"Every key of these documents with its type, from the code that writes them. [OUTPUT.md](../cmd/dagrun/OUTPUT.md) explains all commands, and\n" +
		"[plan.md](plan.md#json) has an example of a plan. Times are in microseconds.\n\n")
	for _, document := range []struct {
		title, about string
		value        any
	}{
		{"trace", "`dagrun trace FILE --output json`", traceReport{}},
		{"bench", "`dagrun bench FILE --output json`", benchReport{}},
		{"bench of several params", "`dagrun bench FILE -p name=1,2,4 --output json`", sweepReport{}},
		{"plan --explain", "`dagrun plan FILE --explain --output json`", explanation{}},
	} {
		fmt.Fprintf(&p.out, "## %s\n\n%s:\n\n", document.title, document.about)
		p.seen[reflect.TypeOf(document.value)] = true
		p.table(reflect.TypeOf(document.value))
	}
	p.planTables()
	p.out.WriteString("## Parts\n\n")
	for len(p.waiting) > 0 {
		typ := p.waiting[0]
		p.waiting = p.waiting[1:]
		fmt.Fprintf(&p.out, "### %s\n\n", p.title(typ))
		p.table(typ)
	}
	requirePage(t, "json.md", strings.TrimSuffix(p.out.String(), "\n"))
}

// The schema offers the kernels of the library, each with its signature. DAGRUN_UPDATE_SCRIPTS=1 writes that list again.
func TestSchemaOffersEveryKernel(t *testing.T) {
	var lines []string
	for _, k := range kernels.Docs() {
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
	for _, c := range kernels.CallDocs() {
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
