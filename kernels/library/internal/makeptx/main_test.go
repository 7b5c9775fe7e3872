// Tests that the committed PTX is what the compiler makes of the committed sources.

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const library = "../.."

func TestPTXBelongsToSource(t *testing.T) {
	files := os.DirFS(library)
	sources, err := sourceFiles(files)
	require.NoError(t, err)
	packed, err := os.ReadDir(library + "/ptx")
	require.NoError(t, err)
	compressed := 0
	for _, f := range packed {
		if strings.HasSuffix(f.Name(), ".ptx.gz") {
			compressed++
		}
	}
	require.Equal(t, len(sources), compressed, "one PTX file for each source")
	// The hash ties the two together. Compiling again takes half a minute of a core, so only checks of a whole clone name a
	// compiler; where it is named, it must be there.
	compiler := os.Getenv("DAGRUN_PTX_COMPILER")
	if compiler == "" {
		t.Logf("NOT ALL TESTED: %s (DAGRUN_PTX_COMPILER names no compiler)", t.Name())
	}
	list := ""
	for _, source := range sources {
		stamp, err := stampOf(files, source)
		require.NoError(t, err)
		committed, err := unpack(files, outputOf(source))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(committed, stamp), "%s is older than %s: run go generate ./kernels/library", outputOf(source), source)
		list += entriesOf(source, committed)
		if compiler == "" {
			continue
		}
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			made, err := compile(compiler, library, source)
			require.NoError(t, err)
			assert.True(t, committed == stamp+made, "%s is not what %s makes of %s: run go generate ./kernels/library", outputOf(source), compiler, source)
		})
	}
	listed, err := os.ReadFile(library + "/" + listFile)
	require.NoError(t, err)
	assert.Equal(t, list, string(listed), "run go generate ./kernels/library")
}
