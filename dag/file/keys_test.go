// Tests that the JSON schema and docs/format.md have the keys of buffers and nodes as the tables have them; they also write them.

package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// part is what stands between two texts of a page, with what is around it.
func part(t *testing.T, page, begin, end string) (before, between, after string) {
	t.Helper()
	before, rest, ok := strings.Cut(page, begin)
	require.True(t, ok, begin)
	between, after, ok = strings.Cut(rest, end)
	require.True(t, ok, end)
	return before + begin, between, end + after
}

// requireSame compares a file with what it should be, or writes it.
func requireSame(t *testing.T, name, have, want string) {
	t.Helper()
	if os.Getenv("DAGRUN_UPDATE_SCRIPTS") != "" {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o666))
		return
	}
	require.Equal(t, want, have, "%s is out of date; DAGRUN_UPDATE_SCRIPTS=1 go test ./dag/file writes it again", name)
}

func TestPageHasTheKeysOfTheTables(t *testing.T) {
	page := readText(t, "../../docs/format.md")
	want := withLines(t, page, "## Buffers\n\n", "- `foreach`, `buffers`: ", bufferRows[:])
	requireSame(t, "../../docs/format.md", page, withLines(t, want, "### Other keys\n\n", "- `foreach`, `nodes`: ", nodeRows[:]))
}

// withLines is a page with a line for each key that has one.
func withLines[T any](t *testing.T, page, begin, end string, rows []keyRow[T]) string {
	before, _, after := part(t, page, begin, end)
	for k := range rows {
		if row := &rows[k]; row.help != "" {
			before += fmt.Sprintf("- `%s`: %s\n", row.name, row.help)
		}
	}
	return before + after
}

func TestSchemaHasTheKeysOfTheTables(t *testing.T) {
	schema := readText(t, "../../dagrun.schema.json")
	var node, control, actions, dependencies []string
	for _, key := range nodeLayout.keys {
		k := nodeKeys.find(key)
		row := &nodeRows[k]
		isAction := k >= nodeMemcpy && k <= nodeReceive || k == nodeUse
		ofBodies := slices.Contains([]int{nodeNodes, nodeRepeat, nodeIf, nodeElse}, k)
		if !ofBodies {
			node = append(node, key)
		}
		if ofBodies || row.of == 0 && !isAction {
			control = append(control, key)
		}
		if isAction {
			actions = append(actions, fmt.Sprintf(`{"required": [%q]}`, key))
		}
		var with []string
		for at := range nodeRows {
			if row.of != anyAction && row.of>>at&1 == 1 {
				with = append(with, nodeRows[at].name)
			}
		}
		switch {
		case k == nodeSend || k == nodeReceive:
			dependencies = append(dependencies, fmt.Sprintf(`%q: ["rank"]`, key))
		case len(with) == 1:
			dependencies = append(dependencies, fmt.Sprintf(`%q: [%q]`, key, with[0]))
		case len(with) > 1:
			dependencies = append(dependencies, fmt.Sprintf(`%q: {"anyOf": [{"required": ["%s"]}]}`, key, strings.Join(with, `"]}, {"required": ["`)))
		}
	}
	before, text, after := part(t, schema, "\n    \"node\": {\n", "\n    \"nodeGroup\": {\n")
	text = withKeys(t, text, nodeRows[:], node, true)
	head, _, tail := part(t, text, "        \"dependencies\": ", "\n      }\n    },")
	text = head + indented(t, "        ", "{"+strings.Join(dependencies, ", ")+"}") + ",\n        \"oneOf\": " +
		indented(t, "        ", "["+strings.Join(actions, ", ")+"]") + tail
	want := before + text + after
	before, text, after = part(t, want, "\n    \"control\": {\n", "\n    \"test\": {\n")
	want = before + withKeys(t, text, nodeRows[:], control, false) + after
	before, text, after = part(t, want, "\n    \"buffer\": {\n", "\n    \"bufferGroup\": {\n")
	buffer := slices.DeleteFunc(slices.Clone(bufferLayout.keys), func(key string) bool { return key == "buffers" })
	requireSame(t, "../../dagrun.schema.json", schema, before+withKeys(t, text, bufferRows[:], buffer, true)+after)
}

// withKeys is the schema of a mapping with these keys. Those of the table are as it says, if it is the mapping that the table is for or has none.
func withKeys[T any](t *testing.T, text string, rows []keyRow[T], keys []string, ofTable bool) string {
	before, properties, after := part(t, text, "      \"properties\": {\n", "\n      }")
	have := map[string]string{}
	for _, found := range regexp.MustCompile(`(?ms)^        "(\w+)": (\{\n.*?^        \})`).FindAllStringSubmatch(properties, -1) {
		have[found[1]] = found[2]
	}
	var entries []string
	for _, key := range keys {
		entry, row := have[key], &rows[slices.Index(names(rows), key)]
		switch about := "\"description\": " + quoted(t, sentence(row.help)); {
		case row.value != "" && (ofTable || entry == ""):
			entry = indented(t, "        ", "{"+about+", "+valueSchema(row.value)+"}")
		case row.help != "" && ofTable: // a $ref brings its own description
			entry = regexp.MustCompile(`^\{\n          "description": ".*"`).ReplaceAllLiteralString(entry, "{\n          "+about)
		}
		require.NotEmpty(t, entry, "write what %q takes into the schema, or into its row", key)
		entries = append(entries, fmt.Sprintf("        %q: %s", key, entry))
	}
	text = before + strings.Join(entries, ",\n") + after
	before, _, after = part(t, text, "\n      \"if\": {\n        \"propertyNames\": {\n          \"enum\": ", "\n        }")
	list, err := json.Marshal(keys)
	require.NoError(t, err)
	return before + indented(t, "          ", string(list)) + after
}

// valueSchema is what the schema says of a value.
func valueSchema(value string) string {
	name, three := strings.CutSuffix(value, " x3")
	ref := fmt.Sprintf(`{"$ref": "#/definitions/%s"}`, name)
	kind := map[string]string{"condition": "boolean", "number": "number", "notNegative": "number"}[name]
	if kind == "" {
		kind = "integer"
	}
	switch {
	case value == "boolean":
		return `"type": "boolean"`
	case strings.Contains(value, ", "):
		return `"enum": ["` + strings.ReplaceAll(value, ", ", `", "`) + `"]`
	case three:
		return fmt.Sprintf(`"type": ["string", %q, "array"], "anyOf": [%s, {"type": "array", "minItems": 1, "maxItems": 3, "items": %s}]`, kind, ref, ref)
	}
	return fmt.Sprintf(`"type": ["string", %q], "allOf": [%s]`, kind, ref)
}

// sentence is a line of the page without its marks.
func sentence(help string) string {
	if help != "" && help[0] != '`' {
		help = strings.ToUpper(help[:1]) + help[1:]
	}
	return regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(strings.ReplaceAll(help, "`", ""), "$1") + "."
}

func quoted(t *testing.T, text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(text))
	return strings.TrimSpace(out.String())
}

func indented(t *testing.T, prefix, text string) string {
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, []byte(text), prefix, "  "))
	return out.String()
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
