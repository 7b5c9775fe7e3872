// Tests that the library's own sources and PTX, read as users' modules, have the signatures of the table.

package kernels_test

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/library"
)

// tableParams lists the parameters of every kernel of the library by entry. Where an entry moves elements of several types as bits, it takes
// them as unsigned integers of their size.
func tableParams(t *testing.T) map[string][]dag.KernelParam {
	params := map[string][]dag.KernelParam{}
	for _, d := range library.Docs() {
		for _, v := range d.Variants {
			k, err := kernels.Library().Kernel(d.Name, v.Elems)
			require.NoError(t, err)
			list := slices.Clone(k.Params())
			for i, p := range params[v.Entry] {
				if p.DType != list[i].DType {
					require.Equal(t, p.DType.Size(), list[i].DType.Size(), "%s %s", v.Entry, p.Name)
					list[i].DType = map[int]dag.DType{4: dag.U32, 8: dag.U64}[int(p.DType.Size())]
				}
			}
			params[v.Entry] = list
			for _, f := range v.Forms {
				if f.Entry() != v.Entry {
					params[f.Entry()] = f.Params()
				}
			}
		}
	}
	return params
}

func TestOwnSourcesMatchTheTable(t *testing.T) {
	want := tableParams(t)
	files, err := fs.Glob(library.Sources(), "*.cu")
	require.NoError(t, err)
	for _, file := range files {
		text, err := fs.ReadFile(library.Sources(), file)
		require.NoError(t, err)
		if file == "functions.cu" { // functions for maps to call; no kernels
			continue
		}
		source, err := kernels.OpenModule("library", file, text, kernels.OpenOptions{ReadFile: func(name string) ([]byte, error) {
			return fs.ReadFile(library.Sources(), name)
		}})
		require.NoError(t, err)
		assert.Empty(t, source.WritableGlobals(), file)
		for _, name := range source.Names() {
			k, err := source.Kernel(name, nil)
			require.NoError(t, err)
			row, known := want[name]
			if !assert.True(t, known, "%s declares %s, which no row has", file, name) {
				continue
			}
			delete(want, name)
			if !assert.Len(t, k.Params(), len(row), name) {
				continue
			}
			for i, p := range row {
				got := k.Params()[i]
				if p.Scratch {
					assert.True(t, got.Buffer && got.DType == dag.InvalidDType, "%s: scratch is void *", name)
					continue
				}
				assert.Equal(t, p.Buffer, got.Buffer, "%s %s", name, p.Name)
				assert.Equal(t, p.DType, got.DType, "%s %s", name, p.Name)
				assert.Equal(t, p.Mode == dag.Read, got.Mode == dag.Read, "%s %s is const where it is only read", name, p.Name)
			}
		}
	}
	assert.Empty(t, want, "rows without a source")
}

func TestOwnPTXMatchesTheTable(t *testing.T) {
	want := tableParams(t)
	m, err := kernels.OpenModule("library", "library.ptx", library.Module().Code, kernels.OpenOptions{})
	require.NoError(t, err)
	assert.Len(t, m.Names(), len(want))
	assert.Empty(t, m.WritableGlobals())
	for entry, row := range want {
		alone, err := kernels.OpenModule("library", "library.ptx", library.Module(entry).Code, kernels.OpenOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{entry}, alone.Names())
		k, err := alone.Kernel(entry, nil)
		require.NoError(t, err)
		var inTable []dag.KernelParam
		for _, p := range row {
			inPTX := dag.KernelParam{Size: p.Size}
			if !p.Buffer && p.DType.Float() {
				inPTX.DType = p.DType
			}
			inTable = append(inTable, inPTX)
		}
		params := slices.Clone(k.Params())
		for i := range params {
			params[i].Code = dag.CodeUse{} // the library's own tests compare it with the table
		}
		assert.Equal(t, inTable, params, entry)
	}
}
