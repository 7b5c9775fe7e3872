// The table of all kernels. Its rows are in the table_*.go files, by family.

package library

import (
	"errors"
	"fmt"
	"sync"

	"github.com/dagrun/dagrun/dag"
)

// table holds all rows, in the order of the documentation, and their kernels by name.
type table struct {
	rows   []row
	byName map[string][]*libraryKernel // the kernels of a row, under its name and alias
	names  []string
}

var kernelTable = sync.OnceValue(func() *table {
	t, err := newTable(allRows())
	if err != nil {
		panic("kernels: " + err.Error())
	}
	return t
})

func allRows() []row {
	var all []row
	for _, family := range [][]row{waitRows(), elementwiseRows(), reduceRows(), randomRows(), rowRows(), denseRows(), imageRows(), phaseRows(),
		orderRows(), selectRows()} {
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
			k := &libraryKernel{row: r, types: v.types, parameters: params, flops: flops}
			k.entry = k.entryOf("")
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
			if r.matrices != nil {
				if k.tiles, err = k.onTiles(v.run); err != nil {
					return nil, err
				}
			}
			if err := k.addForms(); err != nil {
				return nil, err
			}
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
