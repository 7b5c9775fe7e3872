// The table: one row per kernel with everything there is to know about it. The rows are in the table_*.go files, by family.

package library

import (
	"errors"
	"fmt"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/launch"
)

// row is one kernel of the library. Its CUDA C is in cuda/, in entries called dagrun_<name>_<types>.
type row struct {
	name      string
	alias     string // another name for the same kernel, "" for none
	doc       string // one line
	signature string
	flops     string   // formula; "" for none
	launch    geometry // grid, block and shared memory from the arguments
	inPlace   bool     // an output may be exactly one of the inputs
	check     func(v values) error
	us        func(v values) float64 // how long it takes by its arguments, if its work does not say; nil for most
	versions  []version
}

// version is a row for one binding of its type letters.
type version struct {
	types bind
	run   func(k *libraryKernel) launch.Reference
}

// geometry sets the shape of a launch.
type geometry func(k *libraryKernel, v values, info *dag.LaunchInfo)

// values are the scalars of a launch by parameter; v has the integers, and 0 for floats.
type values struct {
	k    *libraryKernel
	v    []int64
	args []dag.Arg
}

// of returns an integer by name, float a float.
func (v values) of(name string) int64      { return v.v[v.at(name)] }
func (v values) float(name string) float64 { return launch.FloatValue(v.args[v.at(name)]) }

// at is the index of a parameter; it panics for a name that the signature lacks.
func (v values) at(name string) int {
	i := v.k.index(name)
	if i < 0 {
		panic("kernels: no parameter " + name + " in " + v.k.row.name)
	}
	return i
}

// table is every row with its parsed parameters, in the order of the documentation.
type table struct {
	rows   []row
	byName map[string][]*libraryKernel // the versions of a row, under its name and alias
	names  []string
}

var library = sync.OnceValue(func() *table {
	t, err := newTable(rows())
	if err != nil {
		panic("kernels: " + err.Error())
	}
	return t
})

func rows() []row {
	var all []row
	for _, family := range [][]row{waitRows(), elementwiseRows(), reduceRows(), randomRows(), rowRows(), denseRows(), imageRows(), phaseRows()} {
		all = append(all, family...)
	}
	return all
}

func newTable(rows []row) (*table, error) {
	t := &table{rows: rows, byName: map[string][]*libraryKernel{}}
	for i := range rows {
		r := &rows[i]
		params, err := parseSignature(r.signature)
		if err != nil {
			return nil, err
		}
		var flops *formula
		if r.flops != "" {
			find := func(name string) int {
				for i := range params {
					if params[i].name == name {
						return i
					}
				}
				return -1
			}
			if flops, err = parseFormula(r.flops, find); err != nil {
				return nil, err
			}
		}
		var versions []*libraryKernel
		for _, v := range r.versions {
			k := &libraryKernel{row: r, types: v.types, entry: "dagrun_" + r.name + v.types.suffix(), parameters: params, flops: flops}
			for _, p := range params {
				dtype, err := v.types.resolve(p.typeName)
				if err != nil {
					return nil, err
				}
				kp := dag.KernelParam{Name: p.name, DType: dtype, Buffer: p.mode != 0, Scratch: p.scratch, Mode: p.mode, Size: int32(dtype.Size())}
				if kp.Buffer {
					kp.Size = 8
				}
				k.params = append(k.params, kp)
				if !kp.Scratch {
					k.given = append(k.given, kp)
				}
			}
			k.reference = v.run(k)
			versions = append(versions, k)
		}
		if len(versions) == 0 {
			return nil, fmt.Errorf("kernel %q has no version", r.name)
		}
		for _, name := range []string{r.name, r.alias} {
			if name == "" {
				continue
			}
			if t.byName[name] != nil {
				return nil, errors.New("two kernels are called " + name)
			}
			t.byName[name] = versions
			t.names = append(t.names, name)
		}
	}
	return t, nil
}
