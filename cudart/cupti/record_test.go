// Tests of decoding invalid records: nothing is read past their end.

package cupti

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCutRecordsAreNotRead(t *testing.T) {
	for _, kind := range []uint32{activityCopy, activityPeerCopy, activitySet, activityKernel, activityConcurrentKernel} {
		f := sinceGraphs[kind]
		memory := make([]byte, f.size)
		binary.LittleEndian.PutUint32(memory, kind)
		binary.LittleEndian.PutUint64(memory[f.start:], 1)
		binary.LittleEndian.PutUint64(memory[f.end:], 2)
		for n := range memory {
			_, ok := layouts[0].decode(memory[:n:n])
			require.False(t, ok, "kind %d, %d bytes", kind, n)
		}
		r, ok := layouts[0].decode(memory)
		require.True(t, ok, "kind %d", kind)
		require.Equal(t, f.kind, r.Kind)
		binary.LittleEndian.PutUint64(memory[f.end:], 0)
		_, ok = layouts[0].decode(memory)
		require.False(t, ok, "ends before it starts")
	}
}
