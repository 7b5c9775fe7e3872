// Package calls describes the functions of vendors' libraries that pipelines may call: their arguments, what they read and write, the
// workspace that they need, what they cost, and a version in plain Go. It opens no library.
package calls

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Catalog finds calls by name. It implements [dag.Calls]. Any number of goroutines may use it.
type Catalog struct{}

// Names lists the calls, sorted.
func (Catalog) Names() []string {
	var names []string
	for i := range table() {
		names = append(names, table()[i].name)
	}
	slices.Sort(names)
	return names
}

func find(name string) (*call, error) {
	all := table()
	for i := range all {
		if all[i].name == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("%w %q", dag.ErrUnknownKernel, name)
}

// Kernel finds the version of a call that takes buffers of these types.
func (Catalog) Kernel(name string, elems []dag.DType) (dag.LaunchKernel, error) {
	c, err := find(name)
	if err != nil {
		return nil, err
	}
	if len(elems) != len(c.params) {
		return nil, fmt.Errorf("takes %d arguments, got %d", len(c.params), len(elems))
	}
	for i := range c.params {
		switch p := &c.params[i]; {
		case p.buffer() && elems[i] == dag.InvalidDType:
			return nil, &dag.ArgumentError{Param: p.name, Index: i, Problem: "must be a buffer, got a number"}
		case !p.buffer() && elems[i] != dag.InvalidDType:
			return nil, &dag.ArgumentError{Param: p.name, Index: i, Problem: "must be a number, got a buffer"}
		}
	}
	for _, v := range c.versions {
		if v.accepts(elems) {
			return v, nil
		}
	}
	var got, want []string
	for i := range c.params {
		if p := &c.params[i]; p.buffer() {
			got = append(got, p.name+" "+elems[i].String())
		}
	}
	for _, v := range c.versions {
		want = append(want, v.bufferTypes())
	}
	return nil, fmt.Errorf("has no version for %s; there are: %s", strings.Join(got, ", "), strings.Join(want, "; "))
}

// Map fails: expressions are no calls.
func (Catalog) Map(*dag.MapSpec) (dag.LaunchKernel, error) {
	return nil, errors.New("the calls of vendors' libraries have no expressions")
}

// ParameterNames implements [dag.ParameterNames].
func (Catalog) ParameterNames(name string) ([]string, error) {
	c, err := find(name)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range c.params {
		names = append(names, c.params[i].name)
	}
	return names, nil
}

// Argument implements [dag.Calls].
func (Catalog) Argument(name, param string) (words []string, usual expr.Value, optional bool) {
	c, err := find(name)
	if err != nil {
		return nil, expr.Value{}, false
	}
	for i := range c.params {
		if p := &c.params[i]; p.name == param {
			if p.usual == nil {
				return p.words, expr.Value{}, false
			}
			return p.words, *p.usual, true
		}
	}
	return nil, expr.Value{}, false
}

// Doc describes one call, for `dagrun kernels`.
type Doc struct {
	Name   string
	Text   string // one line
	Notes  string // what a user must know besides
	Params []ParamDoc
	Types  []string // by version: the element types of the buffers
}

// Signature returns the call with its arguments on one line: "cublas.gemm(ta, tb, alpha, a in, b in, beta, c inout, math)".
func (d Doc) Signature() string {
	var params []string
	for _, p := range d.Params {
		params = append(params, strings.TrimSpace(p.Name+" "+p.Access))
	}
	return d.Name + "(" + strings.Join(params, ", ") + ")"
}

// Docs describes all calls in the order of the table.
func Docs() []Doc {
	var docs []Doc
	for i := range table() {
		c := &table()[i]
		d := Doc{Name: c.name, Text: c.doc, Notes: c.notes}
		for k := range c.params {
			d.Params = append(d.Params, c.params[k].doc())
		}
		for _, v := range c.versions {
			d.Types = append(d.Types, v.bufferTypes())
		}
		docs = append(docs, d)
	}
	return docs
}

// table has all calls. Those of one vendor's library share its code: on a GPU the library itself, on the CPU device their Go versions. A
// device loads it once, because there is one value of it.
var table = sync.OnceValue(func() []call {
	all := slices.Concat(productCalls(), factorCalls(), fourierCalls())
	libraries := map[string]*launch.Module{}
	for i := range all {
		name, _, _ := strings.Cut(all[i].name, ".")
		if libraries[name] == nil {
			libraries[name] = &launch.Module{Name: name, Kind: launch.Calls, References: map[string]launch.Reference{}, Parameters: map[string][]string{}}
		}
		all[i].make(libraries[name])
	}
	return all
})
