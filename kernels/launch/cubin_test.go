package launch

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Kernels with more than 4 KiB of parameters list them in records of another form.
func TestLargeParametersOfCubins(t *testing.T) {
	le := binary.LittleEndian
	record := func(attribute byte, ordinal, offset uint16, size uint32) []byte {
		b := le.AppendUint32([]byte{4, attribute, 12, 0}, 0)
		return le.AppendUint32(le.AppendUint16(le.AppendUint16(b, ordinal), offset), size)
	}
	large := append(record(0x45, 1, 32_000, 8|0x0500<<16), record(0x45, 0, 0, 32_000)...)
	assert.Equal(t, []int32{32_000, 8}, cubinSizes(large, le))
	assert.Equal(t, []int32{4, 8}, cubinSizes(append(record(0x17, 1, 8, 8<<18|0x1f000), record(0x17, 0, 0, 4<<18)...), le))
	assert.Nil(t, cubinSizes(record(0x45, 1, 0, 8), le), "the first parameter is missing")
	assert.Empty(t, cubinSizes(nil, le))
}
