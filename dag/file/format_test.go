// Tests of the canonical form: transcripts in testdata/format, and properties that hold for every file.

package file

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
			out, err := Format(source, "p.yaml")
			require.NoError(t, err)
			expect(t, strings.TrimSuffix(file, ".yaml")+".want", string(out))
			unchanged(t, out)
		})
	}
}

func unchanged(t *testing.T, out []byte) {
	t.Helper()
	again, err := Format(out, "p.yaml")
	require.NoError(t, err)
	require.Equal(t, string(out), string(again))
}

// Every file of testdata that is valid YAML has a canonical form with the same meaning.
func TestFormatKeepsMeaning(t *testing.T) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "../../pipelines/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				source, err := os.ReadFile(file)
				require.NoError(t, err)
				out, err := Format(source, "p.yaml")
				if err != nil {
					require.Nil(t, out)
					require.NotContains(t, err.Error(), "formatting would lose")
					return
				}
				unchanged(t, out)
				graph, before := Parse(source, badOptions(source))
				same, after := Parse(out, badOptions(source))
				require.Equal(t, graph == nil, same == nil)
				if graph == nil {
					require.Equal(t, len(mistakes(t, before).List), len(mistakes(t, after).List))
				} else {
					require.Equal(t, len(graph.Warnings().List), len(same.Warnings().List))
					require.Equal(t, meaning(graph), meaning(same))
				}
			})
		}
	}
}

// Whoever adds a key to what the parser reads must say where it stands in the canonical form.
func TestTheCanonicalFormOrdersEveryKey(t *testing.T) {
	for _, both := range []struct {
		read    keySet
		ordered []string
	}{
		{fileKeys, fileOrder},
		{bufferKeys, bufferLayout.keys},
		{nodeKeys, nodeLayout.keys},
		{expectKeys, expectLayout.keys},
	} {
		require.ElementsMatch(t, both.read.keys, both.ordered, both.read.what)
	}
	for verb, set := range collectiveKeys {
		require.Subset(t, collectiveLayout.keys, set.keys, verb)
	}
}
