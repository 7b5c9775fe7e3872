// Tests of kernels: limits, missing Go versions, and how workers share large kernels.

package host

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/clang"
)

func TestLaunchLimits(t *testing.T) {
	b := newBench(t, Options{Devices: 2})
	s := b.stream()
	k := b.kernel(s, "noop").Kernel
	for _, c := range []struct {
		grid, block [3]uint32
		shared      uint32
		want        string
	}{
		{one, [3]uint32{1025, 1, 1}, 0, "block.x is 1025; 1 to 1024 is possible"},
		{one, [3]uint32{1, 1, 65}, 0, "block.z is 65; 1 to 64 is possible"},
		{one, [3]uint32{32, 33, 1}, 0, "a block of 1056 threads; at most 1024 are possible"},
		{one, [3]uint32{1, 0, 1}, 0, "block.y is 0; 1 to 1024 is possible"},
		{[3]uint32{1 << 31, 1, 1}, one, 0, "grid.x is 2147483648; up to 2147483647 is possible"},
		{[3]uint32{1, 1, 65536}, one, 0, "grid.z is 65536; up to 65535 is possible"},
		{one, one, 227<<10 + 1, "232449 bytes of shared memory; a block has at most 232448"},
	} {
		_, err := b.Encode([]cudart.Command{{Kind: cudart.LaunchKernel, Label: "k", Stream: s, Kernel: k, Grid: c.grid, Block: c.block, Shared: c.shared}},
			cudart.ListOptions{})
		require.EqualError(t, err, `node "k": cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1): invalid argument: `+c.want)
	}
	require.NoError(t, b.submit(cudart.Command{
		Kind: cudart.LaunchKernel, Stream: s, Kernel: k, Grid: [3]uint32{1<<31 - 1, 65535, 65535}, Block: [3]uint32{16, 1, 64}, Shared: 48 << 10}))
	require.NoError(t, b.submit(cudart.Command{Kind: cudart.LaunchKernel, Stream: s, Kernel: k, Grid: one, Block: one, Shared: 100 << 10}))
	require.NoError(t, k.SetMaxShared(100<<10))
	requireError(t, k.SetMaxShared(1<<20), invalidValue, "a block has at most 232448")
	_, _, err := k.Occupancy(1 << 20)
	requireError(t, err, invalidValue, "a block has at most 232448")
	block, blocks, err := k.Occupancy(0)
	require.NoError(t, err)
	require.Equal(t, [2]int{1024, 2}, [2]int{int(block), blocks})
	require.Equal(t, 1024, k.Attributes().MaxThreads)
	_, err = b.Encode([]cudart.Command{{Kind: cudart.LaunchKernel, Stream: b.streamOn(1, 0), Kernel: k, Grid: one, Block: one}}, cudart.ListOptions{})
	requireError(t, err, invalidHandle, "the kernel was loaded on device 0")
	require.NoError(t, b.Synchronize(context.Background(), 0), "none of this was a fault")
}

func TestKernelWithoutReference(t *testing.T) {
	own := launch.Reference{Run: func(*launch.Call, int64, int64) {}}
	b := newBench(t, Options{References: map[string]launch.Reference{"mine": own}})
	_, err := b.module.Kernel("theirs")
	require.EqualError(t, err, `cuModuleGetFunction: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported: `+
		`kernel "theirs" of module "test" cannot run on the CPU device: that needs its source or PTX, or a Go implementation registered under its name`)
	require.ErrorIs(t, err, cudart.ErrUnsupported)
	_, err = b.module.Kernel("mine")
	require.NoError(t, err)
	require.Empty(t, b.module.Warnings())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = b.Load(ctx, 0, testModule())
	require.ErrorIs(t, err, context.Canceled)
	m, err := b.Load(context.Background(), 0, testModule())
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close(), "a second time does nothing")
	_, err = m.Kernel("noop")
	requireError(t, err, invalidHandle, `module "test" is closed`)
}

func TestSourceIsCompiled(t *testing.T) {
	p, err := Open(Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	source := &launch.Module{Name: "mine.cu", Kind: launch.Source, Code: []byte("code")}
	p.compile = func(m *launch.Module) (*launch.Compiled, error) {
		return &launch.Compiled{Code: []byte(".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry _Z3ownv() { ret; }\n"),
			Symbols: map[string]string{"own": "_Z3ownv"}, Log: "careful: " + string(m.Code)}, nil
	}
	m, err := p.Load(context.Background(), 0, source)
	require.NoError(t, err)
	require.Equal(t, []string{"careful: code"}, m.Warnings())
	_, err = m.Kernel("own")
	require.NoError(t, err)
	_, err = m.Kernel("other")
	require.ErrorContains(t, err, `mine.cu has no kernel "other"`)
	require.NoError(t, m.Close())

	without, err := Open(Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, without.Close()) }()
	_, err = without.Load(context.Background(), 0, source)
	require.EqualError(t, err, "cuModuleLoadData: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported: mine.cu is CUDA C, and there is no compiler for CUDA C: "+
		"the device was opened without Compilers in its Options")

	none := filepath.Join(t.TempDir(), "none")
	other, err := Open(Options{Compilers: &kernels.Compilers{Clang: clang.Lazy{Options: clang.Options{Path: none}}}})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	source.Build.Compiler = "clang"
	_, err = other.Load(context.Background(), 0, source)
	require.EqualError(t, err, "cuModuleLoadData: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported: mine.cu is CUDA C, its compiler is to be clang, and there is no "+
		"compiler for CUDA C: clang is not installed")
}

// slow is a kernel of n parts that each take some time; it counts how often each part ran and how many ran at once.
type slow struct {
	n       int64
	counts  []atomic.Int32
	running atomic.Int32
	most    atomic.Int32
	at      func(i int64)
}

func (s *slow) reference() launch.Reference {
	s.counts = make([]atomic.Int32, s.n)
	return launch.Reference{
		Spans: func(*launch.Call) int64 { return s.n },
		Run: func(_ *launch.Call, lo, hi int64) {
			n := s.running.Add(1)
			for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
			}
			for i := lo; i < hi; i++ {
				for start := time.Now(); time.Since(start) < 10*time.Microsecond; {
				}
				s.counts[i].Add(1)
				if s.at != nil {
					s.at(i)
				}
			}
			s.running.Add(-1)
		},
	}
}

func TestLargeKernelsAreShared(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 3, 7, 64, 1000} {
		k := &slow{n: n}
		b := newBench(t, Options{Workers: 4, References: map[string]launch.Reference{"slow": k.reference()}})
		s := b.stream()
		require.NoError(t, b.submit(b.kernel(s, "slow")))
		require.NoError(t, s.Synchronize(context.Background()))
		for i := range k.counts {
			require.Equal(t, int32(1), k.counts[i].Load(), "part %d of %d", i, n)
		}
	}
}

func TestSeveralWorkersShareAKernel(t *testing.T) {
	// The parts wait for each other in pairs, which needs two workers; the first eighth runs alone, because it is timed.
	const n = 64
	var once sync.Once
	met := newGate(t)
	k := &slow{n: n}
	var waiting atomic.Int32
	k.at = func(i int64) {
		if i >= n/2 {
			if waiting.Add(1) == 2 {
				once.Do(func() { met.open() })
			}
			met.hold()
		}
	}
	b := newBench(t, Options{Workers: 4, References: map[string]launch.Reference{"slow": k.reference()}})
	s := b.stream()
	require.NoError(t, b.submit(b.kernel(s, "slow")))
	require.NoError(t, s.Synchronize(context.Background()))
	require.Greater(t, k.most.Load(), int32(1))
}

func TestHelpersMakeWayForOtherStreams(t *testing.T) {
	// Both workers are inside the large kernel when the other stream's kernel is submitted. The large kernel's last part waits for that
	// kernel, which only the helping worker can run, after it has left the large kernel.
	inside, ran := newGate(t), newGate(t)
	k := &slow{n: 4000}
	k.at = func(i int64) {
		if i >= k.n/4 {
			inside.hold()
		}
		if i == k.n-1 {
			ran.hold()
		}
	}
	b := newBench(t, Options{Workers: 2, References: map[string]launch.Reference{"slow": k.reference()}}, func() { ran.open() })
	s, u := b.stream(), b.stream()
	require.NoError(t, b.submit(b.kernel(s, "slow")))
	for k.running.Load() < 2 {
		runtime.Gosched()
	}
	require.NoError(t, b.submit(b.kernel(u, "call", scalar(0))))
	inside.open()
	require.NoError(t, b.Synchronize(context.Background(), 0))
}

func TestPanicInASharedKernel(t *testing.T) {
	k := &slow{n: 1000, at: func(i int64) {
		if i == 900 {
			panic("part 900")
		}
	}}
	b := newBench(t, Options{Workers: 4, References: map[string]launch.Reference{
		"slow":  k.reference(),
		"spans": {Spans: func(c *launch.Call) int64 { return int64(c.Args[0].Bits) }, Run: func(*launch.Call, int64, int64) {}},
	}})
	s := b.stream()
	require.NoError(t, b.submit(b.kernel(s, "slow")))
	e := requireError(t, s.Synchronize(context.Background()), launchFailed, `node "slow": cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure: panic: part 900`)
	require.Contains(t, e.Detail, "kernel_test.go")
}

func TestPanicInSpans(t *testing.T) {
	b := newBench(t, Options{References: map[string]launch.Reference{
		"spans": {Spans: func(c *launch.Call) int64 { return int64(c.Args[0].Bits) }, Run: func(*launch.Call, int64, int64) {}},
	}})
	s := b.stream()
	require.NoError(t, b.submit(b.kernel(s, "spans")))
	requireError(t, s.Synchronize(context.Background()), launchFailed, `node "spans": cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED`)
}

func BenchmarkLargeKernel(b *testing.B) {
	const bytes = 64 << 20
	for _, workers := range []int{1, 4} {
		t := newBench(b, Options{Workers: workers})
		s := t.stream()
		l := t.list(t.kernel(s, "inc", pointer(t.alloc(bytes), bytes)))
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.SetBytes(bytes)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Submit(); err != nil {
					b.Fatal(err)
				}
				if err := s.Synchronize(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCopy(b *testing.B) {
	for _, bytes := range []int64{4 << 10, 64 << 20} {
		t := newBench(b, Options{})
		s := t.stream()
		h, _ := t.host(bytes)
		l := t.list(toDevice(s, t.alloc(bytes), h, bytes))
		b.Run(fmt.Sprintf("%d KiB", bytes>>10), func(b *testing.B) {
			b.SetBytes(bytes)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Submit(); err != nil {
					b.Fatal(err)
				}
				if err := s.Synchronize(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
