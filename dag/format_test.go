// The canonical form: transcripts in testdata/format, and what holds for every file.

package dag

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormat(t *testing.T) {
	files, err := filepath.Glob("testdata/format/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			out, d := Format(source, "p.yaml")
			require.NoError(t, d.Err())
			expect(t, strings.TrimSuffix(file, ".yaml")+".want", string(out))
			unchanged(t, out)
		})
	}
}

func unchanged(t *testing.T, out []byte) {
	t.Helper()
	again, d := Format(out, "p.yaml")
	require.NoError(t, d.Err())
	require.Equal(t, string(out), string(again))
}

// Every file of testdata that is YAML at all has a canonical form that means the same.
func TestFormatKeepsMeaning(t *testing.T) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "../pipelines/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				source, err := os.ReadFile(file)
				require.NoError(t, err)
				out, d := Format(source, "p.yaml")
				if out == nil {
					require.Error(t, d.Err())
					require.NotContains(t, d.Error(), "formatting would lose")
					return
				}
				unchanged(t, out)
				graph, before := Parse(source, badOptions(source))
				same, after := Parse(out, badOptions(source))
				require.Equal(t, graph == nil, same == nil)
				require.Equal(t, len(before.List), len(after.List))
				if graph != nil {
					require.Equal(t, meaning(graph), meaning(same))
				}
			})
		}
	}
}
