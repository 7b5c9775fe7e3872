// Tests of the page on the pipeline format: it has every key and function, its limits are those of the code, and its examples run.

package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/dag/file"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../" + name)
	require.NoError(t, err)
	return string(text)
}

// schemaWords are all keys and all fixed words of the JSON schema, which a test of dag compares with the parser.
func schemaWords(t *testing.T) []string {
	t.Helper()
	var schema any
	require.NoError(t, json.Unmarshal([]byte(page(t, "dagrun.schema.json")), &schema))
	seen := map[string]bool{}
	var walk func(v any, named bool)
	walk = func(v any, named bool) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if named {
					seen[key] = true
				}
				if key == "enum" && !named {
					for _, word := range inner.([]any) {
						if text, ok := word.(string); ok {
							seen[text] = true
						}
					}
				}
				walk(inner, key == "properties" && !named)
			}
		case []any:
			for _, inner := range v {
				walk(inner, false)
			}
		}
	}
	walk(schema, false)
	var words []string
	for word := range seen {
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}

func TestFormatPageNamesEveryKey(t *testing.T) {
	text := page(t, "docs/format.md")
	words := schemaWords(t)
	require.Greater(t, len(words), 60)
	for _, word := range words {
		require.Regexp(t, "(`|`[^`]*[^a-z_`])"+regexp.QuoteMeta(word)+"([^a-z_0-9`][^`]*`|`)", text, "%q is not on the page", word)
	}
	for _, name := range expr.Functions(true) {
		require.Contains(t, text, "`"+name+"(", "function %s", name)
	}
	for _, name := range expr.Functions(false) {
		require.Contains(t, text, "`"+name+"(", "function %s", name)
	}
}

func TestFormatPageStatesTheLimits(t *testing.T) {
	text := page(t, "docs/format.md")
	_, limits, found := strings.Cut(text, "## Limits")
	require.True(t, found)
	thousands := func(n int64) string {
		if n < 10000 {
			return fmt.Sprint(n)
		}
		s := fmt.Sprint(n)
		for k := len(s) - 3; k > 0; k -= 3 {
			s = s[:k] + "," + s[k:]
		}
		return s
	}
	for _, limit := range []string{fmt.Sprintf("%d MiB", file.MaxBytes>>20), thousands(dag.MaxNodes) + " nodes", fmt.Sprintf("%d bytes", dag.MaxName), thousands(expr.MaxText) + " bytes",
		fmt.Sprintf("depth of %d", expr.MaxDepth), fmt.Sprintf("%d devices", dag.MaxDevices)} {
		require.Contains(t, limits, limit)
	}
}

// Every example on the pages of docs/ that is a whole pipeline in one file is one: it is in canonical form, it runs, and what it expects is so.
func TestExamplePipelinesOfThePagesRun(t *testing.T) {
	command := filepath.Join(t.TempDir(), "dagrun")
	out, err := exec.Command("go", "build", "-o", command, "../cmd/dagrun").CombinedOutput()
	require.NoError(t, err, "%s", out)
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	found := 0
	for _, name := range pages {
		text := page(t, strings.TrimPrefix(name, "../"))
		for k, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
			if !strings.Contains(block[1], "version: 1\n") || strings.Contains(block[1], "\nmodules:\n") {
				continue // a part of a file, or one that needs files beside it: the tests of its page bring those
			}
			found++
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(name), k), func(t *testing.T) {
				dir := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(block[1]), 0o666))
				for _, args := range [][]string{{"fmt", "--check", "p.yaml"}, {"run", "--backend", "cpu", "p.yaml"}} {
					c := exec.Command(command, args...)
					c.Dir = dir
					out, err := c.CombinedOutput()
					require.NoError(t, err, "dagrun %s: %s", strings.Join(args, " "), out)
				}
			})
		}
	}
	require.Greater(t, found, 2)
}
