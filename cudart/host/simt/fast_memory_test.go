// Tests of the loops over the lanes of a warp: they take what fits and is aligned, leave all else to the general way, and change no lane that does
// not run.

package simt

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/ptx"
)

// loopMasks are sets of lanes: all, few, as many as loops are worth it for, and some here and there.
var loopMasks = []uint32{fullMask, 1, 1 << 31, 0xf, 0x1f, 0xaaaaaaaa, 0x7fffffff, 0xfffffffe, 0x80000001}

// loopExec is a warp's registers: those of slot k hold 1000 k and the number of the lane.
func loopExec(slots int) *exec {
	x := &exec{block: &block{}}
	for k := range slots {
		x.s = append(x.s, &lanes{})
		for i := range x.s[k] {
			x.s[k][i] = uint64(1000*k + i)
		}
	}
	return x
}

func TestLoopsChangeOnlyTheLanesThatRun(t *testing.T) {
	for _, m := range loopMasks {
		general := 0
		count := func(x *exec, lanes uint32) {
			general++
			require.Equal(t, m, lanes)
			for ; lanes != 0; lanes &= lanes - 1 {
				x.s[0][bits.TrailingZeros32(lanes)] = 7
			}
		}
		for sources, run := range []op{
			loop1(func(D, A *lanes) {
				for i := range D {
					D[i] = A[i] + 5
				}
			}).op(0, 1, count),
			loop2(func(D, A, B *lanes) {
				for i := range D {
					D[i] = A[i] + B[i]
				}
			}).op(0, 1, 2, count),
			loop3(func(D, A, B, C *lanes) {
				for i := range D {
					D[i] = A[i] + B[i] + C[i]
				}
			}).op(0, 1, 2, 3, count),
		} {
			x := loopExec(4)
			before := general
			run(x, m)
			few := bits.OnesCount32(m) < fewLanes
			require.Equal(t, few, general > before, "%#x", m)
			for i, got := range x.s[0] {
				want := []int{1000 + i + 5, 1000 + i + 2000 + i, 1000 + i + 2000 + i + 3000 + i}[sources]
				if few {
					want = 7
				}
				if m>>i&1 == 0 {
					want = i
				}
				require.EqualValues(t, want, got, "lane %d of %#x", i, m)
			}
		}
	}
}

// placed are addresses of lanes in memory that has room for each of them, by the bytes that a lane accesses; bad is a lane whose address is wrong by some
// bytes, or -1.
type placed struct {
	bad   int
	wrong int64
}

func loopsOfMemory[T word](t *testing.T) {
	size := int(unsafe.Sizeof(T(0)))
	for _, n := range []int{1, 2, 4} {
		each := size * n
		for _, shared := range []bool{false, true} {
			for _, m := range loopMasks {
				last := 31 - bits.LeadingZeros32(m)
				for _, c := range []placed{{-1, 0}, {firstLane(m), -int64(each)}, {last, int64(each)}, {last, int64(each) * 1000}, {firstLane(m), 1}, {last, int64(each / 2)}, {last, int64(each) - 1}} {
					if c.bad >= 0 && c.wrong == 0 || c.bad >= 0 && each == 1 && c.wrong == 1 || c.wrong == int64(each/2) && each < 2 {
						continue
					}
					name := fmt.Sprintf("%d of %d bytes, shared %v, lanes %#x, %+v", n, size, shared, m, c)
					room := make([]byte, each*warpSize+16)
					start := uintptr(unsafe.Pointer(unsafe.SliceData(room)))
					memory := room[(-start)&15:][:each*warpSize]
					for i := range memory {
						memory[i] = byte(i*7 + 3)
					}
					x := loopExec(2 + n)
					lo := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
					at := located{base: 0, offset: 16, space: ptx.Global, near: 1}
					x.near[1] = span{lo, lo + uint64(len(memory))}
					if shared {
						at.space, lo, x.block.shared = ptx.Shared, 0, memory
					}
					for i := range x.s[0] {
						x.s[0][i] = lo + uint64(each*i) - 16
						if i == c.bad {
							if c.wrong < 0 {
								x.s[0][i] = lo - 16
							} else if int64(i)*int64(each)+c.wrong < int64(len(memory)) && c.wrong%int64(each) == 0 {
								x.s[0][i] = lo + uint64(len(memory)) - 16 // the lane is not the last of all
							}
							x.s[0][i] += uint64(c.wrong)
						}
					}
					var slots []int
					for k := range n {
						slots = append(slots, 1+k)
					}
					general := 0
					count := func(*exec, uint32) { general++ }
					before := append([]byte(nil), memory...)
					fastLoad(at, slots, size, count)(x, m)
					require.Equal(t, c.bad >= 0, general == 1, "load "+name)
					value := func(b []byte, k int) uint64 {
						var word [8]byte
						copy(word[:], b[k*size:][:size])
						return binary.LittleEndian.Uint64(word[:])
					}
					for i := range warpSize {
						for k := range n {
							if c.bad < 0 && m>>i&1 != 0 {
								require.Equal(t, value(memory[i*each:], k), x.s[1+k][i], "load "+name)
							} else if m>>i&1 == 0 {
								require.EqualValues(t, 1000*(1+k)+i, x.s[1+k][i], "load "+name)
							}
						}
					}
					x.s = append(x.s[:1:1], loopExec(1 + n).s[1:]...)
					general = 0
					fastStore(at, slots, size, count)(x, m)
					require.Equal(t, c.bad >= 0, general == 1, "store "+name)
					for i := range warpSize {
						for k := range n {
							switch {
							case m>>i&1 == 0:
								require.Equal(t, value(before[i*each:], k), value(memory[i*each:], k), "store "+name)
							case c.bad < 0:
								require.Equal(t, uint64(T(1000*(1+k)+i)), value(memory[i*each:], k), "store "+name)
							}
						}
					}
				}
			}
		}
	}
}

func TestLoopsOfMemoryTakeWhatFits(t *testing.T) {
	loopsOfMemory[uint8](t)
	loopsOfMemory[uint16](t)
	loopsOfMemory[uint32](t)
	loopsOfMemory[uint64](t)
}

// Loops do not run where accesses are noted, where a target is the address of what follows, or where memory has no room at all.
func TestLoopsOfMemoryAreLeftOut(t *testing.T) {
	general := 0
	count := func(*exec, uint32) { general++ }
	taken := func(run op, x *exec, m uint32) bool {
		general = 0
		run(x, m)
		return general == 0
	}
	memory := make([]uint64, 64)
	lo := uint64(uintptr(unsafe.Pointer(&memory[0])))
	warpOf := func(address uint64, bytes uint64) *exec {
		x := loopExec(3)
		for i := range x.s[0] {
			x.s[0][i] = address + 4*uint64(i)
		}
		x.near[0] = span{lo, lo + bytes}
		x.block.shared = unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), bytes)
		return x
	}
	for _, space := range []ptx.Space{ptx.Global, ptx.Shared, ptx.Generic, ptx.Local, ptx.Const} {
		for window, base := range map[string]uint64{"global": lo, "shared": 0, "shared, generic": inShared, "local, generic": inLocal} {
			fits := space == ptx.Global && window == "global" || space == ptx.Shared && window == "shared" || space == ptx.Generic && (window == "global" || window == "shared, generic")
			at := located{space: space}
			for _, run := range []op{fastLoad(at, []int{1}, 4, count), fastStore(at, []int{1}, 4, count)} {
				require.Equal(t, fits, taken(run, warpOf(base, 512), fullMask), "%v at an address of %s", space, window)
				require.False(t, taken(run, warpOf(base, 3), 1), "%v: there is no room", space)
				require.Equal(t, fits, taken(run, warpOf(base, 4), 1), "%v: there is just room", space)
				x := warpOf(base, 512)
				x.check = &checker{level: CheckFast}
				require.False(t, taken(run, x, fullMask>>1), "%v: accesses are noted", space)
			}
			at.kind = silent
			require.False(t, taken(fastLoad(at, []int{1}, 4, count), warpOf(base, 512), fullMask))
			require.False(t, taken(fastStore(at, []int{1}, 4, count), warpOf(base, 512), fullMask))
			require.False(t, taken(fastLoad(located{space: space}, []int{1, 0}, 4, count), warpOf(base, 512), fullMask), "the second target is the address")
			require.False(t, taken(fastLoad(located{space: space}, []int{1, 2, 2}, 4, count), warpOf(base, 512), fullMask), "there is no loop for three")
			require.False(t, taken(fastStore(located{space: space}, []int{1, 2, 2}, 4, count), warpOf(base, 512), fullMask), "there is no loop for three")
		}
	}
	parameter := located{space: ptx.Param, same: true, offset: 8, find: func(_ *exec, a uint64, size, lane int) unsafe.Pointer {
		require.Equal(t, [2]int{4, 0}, [2]int{size, lane})
		return unsafe.Add(unsafe.Pointer(&memory[0]), a)
	}}
	memory[1] = 0x1_0000_0007
	x := warpOf(0, 512)
	run := fastLoad(parameter, []int{1}, 4, count)
	require.True(t, taken(run, x, fullMask))
	for i := range x.s[1] {
		require.EqualValues(t, 7, x.s[1][i])
	}
	require.False(t, taken(run, x, 0x7fffffff))
	require.False(t, taken(run, warpOf(2, 512), fullMask), "it is not aligned")
	x.check = &checker{}
	require.False(t, taken(run, x, fullMask))
	require.False(t, taken(fastLoad(parameter, []int{1, 2}, 4, count), warpOf(0, 512), fullMask))
}

// Atomic additions of a warp add once for each lane and return what was there; where one lane does not fit, nothing changes.
func TestAdditionsOfAWarp(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, space := range []ptx.Space{ptx.Global, ptx.Shared, ptx.Generic} {
			if shared == (space == ptx.Global) && space != ptx.Generic {
				continue
			}
			for _, target := range []int{-1, 2} {
				for _, m := range loopMasks {
					for _, wrong := range []int64{0, 1, 2, -4, 400} {
						memory := make([]uint32, 36)
						x := loopExec(3)
						lo := uint64(uintptr(unsafe.Pointer(&memory[2])))
						at := located{space: space, offset: 8}
						if shared {
							x.block.shared = unsafe.Slice((*byte)(unsafe.Pointer(&memory[2])), 4*16)
							lo = 0
							if space == ptx.Generic {
								lo = inShared
							}
						} else {
							x.near[0] = span{lo, lo + 4*16}
						}
						last := 31 - bits.LeadingZeros32(m)
						for i := range x.s[0] {
							x.s[0][i] = lo - 8 + 4*uint64(i/2) // two lanes add to each word
							if i == last {
								x.s[0][i] += uint64(wrong)
								if wrong == -4 {
									x.s[0][i] = lo - 8 - 4
								}
							}
						}
						fits := wrong == 0
						if wrong == -4 && lo == inShared {
							continue // below the window is another one
						}
						require.Equal(t, fits, x.fastAdd(&at, target, 1, m), "%v, lanes %#x, wrong by %d", space, m, wrong)
						sums := make([]uint32, 36)
						for i := range warpSize {
							was := uint64(2000 + i)
							if fits && m>>i&1 != 0 {
								if target >= 0 {
									was = uint64(sums[2+i/2])
								}
								sums[2+i/2] += uint32(1000 + i)
							}
							require.Equal(t, was, x.s[2][i], "lane %d of %#x", i, m)
						}
						require.Equal(t, sums, memory)
					}
				}
			}
		}
	}
	x := loopExec(3)
	require.False(t, x.fastAdd(&located{space: ptx.Global}, -1, 1, 1), "there is no room")
}
