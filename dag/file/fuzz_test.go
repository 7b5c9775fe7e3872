// Fuzz tests: no input may make the parser panic or hang, and formatting the canonical form must not change it.

package file

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"
)

// seeds adds the files of testdata.
func seeds(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "testdata/format/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(f, err)
			if len(source) < 4096 {
				f.Add(source)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	seeds(f)
	schema, err := jsonschema.Compile("../../dagrun.schema.json")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, source []byte) {
		if large(source) {
			return // a repetition of millions is legal, and slow
		}
		p := newParser(badOptions(source))
		g, err := p.read(context.Background(), source)
		require.Equal(t, g == nil, err != nil)
		var d *dag.Diagnostics
		if g != nil {
			d = g.Warnings()
		} else {
			d = mistakes(t, err)
		}
		require.LessOrEqual(t, len(d.List), MaxDiagnostics)
		var printed strings.Builder
		require.NoError(t, d.Print(&printed))
		lines := int32(strings.Count(string(source), "\n") + strings.Count(string(source), "\r") + 1)
		for _, one := range d.List {
			require.LessOrEqual(t, one.Pos.Line, lines, "%s", one.Error())
		}
		// Where a node is left out or repeated zero times, the parser checks only the keys; a schema checks the values too.
		if g != nil && !p.passed {
			accepted, readable := schemaAccepts(t, schema, source)
			require.True(t, readable && accepted, "the schema refuses what the parser takes")
		}
	})
}

// large reports whether the numbers in the text could make a valid file with very many nodes.
func large(source []byte) bool {
	digits := 0
	for _, c := range source {
		if c >= '0' && c <= '9' {
			if digits++; digits > 3 && strings.Contains(string(source), "foreach") {
				return true
			}
		} else {
			digits = 0
		}
	}
	return false
}

func FuzzFormat(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, source []byte) {
		out, err := Format(source, "p.yaml")
		if err != nil {
			require.Nil(t, out)
			require.NotContains(t, err.Error(), "formatting would lose")
			return
		}
		again, err := Format(out, "p.yaml")
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
	})
}
