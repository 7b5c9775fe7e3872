// Compiling CUDA C, as devices ask for it. The compilers are in kernels/source; who opens a device hands them in.

package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNoCompiler is the error where nothing that compiles CUDA C is installed.
var ErrNoCompiler = errors.New("there is no compiler for CUDA C")

// Compiler makes code of a module's Source.
type Compiler interface {
	Compile(ctx context.Context, m *Module, target Target) (*Compiled, error)
}

// Compile compiles a module with the compiler that a device was opened with, if it was opened with one.
func Compile(ctx context.Context, with Compiler, m *Module, target Target) (*Compiled, error) {
	if m == nil {
		return nil, errors.New("there is no module to compile")
	}
	if with == nil {
		return nil, fmt.Errorf("%s is CUDA C, and %w: the device was opened without Compilers in its Options", m.Name, ErrNoCompiler)
	}
	return with.Compile(ctx, m, target)
}

// Target says what code is wanted for.
type Target struct {
	Capability [2]int // of the device; zero stands for the CPU device
	PTX        bool   // PTX is wanted, also where a compiler makes code for the device itself
}

// Compiled is a source's code.
type Compiled struct {
	Kind         Kind // PTX or Cubin
	Code         []byte
	Symbols      map[string]string // of the kernels in Build.Names
	Compiler     string            // such as "clang 14.0.6"
	Architecture string
	Log          string   // warnings
	Skipped      []string // why compilers that come first were not used
	Cached       bool
}

// Origin says in a line how the code came about.
func (c *Compiled) Origin() string {
	if c == nil {
		return ""
	}
	text := "compiled for " + c.Architecture + " by " + c.Compiler
	if c.Cached {
		text += " earlier, from the cache"
	}
	if len(c.Skipped) > 0 {
		text += " (" + strings.Join(c.Skipped, "; ") + ")"
	}
	return text
}
