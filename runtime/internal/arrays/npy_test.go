// Tests of array files: we read what NumPy writes, and NumPy reads what we write.

package arrays

import (
	"os"
	"path/filepath"
	"strings"
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
				require.NoError(t, Files{}.Write(t.Context(), file, d, shape, memory))
				got := make([]byte, len(memory))
				require.NoError(t, Files{}.read(t.Context(), file, d, shape, got), "%v %v", d, shape)
				require.Equal(t, memory, got)
			}
		}
	}
}

func TestArrayHeaderIsNumPys(t *testing.T) {
	got, err := npyHeader(dag.F32, []int64{3, 5})
	require.NoError(t, err)
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
	header := func(text string) string {
		return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), byte(len(text) >> 8)}) + text
	}
	for _, c := range []struct{ name, content, want string }{
		{"text.npy", "hello, world", "not a .npy file"},
		{"empty.npy", "", "not a .npy file"},
		{"version.npy", "\x93NUMPY\x09\x00", "version 9 of the .npy format is unknown"},
		{"cut.npy", "\x93NUMPY\x01\x00\x40\x00{'descr", "the .npy header is incomplete"},
		{"fortran.npy", header("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }"), "the array is in Fortran order; save it with numpy.ascontiguousarray"},
		{"struct.npy", header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"), "the .npy header has no plain element type (structured arrays are not supported)"},
		{"shape.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"), "has shape (3,), but the buffer has (2,)"},
		{"type.npy", header("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"), `has elements of type "<f8", but the buffer has f32 ("<f4"); in NumPy, a.astype("<f4") converts an array a`},
		{"big.npy", header("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"), `has elements of type ">f4", but the buffer has f32 ("<f4"); in NumPy, a.astype("<f4") converts an array a`},
		{"inside.npy", header("{'comment': \"'descr': '<f4'\", 'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"), `the .npy header has the unknown key "comment"`},
		{"value.npy", header("{'shape': (2,), 'fortran_order': False, 'descr': \"'descr': '<f4'\"}"), `has elements of type "'descr': '<f4'", but the buffer has f32 ("<f4")`},
		{"nested.npy", header("{'descr': {'descr': '<f4'}, 'fortran_order': False, 'shape': (2,), }"), "the .npy header has no plain element type (structured arrays are not supported)"},
		{"twice.npy", header("{'descr': '<f8', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"), `the .npy header is damaged: the key "descr" appears twice`},
		{"number.npy", header("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }"), "the .npy header does not say whether the array is in Fortran order"},
		{"noshape.npy", header("{'descr': '<f4', 'fortran_order': False}"), "the .npy header has no shape"},
		{"notuple.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (2)}"), "the .npy header has no shape"},
		{"minus.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -1)}"), "the .npy header has a bad shape: dimension 1 is not a size"},
		{"huge.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"), "the .npy header is damaged: 99999999999999999999 is not a 64-bit integer"},
		{"digits.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + strings.Repeat("1", 50_000) + ",)}"), "the .npy header is damaged: 11111111111111111111... (50000 characters) is not a 64-bit integer"},
		{"element.npy", header("{'descr': '" + strings.Repeat("x", 50_000) + "', 'fortran_order': False, 'shape': (2,)}"), "has elements of type \"xxxxxxxxxxxxxxxxxxxx... (50000 characters)\""},
		{"keys.npy", header("{'" + strings.Repeat("k", 50_000) + "': 1, 'fortran_order': False, 'shape': (2,)}"), "unknown key \"kkkkkkkkkkkkkkkkkkkk... (50000 characters)\""},
		{"again.npy", header("{'" + strings.Repeat("k", 20_000) + "': 1, '" + strings.Repeat("k", 20_000) + "': 1}"), "the key \"kkkkkkkkkkkkkkkkkkkk... (20000 characters)\" appears twice"},
		{"dims.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + strings.Repeat("1,", 20_000) + ")}"), "the .npy header is damaged: an array has at most 64 dimensions, but the shape has 20000"},
		{"list.npy", header("[1, 2]"), "the .npy header is damaged: it is not a dictionary"},
		{"after.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} \x1b[31m"), `the .npy header is damaged: unexpected '\x1b' at byte 56`},
		{"open.npy", header("{'descr': '<f4"), "the .npy header is damaged: a string has no end"},
		{"unended.npy", header("{'descr': '<f4', "), "the .npy header is damaged: it ends in the middle of a value"},
		{"escape.npy", header(`{'descr': '\x3cf4'}`), "the .npy header is damaged: unexpected 'x' at byte 12"},
		{"key.npy", header(`{1: 2}`), "the .npy header is damaged: a key is not a string"},
		{"deep.npy", header(strings.Repeat("[", 200)), "the .npy header is damaged: it is nested too deeply"},
		{"commas.npy", header("{'descr': '<f4' 'fortran_order': False}"), "the .npy header is damaged: unexpected '\\'' at byte 16"},
		{"short.npy", header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }") + "1234", "is too short: it has 4 bytes of data, but the buffer has 8"},
		{"long.bin", "123456789", "is too long: it has more data than the 8 bytes of the buffer"},
	} {
		err := Files{}.read(t.Context(), write(c.name, c.content), dag.F32, []int64{2}, make([]byte, 8))
		require.ErrorContains(t, err, c.want, c.name)
	}
	require.ErrorIs(t, Files{}.read(t.Context(), filepath.Join(dir, "missing.npy"), dag.F32, []int64{2}, make([]byte, 8)), os.ErrNotExist)
}

// Of a file outside of the pipeline's folder nothing is quoted.
func TestArrayHeadersOutside(t *testing.T) {
	dir := t.TempDir()
	text := "{'descr': 'hunter2', 'fortran_order': False, 'shape': (2,), }"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.npy"), append([]byte(npyMagic+"\x01\x00"), string(rune(len(text)))+"\x00"+text...), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "in"), 0o755))
	err := Files{Dir: filepath.Join(dir, "in")}.read(t.Context(), "../x.npy", dag.F32, []int64{2}, make([]byte, 8))
	require.EqualError(t, err, filepath.Join(dir, "x.npy")+" is no .npy file of elements of type f32 and shape (2,); more is not shown, because it is outside of the pipeline's folder")
	err = Files{Dir: dir}.read(t.Context(), "x.npy", dag.F32, []int64{2}, make([]byte, 8))
	require.EqualError(t, err, filepath.Join(dir, "x.npy")+` has elements of type "hunter2", but the buffer has f32 ("<f4")`)
}

// A header is a Python literal, in any valid spelling.
func TestArrayHeadersAreLiterals(t *testing.T) {
	for _, text := range []string{
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
		`{"shape":(2,3),"descr":"<f4","fortran_order":False}`,
		"{ 'shape' : ( 2L , 3L ) ,\n\t'fortran_order' : (False), 'descr' : ('<f4') }",
	} {
		descr, shape, err := parseNpyHeader(text)
		require.NoError(t, err, text)
		require.Equal(t, "<f4", descr)
		require.Equal(t, []int64{2, 3}, shape)
	}
	descr, shape, err := parseNpyHeader(`{'descr': '\'\\', 'fortran_order': False, 'shape': ()}`)
	require.NoError(t, err)
	require.Equal(t, `'\`, descr)
	require.Empty(t, shape)
}

func FuzzArrayHeader(f *testing.F) {
	for _, seed := range []string{"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "{'descr': [('a', '<f4')]}", "{1: None}", "((((", "'\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, shape, err := parseNpyHeader(text)
		for _, n := range shape {
			require.True(t, err == nil && n >= 0)
		}
	})
}
