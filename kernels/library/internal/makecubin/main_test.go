// Tests that the committed machine code was made from the committed PTX, for the architecture that its file is named after.

package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/library/cubin"
)

// gpu is the number of NVIDIA's GPUs in the header of a file.
const gpu = 190

const again = "run `go run ./internal/makecubin` in kernels/library, on a machine with ptxas, or what `go build` makes of it there"

func TestMachineCodeBelongsToPTX(t *testing.T) {
	require.NotEmpty(t, cubin.Architectures())
	for _, architecture := range cubin.Architectures() {
		data, err := os.ReadFile("../../cubin/" + architecture + ".zip")
		require.NoError(t, err)
		archive, err := cubin.Read(data)
		require.NoError(t, err)
		assert.Contains(t, archive.Maker, "-arch="+architecture)
		kernels, err := wanted(architecture)
		require.NoError(t, err)
		var stale []string
		for _, k := range kernels {
			code := archive.Compiled(k)
			if code == nil {
				stale = append(stale, k.Entry)
				continue
			}
			checkCubin(t, k.Entry, code)
		}
		assert.Empty(t, stale, "%s.zip has no machine code for these kernels, or was made from other PTX: %s", architecture, again)
		assert.Equal(t, len(kernels), archive.Kernels(), "%s.zip has kernels that the library does not have: %s", architecture, again)
	}
}

// checkCubin checks that a file is one for GPUs and has the kernel.
func checkCubin(t *testing.T, name string, code []byte) {
	require.True(t, bytes.HasPrefix(code, []byte("\x7fELF")), name)
	assert.Equal(t, uint16(gpu), binary.LittleEndian.Uint16(code[18:]), name)
	assert.Contains(t, string(code), "\x00.text."+name+"\x00")
}
