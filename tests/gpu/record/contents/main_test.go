// Tests of looking for contents, on recordings made by hand.

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

func TestLook(t *testing.T) {
	piece := func(sequence, address uint64, value byte) recording.ContentsInfo {
		return recording.ContentsInfo{Sequence: sequence, Address: address, Bytes: 100, Data: bytes.Repeat([]byte{value}, 100)}
	}
	p := &recording.Process{Contents: []recording.ContentsInfo{piece(5, 1000, 7), piece(5, 1100, 7), piece(9, 1000, 9)}, Modules: []recording.ModuleInfo{{Code: []byte("code")}}}
	require.NoError(t, look(p, 1000, 200, 7))
	require.NoError(t, look(p, 1050, 20, 7))
	require.EqualError(t, look(p, 1000, 201, 7), "200 of 201 bytes are in the recording")
	require.EqualError(t, look(p, 1000, 200, 9), "byte 0 is 7, not 9")
	p.Contents[1].Data = nil
	require.EqualError(t, look(p, 1000, 200, 7), "of 100 bytes at 0x44c, 0 are in the recording")
	p.Modules = nil
	require.EqualError(t, look(p, 1000, 100, 7), "there is no code of 0 modules")
}
