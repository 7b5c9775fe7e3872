// The library's sources and its module: the PTX of the kernels that a program launches, with their Go references.

package library

import (
	"io/fs"
	"sync"

	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/library/cuda"
	"github.com/dagrun/dagrun/kernels/library/ptx"
)

//go:generate go run ./internal/makeptx

// Sources are the library's CUDA C files, for those who compile them with their own compiler.
func Sources() fs.FS { return cuda.Files }

// Module is the library's code: PTX with these entries (all of them, if none is named) and the Go references of every kernel.
// Names that the library does not have are ignored: looking them up in the loaded module fails.
func Module(entries ...string) *launch.Module {
	return &launch.Module{Name: "library", Kind: launch.PTX, Code: ptx.Entries(entries...), References: references()}
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
