// Tests of fingerprints: they change with everything that decides how long a node takes, and with nothing else.

package runtime_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/runtime/learn"
)

func TestFingerprintsTellHowKernelsAreCompiled(t *testing.T) {
	const pipeline = `
version: 1
modules:
  w: {source: w.cu, define: {LOOPS: 10}, options: [--fmad=true]}
buffers:
  y: {place: device, dtype: f32, shape: [256], init: 1}
nodes:
  - {name: set, memset: {to: y, value: 1}}
  - name: again
    repeat: {until: y(0..1) < 0.5, most: 4}
    nodes:
      - {name: inner, kernel: w.work, args: {n: 256, y: y}, grid: 1, block: 256}
  - {name: work, kernel: w.work, args: {n: 256, y: y}, grid: 1, block: 256}
`
	files := map[string]string{
		"w.cu": `#include "w.h"
extern "C" __global__ void work(int n, float *y) { for (int k = 0; k < LOOPS * MORE; k++) y[threadIdx.x] *= 0.5f; }`,
		"w.h": "#define MORE 1\n",
	}
	prints := func(pipeline string, files map[string]string) []string {
		read := func(path string) ([]byte, error) {
			if text, ok := files[path]; ok {
				return []byte(text), nil
			}
			return nil, errors.Join(fs.ErrNotExist)
		}
		g, err := file.Parse([]byte(pipeline), file.Options{Name: "p.yaml", Library: kernels.Library(), OpenModule: kernels.ModuleOpener("", read, nil)})
		require.NoError(t, err)
		return learn.Fingerprints(g)
	}
	first := prints(pipeline, files)
	require.Len(t, first, 3)
	require.Equal(t, first, prints(strings.ReplaceAll(pipeline, "name: work", "name: other"), files), "a name decides nothing")
	for name, changed := range map[string][]string{
		"a macro":    prints(strings.Replace(pipeline, "LOOPS: 10", "LOOPS: 1000", 1), files),
		"an option":  prints(strings.Replace(pipeline, "--fmad=true", "--fmad=false", 1), files),
		"a compiler": prints(strings.Replace(pipeline, "source: w.cu", "source: w.cu, compiler: clang", 1), files),
		"a header":   prints(pipeline, map[string]string{"w.cu": files["w.cu"], "w.h": "#define MORE 100\n"}),
		"the code":   prints(pipeline, map[string]string{"w.cu": strings.Replace(files["w.cu"], "0.5f", "0.25f", 1), "w.h": files["w.h"]}),
	} {
		require.Equal(t, first[0], changed[0], name)
		require.NotEqual(t, first[1], changed[1], "%s of a kernel in a loop", name)
		require.NotEqual(t, first[2], changed[2], name)
	}
}
