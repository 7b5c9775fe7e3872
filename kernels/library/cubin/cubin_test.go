// Tests of which machine code a GPU gets, and of archives.

package cubin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGPUsGetTheCodeThatTheyRun(t *testing.T) {
	all := []string{"sm_72", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "notes"}
	for _, c := range []struct {
		major, minor int
		want         string
	}{
		{7, 0, ""},
		{7, 2, "sm_72"},
		{7, 5, "sm_75"},
		{8, 0, "sm_80"},
		{8, 6, "sm_86"},
		{8, 7, ""}, // a system on a chip
		{8, 9, "sm_86"},
		{9, 0, "sm_90"},
		{10, 0, "sm_100"},
		{10, 3, "sm_100"},
		{11, 0, ""},
		{12, 1, "sm_120"},
		{0, 0, ""},
		{-1, 3, ""},
	} {
		assert.Equal(t, c.want, choose(all, [2]int{c.major, c.minor}), "%d.%d", c.major, c.minor)
	}
	assert.Nil(t, For([2]int{5, 2}))
	assert.Equal(t, "sm_90", For([2]int{9, 0}).Architecture)
}

func TestMachineCodeOfOtherPTXIsNotUsed(t *testing.T) {
	ptx := []byte("ptx")
	blur := Made{Entry: "blur", Waits: true, PTX: ptx, Text: []byte("ptx that waits"), Code: []byte("blurs and waits")}
	noop := Made{Entry: "noop", PTX: ptx, Text: ptx, Code: []byte("does nothing")}
	wait := Made{Entry: "noop", Waits: true, PTX: ptx, Text: []byte("ptx that waits"), Code: []byte("does nothing and waits")}
	data, err := Write("a compiler", []Made{blur, noop, wait})
	require.NoError(t, err)
	a, err := Read(data)
	require.NoError(t, err)
	assert.Equal(t, "a compiler", a.Maker)
	assert.Equal(t, 3, a.Kernels())
	a.Architecture = "sm_90"

	for _, waiting := range []bool{false, true} {
		code, waits, err := a.Kernel("blur", ptx, waiting)
		require.NoError(t, err)
		assert.Equal(t, blur.Code, code)
		assert.True(t, waits)
		code, waits, err = a.Kernel("noop", ptx, waiting)
		require.NoError(t, err)
		assert.Equal(t, map[bool][]byte{false: noop.Code, true: wait.Code}[waiting], code)
		assert.Equal(t, waiting, waits)
	}
	_, _, err = a.Kernel("blur", []byte("other ptx"), false)
	require.EqualError(t, err, "the machine code of blur was made from other PTX")
	_, _, err = a.Kernel("edges", ptx, false)
	require.EqualError(t, err, "edges has no machine code for sm_90")

	assert.Equal(t, blur.Code, a.Compiled(blur))
	for _, k := range []Made{{Entry: "blur", PTX: ptx, Text: blur.Text}, {Entry: "blur", Waits: true, PTX: ptx, Text: ptx}, {Entry: "blur", Waits: true, PTX: blur.Text, Text: blur.Text}} {
		assert.Nil(t, a.Compiled(k))
	}
	assert.Nil(t, new(Archive).Compiled(blur))

	again, err := Write("a compiler", []Made{blur, noop, wait})
	require.NoError(t, err)
	assert.Equal(t, data, again, "the same kernels make the same file")
}

// Damaged archives give an error, or kernels that are unpacked with an error.
func TestDamagedArchives(t *testing.T) {
	blur := Made{Entry: "blur", PTX: []byte("ptx"), Text: []byte("ptx"), Code: []byte("machine code, machine code, machine code")}
	data, err := Write("", []Made{blur})
	require.NoError(t, err)
	for k := range data {
		damaged := append([]byte(nil), data...)
		damaged[k] ^= 0x55
		if a, err := Read(damaged); err == nil {
			if code, _, err := a.Kernel("blur", blur.PTX, false); err == nil {
				assert.Equal(t, blur.Code, code, "byte %d", k)
			}
		}
		_, _ = Read(data[:k]) // must not panic
	}
}
