// Tests of memory: limits, misuse, guard bands, use after free, and access between devices.

package host

import (
	"context"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
)

// requireError checks both the sentinel that callers branch on and the message that people read.
func requireError(t require.TestingT, err error, code status, text string) *cudart.Error {
	var e *cudart.Error
	require.ErrorAs(t, err, &e)
	name, _ := code.describe()
	require.Equal(t, name, e.Name, "%v", err)
	require.Equal(t, int(code), e.Code)
	require.Contains(t, err.Error(), text)
	return e
}

func TestMemoryLimit(t *testing.T) {
	b := newBench(t, Options{Memory: 1 << 20, Devices: 2})
	p, err := b.Alloc(0, 1000)
	require.NoError(t, err)
	free, total, err := b.MemoryInfo(0)
	require.NoError(t, err)
	require.Equal(t, [2]int64{1<<20 - 1024, 1 << 20}, [2]int64{free, total})
	_, err = b.Alloc(0, 1<<20)
	require.EqualError(t, err, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory: 1048576 bytes were requested; 1047552 of 1048576 are free")
	require.ErrorIs(t, err, cudart.ErrOutOfMemory)
	whole, err := b.Alloc(1, 1<<20)
	require.NoError(t, err, "each device has its own memory")
	require.NoError(t, b.Free(whole))
	require.NoError(t, b.Free(p))
	whole, err = b.Alloc(0, 1<<20)
	require.NoError(t, err)
	require.NoError(t, b.Free(whole))
	_, err = b.AllocHost(math.MaxInt64-4096, false)
	require.ErrorIs(t, err, cudart.ErrOutOfMemory)
	for _, call := range []func() error{
		func() error { _, err := b.Alloc(0, -1); return err },
		func() error { _, err := b.AllocHost(-1, true); return err },
	} {
		requireError(t, call(), invalidValue, "-1 bytes")
	}
	_, err = b.Alloc(7, 1)
	requireError(t, err, invalidDevice, "there are 2 CPU devices")
	_, _, err = b.MemoryInfo(-1)
	requireError(t, err, invalidDevice, "")
}

func TestAllocationsAreAlignedAndApart(t *testing.T) {
	for _, seed := range []uint64{0, 5} {
		b := newBench(t, Options{Perturb: seed})
		seen := map[cudart.Ptr]bool{}
		for _, bytes := range []int64{0, 0, 1, 255, 256, 257, 4095, 4096, 4097, 1 << 20} {
			p := b.alloc(bytes)
			require.Zero(t, p%alignment)
			require.False(t, seen[p])
			seen[p] = true
			h, f := b.host(bytes)
			require.Zero(t, h%alignment)
			require.Len(t, f, int(bytes/4))
			if seed != 0 && len(f) > 0 {
				require.NotZero(t, f[0], "fresh memory holds garbage")
			}
		}
	}
}

func TestFree(t *testing.T) {
	b := newBench(t, Options{})
	p, err := b.Alloc(0, 512)
	require.NoError(t, err)
	requireError(t, b.Free(p+256), invalidValue, "the address is 256 bytes into 512 bytes of memory of device 0, not their start")
	require.NoError(t, b.Free(p))
	requireError(t, b.Free(p), invalidValue, "the address belonged to 512 bytes of memory of device 0, which were freed")
	requireError(t, b.Free(12345), invalidValue, "the address belongs to no allocation")
	require.NoError(t, b.Free(0))
	for range 3 * quarantined {
		p, err := b.Alloc(0, 100)
		require.NoError(t, err)
		require.NoError(t, b.Free(p))
	}
	require.Len(t, b.memory.graves, quarantined)
	require.Equal(t, 0, b.Live().Memory)
}

func TestRegisteredMemory(t *testing.T) {
	b := newBench(t, Options{})
	own := make([]byte, 4096)
	_, err := b.RegisterHost(nil)
	requireError(t, err, invalidValue, "")
	p, err := b.RegisterHost(own)
	require.NoError(t, err)
	_, err = b.RegisterHost(own[100:200])
	requireError(t, err, alreadyRegistered, "")
	requireError(t, b.Free(p), invalidValue, "the address was registered, not allocated")
	requireError(t, b.UnregisterHost(p+1), notRegistered, "")
	d, s := b.alloc(4096), b.stream()
	for i := range own {
		own[i] = byte(i)
	}
	require.NoError(t, b.submit(
		toDevice(s, d, p, 4096),
		cudart.Command{Kind: cudart.SetMemory, Stream: s, Dst: d, Bytes: 4, Width: 4, Pattern: 0x04030201},
		toHost(s, p+1, d, 4095),
	))
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, []byte{0, 1, 2, 3, 4, 4, 5}, own[:7])
	require.NoError(t, b.UnregisterHost(p))
	requireError(t, b.UnregisterHost(p), notRegistered, "")
	require.Nil(t, b.HostBytes(0, 0))
	require.Nil(t, b.HostBytes(p, 1))
	require.Nil(t, b.HostBytes(d, 1), "device memory is not the host's")
}

func TestSet(t *testing.T) {
	b := newBench(t, Options{})
	const n = 5<<20 + 8
	d, s := b.alloc(n), b.stream()
	h, _ := b.host(n)
	got := b.HostBytes(h, n)
	for width, pattern := range map[uint8]uint32{1: 0xab, 2: 0xabcd, 4: 0x01020304} {
		require.NoError(t, b.submit(
			cudart.Command{Kind: cudart.SetMemory, Stream: s, Dst: d, Bytes: n, Width: width, Pattern: pattern}, toHost(s, h, d, n)))
		require.NoError(t, s.Synchronize(context.Background()))
		for i := range got {
			if got[i] != byte(pattern>>(8*(i%int(width)))) {
				t.Fatalf("width %d: byte %d is %#x", width, i, got[i])
			}
		}
	}
	_, err := b.Encode([]cudart.Command{{Kind: cudart.SetMemory, Label: "z", Stream: s, Dst: d, Bytes: 8, Width: 3}}, cudart.ListOptions{})
	requireError(t, err, invalidValue, `node "z": cuMemsetD8Async: CUDA_ERROR_INVALID_VALUE (1): invalid argument: the pattern has 3 bytes; only 1, 2 and 4 are possible`)
	for _, c := range []cudart.Command{{Dst: d + 2, Bytes: 8}, {Dst: d, Bytes: 6}} {
		c.Kind, c.Stream, c.Width = cudart.SetMemory, s, 4
		requireError(t, b.submit(c), invalidValue, "both must be multiples of the pattern's 4 bytes")
	}
	requireError(t, b.submit(toDevice(s, d, h, -1)), invalidValue, "-1 bytes")
}

// TestIllegalAccess causes faults of a device in many ways; each error names the command and the memory it accessed.
func TestIllegalAccess(t *testing.T) {
	overrun := "the address lies 0 bytes past the end of 4096 bytes of memory of device 0"
	if !guarded {
		overrun = "bytes just outside argument 0, 4096 bytes of memory of device 0, were overwritten"
	}
	for _, c := range []struct {
		name string
		make func(b *bench, s *stream) cudart.Command
		want string
	}{
		{"a copy past the end", func(b *bench, s *stream) cudart.Command {
			h, _ := b.host(512)
			return toDevice(s, b.alloc(500), h, 512)
		}, `node "up": cuMemcpyAsync: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered: ` +
			`the destination: 512 bytes at offset 0 reach 12 bytes past the end of 500 bytes of memory of device 0`},
		{"a copy from nowhere", func(b *bench, s *stream) cudart.Command {
			return toDevice(s, b.alloc(500), 4096, 16)
		}, `the source: the address belongs to no allocation`},
		{"freed memory", func(b *bench, s *stream) cudart.Command {
			p, err := b.Alloc(0, 64)
			require.NoError(b, err)
			c := b.kernel(s, "inc", pointer(p, 64))
			require.NoError(b, b.Free(p))
			return c
		}, `node "inc": cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered: ` +
			`argument 0: the address belonged to 64 bytes of memory of device 0, which were freed`},
		{"an argument past the end", func(b *bench, s *stream) cudart.Command {
			return b.kernel(s, "inc", pointer(b.alloc(64)+32, 64))
		}, `argument 0: 64 bytes at offset 32 reach 32 bytes past the end of 64 bytes of memory of device 0`},
		{"pageable memory in a kernel", func(b *bench, s *stream) cudart.Command {
			h, _ := b.hostKind(64, true)
			return b.kernel(s, "inc", pointer(h, 64))
		}, `argument 0 lies in 64 bytes of pageable memory; kernels can access only pinned host memory`},
		{"another device's memory", func(b *bench, s *stream) cudart.Command {
			return b.kernel(s, "inc", pointer(b.allocOn(1, 64), 64))
		}, `argument 0 lies in 64 bytes of memory of device 1; peer access from device 0 is not enabled`},
		{"a kernel that overruns into the next page", func(b *bench, s *stream) cudart.Command {
			p, err := b.Alloc(0, 4096)
			require.NoError(b, err)
			b.Cleanup(func() { _ = b.Free(p) }) // reports it too, where no page is guarded
			return b.kernel(s, "overrun", pointer(p, 4096), scalar(0))
		}, `node "overrun": cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered: ` +
			overrun},
		{"a kernel that panics", func(b *bench, s *stream) cudart.Command {
			return b.kernel(s, "call", scalar(99))
		}, `node "call": cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure: ` +
			`panic: runtime error: index out of range [99] with length 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, Options{Devices: 2})
			s := b.stream()
			bad := c.make(b, s)
			bad.Node = 7
			err := b.submit(b.kernel(s, "noop"), bad)
			if err == nil {
				err = s.Synchronize(context.Background())
			}
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, cudart.ErrPoisoned)
			require.NotContains(t, err.Error(), cudart.ErrPoisoned.Error(), "the first report is the fault itself")
			var e *cudart.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, int32(7), e.Node)
			require.Equal(t, 1, e.Index)
			for _, call := range []func() error{
				func() error { return s.Synchronize(context.Background()) },
				func() error { return b.Synchronize(context.Background(), 0) },
				func() error { _, err := s.Query(); return err },
				func() error { _, err := b.Alloc(0, 1); return err },
				func() error { _, err := b.NewStream(0, dag.Normal); return err },
				func() error { return b.submit(b.kernel(s, "noop")) },
			} {
				err := call()
				require.ErrorIs(t, err, cudart.ErrPoisoned)
				require.EqualError(t, err, "device 0: the device context is unusable after an earlier fault; a new process is needed: "+e.Error())
			}
			require.NoError(t, b.Synchronize(context.Background(), 1), "another device is another context")
		})
	}
}

func TestGuardBandsOfOddSizes(t *testing.T) {
	b := newBench(t, Options{})
	s := b.stream()
	p, err := b.Alloc(0, 100)
	require.NoError(t, err)
	require.NoError(t, b.submit(b.kernel(s, "overrun", pointer(p, 100), scalar(5))))
	requireError(t, s.Synchronize(context.Background()), illegalAddress,
		`node "overrun": cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered: `+
			`bytes just outside argument 0, 100 bytes of memory of device 0, were overwritten`)
	_, err = b.Alloc(0, 1)
	require.ErrorIs(t, err, cudart.ErrPoisoned)
	requireError(t, b.Free(p), illegalAddress, "bytes just outside an allocation of 100 bytes of memory of device 0 were overwritten")

	h, err := b.AllocHost(100, false)
	require.NoError(t, err)
	*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b.HostBytes(h, 100))), 101)) = 1
	requireError(t, b.Free(h), illegalAddress, "cuMemFreeHost")
}

func TestFreedAddressesMayServeAgain(t *testing.T) {
	b := newBench(t, Options{})
	s := b.stream()
	p, err := b.Alloc(0, 64)
	require.NoError(t, err)
	l := b.list(b.kernel(s, "inc", pointer(p, 64)))
	require.NoError(t, l.Submit())
	require.NoError(t, s.Synchronize(context.Background()))
	// The same addresses belong to another allocation, as when an allocator reuses them.
	m := b.memory.lookup(p)
	again := &memory{place: onDevice, base: m.base, bytes: m.bytes, data: m.data, pages: m.pages, guards: m.guards}
	b.memory.mu.Lock()
	b.memory.remove(m)
	b.memory.insert(again)
	b.memory.mu.Unlock()
	require.NoError(t, l.Submit())
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, float32(2), *(*float32)(again.data))
	require.NoError(t, b.Free(p))
}

func TestPeers(t *testing.T) {
	b := newBench(t, Options{Devices: 3})
	require.Equal(t, []bool{true, false, true}, b.Devices()[1].Peers)
	s := b.stream()
	p, q := b.allocOn(1, 64), b.allocOn(2, 64)
	h, f := b.host(64)
	require.NoError(t, b.submit(
		cudart.Command{Kind: cudart.SetMemory, Stream: s, Dst: q, DstDevice: 2, Bytes: 64, Width: 1},
		cudart.Command{Kind: cudart.CopyMemory, Stream: s, Dst: p, DstDevice: 1, Src: q, SrcDevice: 2, Bytes: 64}), "copies need no peer access")
	require.NoError(t, b.EnablePeer(0, 1))
	require.NoError(t, b.EnablePeer(0, 1), "already enabled is success")
	require.NoError(t, b.submit(
		b.kernel(s, "inc", pointer(p, 64)),
		cudart.Command{Kind: cudart.CopyMemory, Stream: s, Dst: h, DstDevice: -1, Src: p, SrcDevice: 1, Bytes: 64}))
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, float32(1), f[0])
	require.NoError(t, b.EnablePeer(1, 1))
	require.ErrorIs(t, b.EnablePeer(0, 3), cudart.ErrNoDevice)
	requireError(t, b.submit(cudart.Command{Kind: cudart.CopyMemory, Label: "x", Stream: s, Dst: h, DstDevice: 0, Src: p, SrcDevice: 1, Bytes: 64}),
		invalidValue, `node "x": cuMemcpyAsync: CUDA_ERROR_INVALID_VALUE (1): invalid argument: `+
			`the destination was declared to be on device 0, but lies in 64 bytes of pinned memory`)
}

func TestCloseReportsLeaks(t *testing.T) {
	p, err := Open(Options{})
	require.NoError(t, err)
	for range 2 {
		_, err = p.Alloc(0, 1)
		require.NoError(t, err)
	}
	_, err = p.NewStream(0, dag.Normal)
	require.NoError(t, err)
	_, err = p.NewEvent(0, false)
	require.NoError(t, err)
	_, err = p.Load(context.Background(), 0, testModule())
	require.NoError(t, err)
	_, err = p.Encode(nil, cudart.ListOptions{})
	require.NoError(t, err)
	_, err = p.BuildGraph(nil, nil, cudart.GraphOptions{})
	require.NoError(t, err)
	require.Equal(t, cudart.Live{Memory: 2, Streams: 1, Events: 1, Modules: 1, Lists: 1, Graphs: 1}, p.Live())
	err = p.Close()
	require.EqualError(t, err, "CPU device closed with 2 allocations, 1 stream, 1 event, 1 module, 1 list, 1 graph not closed")
	require.ErrorIs(t, err, cudart.ErrLeak)
	require.NoError(t, p.Close(), "a second time does nothing")
	_, err = p.Alloc(0, 1)
	requireError(t, err, deinitialized, "the platform is closed")
}

// Each allocation with inaccessible neighbours is counted until its addresses are given back.
func TestGuardedAllocationsAreCounted(t *testing.T) {
	b := newBench(t, Options{})
	counted := func() int {
		n := 0
		for _, m := range append(append([]*memory{}, b.memory.sorted...), b.memory.graves...) {
			if m.guards {
				n++
			}
		}
		return n
	}
	for k := range quarantined + 10 {
		p, err := b.Alloc(0, 100)
		require.NoError(t, err)
		require.Equal(t, counted(), b.memory.guarded)
		if k%8 != 0 {
			require.NoError(t, b.Free(p))
		} else {
			defer func() { require.NoError(t, b.Free(p)) }()
		}
	}
	require.Equal(t, counted(), b.memory.guarded)
}

// Devices are described alike, with the options they were opened with, and each can reach all others.
func TestDevicesDescribeThemselves(t *testing.T) {
	p, err := Open(Options{Devices: 2, Memory: 1 << 20, Workers: 3})
	require.NoError(t, err)
	for i, info := range p.Devices() {
		require.Equal(t, cudart.Info{Name: "CPU", UUID: fmt.Sprintf("CPU-0000000%d", i), Memory: 1 << 20, Multiprocessors: 3, CopyEngines: 3, MaxThreadsPerBlock: 1024,
			MaxBlock: [3]int{1024, 1024, 64}, MaxGrid: [3]int{1<<31 - 1, 65535, 65535}, ThreadsPerSM: 2048, BlocksPerSM: 32, SharedPerBlock: 48 << 10,
			SharedPerBlockMax: 227 << 10, SharedPerSM: 228 << 10, Driver: info.Driver, Peers: []bool{i == 1, i == 0}}, info)
	}
	p.Devices()[0].Peers[1] = false
	require.Equal(t, []bool{false, true}, p.Devices()[0].Peers, "a copy was changed")
	require.False(t, p.TakesDeciders())
	require.NoError(t, p.Close())
	for want, o := range map[string]Options{"": {}, "order checked": {CheckOrder: true}, "PTX only": {PTX: true}, "perturbed": {Perturb: 3},
		"kernels checked (fast)": {Sanitize: simt.CheckFast}, "kernels checked (full)": {Sanitize: simt.CheckFull}, "kernels checked (auto)": {Sanitize: simt.CheckUsual},
		"order checked, PTX only": {CheckOrder: true, PTX: true}} {
		p, err := Open(o)
		require.NoError(t, err)
		require.Equal(t, want, p.Conditions())
		require.NoError(t, p.Close())
	}
	// Perturbed devices have few workers.
	for seed, workers := range map[uint64]int{3: 1, 4: 2, 5: 4} {
		p, err := Open(Options{Perturb: seed})
		require.NoError(t, err)
		require.Len(t, p.pool.all, workers)
		require.NoError(t, p.Close())
	}
	plain, err := Open(Options{})
	require.NoError(t, err)
	two, err := Open(Options{Devices: 2})
	require.NoError(t, err)
	require.Equal(t, plain.Devices()[0].Memory/2, two.Devices()[0].Memory)
	require.NoError(t, plain.Close())
	require.NoError(t, two.Close())
}

func TestOpenRefuses(t *testing.T) {
	for want, o := range map[string]Options{
		"cpu:-1: there can be 1 to 256 CPU devices":                         {Devices: -1},
		"cpu:257: there can be 1 to 256 CPU devices":                        {Devices: 257},
		"CPU device: -1 workers and 0 bytes of memory must not be negative": {Workers: -1},
		"CPU device: 0 workers and -5 bytes of memory must not be negative": {Memory: -5},
		"CPU device: 1000000000 workers; up to 4096 are possible":           {Workers: 1e9},
	} {
		_, err := Open(o)
		require.EqualError(t, err, want)
	}
	p, err := Open(Options{Devices: 4})
	require.NoError(t, err)
	require.Len(t, p.Devices(), 4)
	require.Positive(t, p.Devices()[3].Memory)
	require.Equal(t, "cpu", p.Name())
	require.NoError(t, p.Close())
}

// BenchmarkAlloc allocates and frees once, with the given number of other allocations alive.
func BenchmarkAlloc(b *testing.B) {
	for _, live := range []int{0, 10_000} {
		b.Run(fmt.Sprint(live), func(b *testing.B) {
			t := newBench(b, Options{})
			for range live {
				t.alloc(64)
			}
			for b.Loop() {
				p, err := t.Alloc(0, 4096)
				if err != nil {
					b.Fatal(err)
				}
				if err := t.Free(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestManyAllocations makes more allocations than can have inaccessible pages beside them.
func TestManyAllocations(t *testing.T) {
	b := newBench(t, Options{})
	b.memory.guarded = maxGuarded
	s := b.stream()
	p := b.alloc(4096)
	require.False(t, b.memory.lookup(p).guards)
	require.NoError(t, b.submit(b.kernel(s, "inc", pointer(p, 4096))))
	require.NoError(t, s.Synchronize(context.Background()))
	q, err := b.Alloc(0, 4096)
	require.NoError(t, err)
	require.NoError(t, b.submit(b.kernel(s, "overrun", pointer(q, 4096), scalar(0))))
	requireError(t, s.Synchronize(context.Background()), illegalAddress, "bytes just outside argument 0")
	requireError(t, b.Free(q), illegalAddress, "were overwritten")
}
