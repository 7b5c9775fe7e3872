// Which package of kernels/ may import which.

package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// floorsOfKernels are the packages of kernels/ from the bottom up. A package imports only those on lower floors: kinds of kernels
// know nothing of one another, and kernels itself puts them together.
var floorsOfKernels = map[string]int{
	"kernels/library/ptx":                1, // the library's PTX
	"kernels/library/cuda":               1, // the library's CUDA C
	"kernels/source/internal/cache":      1, // compiled code on disk
	"kernels/source/internal/child":      1, // running a compiler in a process that dies with dagrun
	"kernels/source/nvrtc":               2, // NVIDIA's run-time compiler
	"kernels/source/clang":               2, // clang, without a toolkit
	"kernels/launch":                     1, // code that devices load, and what a launch gives to a kernel
	"kernels/internal/reference":         2, // how kernels in Go read arguments and split their work
	"kernels/internal/describe":          1, // checks of arguments, and numbers of blocks and threads
	"kernels/library":                    3, // the kernels that come with dagrun
	"kernels/library/internal/makeptx":   3, // the tool that compiles them
	"kernels/library/cubin":              1, // the library's machine code
	"kernels/library/internal/makecubin": 3, // the tool that makes it
	"kernels/calls":                      3, // functions of NVIDIA's libraries
	"kernels/conditions":                 3, // the kernel that decides about loops and branches
	"kernels/maps":                       3, // kernels made of expressions
	"kernels/source":                     3, // users' modules
	"kernels":                            4, // all of them together
}

func TestPackagesOfKernelsImportOnlyLowerFloors(t *testing.T) {
	all := packages(t)
	for name, imports := range all {
		if roomOf(name) != "kernels" {
			continue
		}
		floor, known := floorsOfKernels[name]
		assert.True(t, known, "%s has no floor", name)
		for other := range imports {
			if roomOf(other) == "kernels" {
				assert.Less(t, floorsOfKernels[other], floor, "%s imports %s, which is not below it", name, other)
			}
		}
	}
	for name := range floorsOfKernels {
		assert.NotNil(t, all[name], "no source was read in %s", name)
	}
}
