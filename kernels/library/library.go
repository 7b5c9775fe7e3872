// Package library holds the kernels that come with dagrun: for each one a row of the table with its signature, launch shape and
// cost, its CUDA C, the PTX made from that, and a Go reference that computes the same bits.
package library

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

// Catalog finds the library's kernels by name. Any number of goroutines may use it.
type Catalog struct{}

// Names lists the kernels, sorted, aliases included.
func (Catalog) Names() []string {
	names := slices.Clone(kernelTable().names)
	slices.Sort(names)
	return names
}

// Kernel finds the version of a kernel that takes buffers of these types.
func (Catalog) Kernel(name string, elems []dag.DType) (dag.LaunchKernel, error) {
	versions := kernelTable().byName[name]
	if versions == nil {
		return nil, fmt.Errorf("%w %q", dag.ErrUnknownKernel, name)
	}
	given := versions[0].given
	if len(elems) != len(given) {
		return nil, fmt.Errorf("takes %s, got %d", describe.CountArguments(given), len(elems))
	}
	for i, p := range given {
		switch {
		case p.Buffer && elems[i] == dag.InvalidDType:
			return nil, &dag.ArgumentError{Param: p.Name, Index: i, Problem: "must be a buffer, got a number"}
		case !p.Buffer && elems[i] != dag.InvalidDType:
			return nil, &dag.ArgumentError{Param: p.Name, Index: i, Problem: "must be a number, got a buffer"}
		}
	}
	for _, k := range versions {
		if k.accepts(elems) {
			return k, nil
		}
	}
	var got, want []string
	for i, p := range given {
		if p.Buffer {
			got = append(got, p.Name+" "+elems[i].String())
		}
	}
	for _, k := range versions {
		want = append(want, k.bufferTypes())
	}
	return nil, fmt.Errorf("has no version for %s; there are: %s", strings.Join(got, ", "), strings.Join(want, "; "))
}

// ParameterNames implements [dag.ParameterNames].
func (Catalog) ParameterNames(name string) ([]string, error) {
	versions := kernelTable().byName[name]
	if versions == nil {
		return nil, fmt.Errorf("%w %q", dag.ErrUnknownKernel, name)
	}
	var names []string
	for _, p := range versions[0].given {
		names = append(names, p.Name)
	}
	return names, nil
}
