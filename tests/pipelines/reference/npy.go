// The .npy format, written by hand: float32, since the buffers are.

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

func npy(values []float64, shape []int) []byte {
	var dims strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&dims, "%d,", n)
	}
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", dims.String())
	header += strings.Repeat(" ", 63-(len(header)+10)%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out = append(out, header...)
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
	}
	return out
}
