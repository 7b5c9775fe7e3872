//go:build unix

// Tests of headers that never end or never begin: devices and FIFOs.

package source

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/launch"
)

func TestDevicesAreNoHeaders(t *testing.T) {
	folder := t.TempDir()
	source, fifo, zero := filepath.Join(folder, "a.cu"), filepath.Join(folder, "fifo.h"), filepath.Join(folder, "zero.h")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.NoError(t, os.Symlink("/dev/zero", zero))
	for _, header := range []string{fifo, zero} {
		code := []byte("\n#include \"" + filepath.Base(header) + "\"\n__global__ void f(float *x) { x[0] = 1; }\n")
		_, err := Open("m", source, code, Options{ReadFile: os.ReadFile})
		assert.EqualError(t, err, `module "m": `+source+":2: "+header+" is not a regular file")
		_, err = new(Compilers).Compile(context.Background(), &launch.Module{Name: source, Path: source, Kind: launch.Source, Code: code}, launch.Target{})
		assert.EqualError(t, err, source+":2: "+header+" is not a regular file")
	}
}

// Conditions are ignored where what a source includes is hashed.
func TestDevicesAreNotHashed(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(folder, "zero.h")))
	c := withClang(t)
	c.Clang.Options.Cache = t.TempDir()
	path := filepath.Join(folder, "a.cu")
	module := &launch.Module{Name: path, Path: path, Kind: launch.Source, Build: launch.Build{Compiler: "clang", Names: []string{"f"}},
		Code: []byte("#if 0\n#include \"zero.h\"\n#endif\n__global__ void f(float *x) { x[0] = 1; }\n")}
	for range 2 {
		r, err := c.Compile(context.Background(), module, launch.Target{})
		require.NoError(t, err)
		assert.False(t, r.Cached)
	}
}
