// Entries of a user's PTX: their names and the sizes of their parameters, and the variables that all launches share.

package source

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/ptx"
	"github.com/dagrun/dagrun/kernels/ptx/access"
)

// parsePTX lists entries in order. PTX does not say what a 64-bit parameter is: the user must.
func parsePTX(text string) (entries []sourceKernel, globals []string, err error) {
	m, err := ptx.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range m.Entries() {
		f := &m.Functions[id]
		k := sourceKernel{name: f.Name}
		for _, p := range f.Params {
			v := &m.Variables[p.Variable]
			param := dag.KernelParam{Size: int32(v.Size)}
			if !v.Array {
				param.DType = map[ptx.Type]dag.DType{ptx.F32: dag.F32, ptx.F64: dag.F64}[v.Type]
			}
			k.params = append(k.params, param)
		}
		entries = append(entries, k)
	}
	return entries, access.WrittenGlobals(m), nil
}
