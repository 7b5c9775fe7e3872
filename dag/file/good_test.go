// Tests of valid files: what they mean, and their warnings.

package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/stretchr/testify/require"
)

func TestGoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			g, err := Parse(source, badOptions(source))
			require.NoError(t, err)
			for _, d := range g.Warnings().List {
				require.Equal(t, dag.SeverityWarning, d.Severity)
			}
			var warnings strings.Builder
			require.NoError(t, g.Warnings().Print(&warnings))
			expect(t, strings.TrimSuffix(file, ".yaml")+".want", warnings.String()+meaning(g))
		})
	}
}
