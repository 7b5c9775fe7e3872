//go:build unix

// Tests of whole pages of memory.

package host

import (
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// What is reserved is whole pages of zeros, as few as hold the bytes, all of which can be written.
func TestReservedPagesHoldTheBytes(t *testing.T) {
	page := int64(os.Getpagesize())
	for _, guards := range []bool{false, true} {
		for bytes, pages := range map[int64]int64{0: 1, 1: 1, page - 1: 1, page: 1, page + 1: 2, 2 * page: 2, 5*page + 1: 6} {
			p, err := reserve(bytes, guards)
			require.NoError(t, err)
			require.EqualValues(t, pages*page, p.size, fmt.Sprint(bytes, guards))
			require.Equal(t, make([]byte, p.size), unsafe.Slice((*byte)(p.data), p.size))
			*(*byte)(p.data), *(*byte)(unsafe.Add(p.data, p.size-1)) = 1, 1
			require.NoError(t, p.release())
		}
	}
}
