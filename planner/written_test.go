// Tests that the documentation shows the golden files of the other tests; this file sorts last, so that -rewrite updates those first.

package planner

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// example is a comment that names a file, and the block of code after it.
var example = regexp.MustCompile("(?s)<!-- (planner/testdata/[^ ]+) -->\n```([a-z]*)\n.*?```\n")

func TestDocumentationShowsGoldenFiles(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, H200().Encode(&b))
	golden(t, "testdata/h200.json", b.String())
	for _, page := range []string{"json.md", "machines.md"} {
		path := filepath.Join("..", "docs", page)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotEmpty(t, example.FindAll(text, -1), page)
		want := example.ReplaceAllStringFunc(string(text), func(block string) string {
			parts := example.FindStringSubmatch(block)
			content, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(parts[1])))
			require.NoError(t, err)
			return "<!-- " + parts[1] + " -->\n```" + parts[2] + "\n" + strings.TrimRight(string(content), "\n") + "\n```\n"
		})
		if *rewrite {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
			continue
		}
		require.Equal(t, want, string(text), "docs/%s is out of date; if the change is meant: go test ./planner -run %s -rewrite, and review the diff", page, t.Name())
	}
}
