// CUDA C on the CPU device: the first compiler that manages makes PTX of it.

package host

import (
	"context"

	"github.com/dagrun/dagrun/kernels"
)

// compileFunc makes PTX of a module's source.
type compileFunc func(m *kernels.Module) (*kernels.Compiled, error)

// compiledFor is what the CPU device runs, whatever the pipeline is planned for.
var compiledFor = kernels.Target{Capability: [2]int{9, 0}, PTX: true}

func compileWith(compilers *kernels.Compilers) compileFunc {
	return func(m *kernels.Module) (*kernels.Compiled, error) {
		return compilers.Compile(context.Background(), m, compiledFor)
	}
}

func warnings(log string) []string {
	if log == "" {
		return nil
	}
	return []string{log}
}
