// CUDA C on the CPU device: the first compiler that is there makes PTX of it.

package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/source/clang"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
)

// errNoCompiler is the error for CUDA C where nothing compiles it.
var errNoCompiler = errors.New("there is no compiler for CUDA C")

// compileFunc makes PTX of a module's source.
type compileFunc func(m *kernels.Module) (text []byte, warnings []string, err error)

// compilers are those that may be installed; each is looked for when it is first needed.
type compilers struct {
	nvrtc nvrtc.Lazy
	clang clang.Lazy
}

// newestPTX is the architecture that sources are compiled for: what the CPU device runs of a newer one is not known.
var newestPTX = [2]int{9, 0}

func (c *compilers) compile(m *kernels.Module) ([]byte, []string, error) {
	if compiler, err := c.nvrtc.Get(); err == nil {
		r, err := compiler.Compile(context.Background(), nvrtc.Source{Name: m.Name, Path: m.Path, Code: m.Code, Capability: newestPTX, PTX: true,
			Options: []string{"--generate-line-info"}})
		if err != nil {
			return nil, nil, err
		}
		return r.Code, warnings(r.Log), nil
	}
	return c.withClang(m)
}

func (c *compilers) withClang(m *kernels.Module) ([]byte, []string, error) {
	compiler, err := c.clang.Get()
	if err != nil {
		return nil, nil, fmt.Errorf("%s is CUDA C, and %w: install the package clang (version 14 or newer) or NVIDIA's libnvrtc, or register Go implementations of its kernels",
			m.Name, errNoCompiler)
	}
	r, err := compiler.Compile(context.Background(), clang.Source{Name: m.Name, Path: m.Path, Code: m.Code, Capability: newestPTX})
	if err != nil {
		return nil, nil, err
	}
	return r.PTX, warnings(r.Log), nil
}

func warnings(log string) []string {
	if log == "" {
		return nil
	}
	return []string{log}
}
