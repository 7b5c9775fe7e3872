// Tests of kernels that run from their PTX: that every block runs, however many workers there are.

package host

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/launch"
)

func TestEveryBlockRunsFromPTX(t *testing.T) {
	const code = `.version 7.8
.target sm_70
.address_size 64
.visible .entry count(.param .u64 out)
{
.reg .pred %p1; .reg .b32 %r<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, 500;
LOOP: sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;
mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd2, %rd1, %rd2; red.global.add.u32 [%rd2], 1;
ret;
}
`
	const blocks = 3000 // far more than one worker runs before it would wake others
	for _, workers := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			b := newBench(t, Options{Workers: workers})
			m, err := b.Load(context.Background(), 0, &launch.Module{Name: "count.ptx", Kind: launch.PTX, Code: []byte(code)})
			require.NoError(t, err)
			k, err := m.Kernel("count")
			require.NoError(t, err)
			s := b.stream()
			memory := b.alloc(4 * blocks)
			from, host := b.host(4 * blocks)
			for i := range host {
				host[i] = 0
			}
			require.NoError(t, b.submit(toDevice(s, memory, from, 4*blocks),
				cudart.Command{Kind: cudart.LaunchKernel, Stream: s, Kernel: k, Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{32, 1, 1}, Args: []cudart.Value{pointer(memory, 4*blocks)}},
				toHost(s, from, memory, 4*blocks)))
			require.NoError(t, s.Synchronize(context.Background()))
			for i, v := range host {
				require.Equal(t, uint32(32), math.Float32bits(v), "block %d", i)
			}
			require.NoError(t, m.Close())
		})
	}
}
