// CUDA C on the CPU device: the compiler that the device was opened with makes PTX of it.

package host

import (
	"context"

	"github.com/dagrun/dagrun/kernels/launch"
)

// compileFunc makes PTX of a module's source.
type compileFunc func(m *launch.Module) (*launch.Compiled, error)

// compiledFor is what the CPU device runs, whatever the pipeline is planned for.
var compiledFor = launch.Target{Capability: [2]int{9, 0}, PTX: true}

func compileWith(compiler launch.Compiler) compileFunc {
	return func(m *launch.Module) (*launch.Compiled, error) {
		return launch.Compile(context.Background(), compiler, m, compiledFor)
	}
}

func warnings(log string) []string {
	if log == "" {
		return nil
	}
	return []string{log}
}
