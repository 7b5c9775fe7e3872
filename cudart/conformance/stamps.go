// Tests of stamps: what the kernel that decides about loops and branches writes for a trace.

package conformance

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// stamps runs a loop with a branch in it, and compares what was stamped with what the loop does.
func stamps(r *rig) {
	const room, countBytes = 40, 2 * 8 * conditions.CountWords
	const logBytes = 8 * conditions.StampWords * room
	counts, err := r.p.Alloc(0, countBytes+2*logBytes)
	require.NoError(r, err)
	defer func() { require.NoError(r, r.p.Free(counts)) }()
	there, err := r.p.AllocHost(countBytes+2*logBytes, false)
	require.NoError(r, err)
	defer func() { require.NoError(r, r.p.Free(there)) }()
	words := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(r.p.HostBytes(there, countBytes+2*logBytes)))), (countBytes+2*logBytes)/8)
	fetch := cudart.Command{Kind: cudart.CopyMemory, Stream: r.s[0], Label: "stamps", Node: -1, Dst: there, DstDevice: -1, Src: counts,
		Bytes: countBytes + 2*logBytes}
	until := r.condition(fmt.Sprint("x < ", loopSmall))
	for _, each := range []int64{1, 3, 30} {
		for _, test := range []conditions.Test{
			{Times: 0, Every: 1}, {Times: 7, Every: 1}, {Condition: until, Times: 1000, Every: 3}, {Condition: until, While: true, Times: 2, Every: 1},
			{Times: 50, Every: 1},
		} {
			commands, deps := r.looped(test, counts)
			stamping := conditions.Stamping{Room: room, Each: each}
			loop := commands[1].Conditional
			loop.Stamping, loop.Stamps = stamping, counts+countBytes
			branch := loop.Bodies[0].Commands[1].Conditional
			branch.Stamping, branch.Stamps = stamping, counts+countBytes+logBytes
			g := r.graph(r.p.BuildGraph(append(commands, fetch), append(deps, []int32{1}), cudart.GraphOptions{Origin: r.s[0]}))
			for round := range uint32(2) {
				for i := range r.host {
					r.host[i] = uint32(i) + 7*round
				}
				require.NoError(r, g.Launch(r.s[1]))
				require.NoError(r, r.s[1].Synchronize(context.Background()))
				all := append([]uint32(nil), r.host...)
				counted := follow(all, test)
				require.Equal(r, all, r.back)
				passes, held := counted[conditions.CountPasses], counted[conditions.CountWords+conditions.CountHeld]
				want := []int64{conditions.StampBegun}
				for pass := int64(1); pass <= min(passes, each); pass++ {
					want = append(want, pass)
				}
				if passes > each {
					want = append(want, passes)
				}
				require.Equal(r, int64(len(want)), words[conditions.CountStamps], "%+v", test)
				require.Equal(r, want, r.stamped(words[countBytes/8:], int64(len(want))))
				require.Equal(r, 2*passes, words[conditions.CountWords+conditions.CountStamps], "a branch stamps twice")
				stamped := r.stamped(words[(countBytes+logBytes)/8:], min(room, 2*passes))
				for k, what := range stamped {
					if k%2 == 1 {
						require.Equal(r, int64(1), what)
					} else if what == conditions.StampHeld {
						held--
					} else {
						require.Equal(r, int64(conditions.StampOtherwise), what)
					}
				}
				if 2*passes <= room {
					require.Zero(r, held)
				}
			}
		}
	}
	commands, deps := r.looped(conditions.Test{Times: 1, Every: 1}, counts)
	commands[1].Conditional.Stamping.Room = 5
	_, err = r.p.BuildGraph(commands, deps, cudart.GraphOptions{Origin: r.s[0]})
	require.ErrorContains(r, err, "it has no memory for its stamps")
}

// stamped returns what so many stamps tell, and checks that their times do not go back.
func (r *rig) stamped(words []int64, count int64) []int64 {
	what := []int64{}
	for k := range int(count) {
		require.True(r, k == 0 || words[2*k] >= words[2*k-2], "stamp %d is from before the one before it", k)
		what = append(what, words[2*k+1])
	}
	return what
}
