// Array files: what NumPy writes is read, what is written NumPy reads, and nothing is left half-written.

package runtime

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

func TestArraysReadBackAsWritten(t *testing.T) {
	dir := t.TempDir()
	for d := dag.F16; d <= dag.Bool; d++ {
		for _, shape := range [][]int64{{}, {0}, {6}, {2, 3}} {
			memory := make([]byte, count(shape)*d.Size())
			for i := range memory {
				memory[i] = byte(i & 1)
			}
			for _, name := range []string{"a.npy", "a.bin"} {
				file := filepath.Join(dir, name)
				require.NoError(t, writeArray(file, d, shape, memory))
				got := make([]byte, len(memory))
				require.NoError(t, readArray(file, d, shape, got), "%v %v", d, shape)
				require.Equal(t, memory, got)
			}
		}
	}
}

func TestArrayHeaderIsNumPys(t *testing.T) {
	got := npyHeader(dag.F32, []int64{3, 5})
	require.Equal(t, "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }", string(got[:10+59]))
	require.Zero(t, len(got)%64)
	require.Equal(t, byte('\n'), got[len(got)-1])
}

func TestArrayFilesThatDoNotFitAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	header := func(text string) string { return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), 0}) + text }
	for _, c := range []struct{ name, content, want string }{
		{"text.npy", "hello, world", "not a .npy file"},
		{"empty.npy", "", "not a .npy file"},
		{"version.npy", "\x93NUMPY\x09\x00", "version 9 of the .npy format is not known"},
		{"cut.npy", "\x93NUMPY\x01\x00\x40\x00{'descr", "the .npy header is cut short"},
		{"fortran.npy", header("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }"), "the array is in Fortran order; save it with numpy.ascontiguousarray"},
		{"struct.npy", header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"), "the .npy header names no plain element type (structured arrays are not supported)"},
		{"shape.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"), "has shape (3,), the buffer has (2,)"},
		{"type.npy", header("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"), `holds elements of type "<f8", the buffer has f32 ("<f4")`},
		{"big.npy", header("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"), `holds elements of type ">f4", the buffer has f32 ("<f4")`},
		{"short.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }") + "1234", "is too short: 4 bytes of data, the buffer has 8"},
		{"long.bin", "123456789", "is too long: more than the 8 bytes of the buffer"},
	} {
		err := readArray(write(c.name, c.content), dag.F32, []int64{2}, make([]byte, 8))
		require.ErrorContains(t, err, c.want, c.name)
	}
	require.ErrorIs(t, readArray(filepath.Join(dir, "missing.npy"), dag.F32, []int64{2}, make([]byte, 8)), os.ErrNotExist)
}

func TestAFailedWriteLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.npy")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	broken := errors.New("disk full")
	require.ErrorIs(t, WriteFile(file, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<21))
		require.NoError(t, err)
		return broken
	}), broken)
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "old", string(kept))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
