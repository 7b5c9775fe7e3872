// The library's sources and its module: the PTX of the kernels that a program launches, with their Go references.

package library

import (
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library/cubin"
	"github.com/dagrun/dagrun/kernels/library/cuda"
	"github.com/dagrun/dagrun/kernels/library/ptx"
)

//go:generate go run ./internal/makeptx
//go:generate go run ./internal/makecubin

// Sources are the library's CUDA C files, for those who compile them with their own compiler.
func Sources() fs.FS { return cuda.Files }

// Module is the library's code: PTX with these entries (all of them, if none is named), machine code made from it, and the Go references of every kernel.
// Names that the library does not have are ignored: looking them up in the loaded module fails.
func Module(entries ...string) *launch.Module {
	return &launch.Module{Name: "library", Kind: launch.PTX, Code: ptx.Entries(entries...), References: references(),
		Machine: func(capability [2]int, waiting bool) (*launch.Machine, error) {
			return machine(capability, waiting, entries)
		}}
}

// machine unpacks the machine code of the entries.
func machine(capability [2]int, waiting bool, entries []string) (*launch.Machine, error) {
	archive := cubin.For(capability)
	if archive == nil {
		return nil, fmt.Errorf("there is no machine code for compute capability %d.%d", capability[0], capability[1])
	}
	if len(entries) == 0 {
		entries = ptx.Names()
	}
	m := &launch.Machine{Architecture: archive.Architecture}
	for i, entry := range entries {
		if !ptx.Has(entry) || slices.Contains(entries[:i], entry) {
			continue
		}
		code, waits, err := archive.Kernel(entry, ptx.Entries(entry), waiting)
		if err != nil {
			return nil, err
		}
		m.Kernels = append(m.Kernels, launch.MachineKernel{Entry: entry, Cubin: code, Waits: waits})
	}
	return m, nil
}

var references = sync.OnceValue(func() map[string]launch.Reference {
	all := map[string]launch.Reference{}
	for _, versions := range kernelTable().byName {
		for _, version := range versions {
			for _, k := range version.inAllForms() {
				all[k.entry] = k.reference
			}
		}
	}
	return all
})
