// Communication between ranks without a GPU: a fake NCCL behind the fake driver, with another rank at the store.

//go:build linux && (amd64 || arm64)

package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver/internal/nccl"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
)

// fakeNCCL notes the calls, and returns what a test wants.
type fakeNCCL struct {
	mu      sync.Mutex
	version int32
	missing map[nccl.Function]bool
	log     []string
	fail    map[nccl.Function]uint32
	async   uint32
	hang    chan struct{} // closed when calls that make communicators may return; nil: at once
	next    uintptr
	called  chan nccl.Function
}

var (
	ncclOnce      sync.Once
	ncclAddresses [nccl.Functions]uintptr
	ncclNow       atomic.Pointer[fakeNCCL]
	ncclID        = []byte("0123456789abcdefghij")
	ncclTexts     = [][]byte{[]byte("internal error\x00"), []byte("  link down\n\x00")}
)

func newFakeNCCL() *fakeNCCL {
	ncclOnce.Do(func() {
		for f := range nccl.Functions {
			ncclAddresses[f] = purego.NewCallback(func(a0, a1, a2, a3, a4, a5, a6, a7 uintptr) uintptr {
				return ncclNow.Load().serve(f, []uintptr{a0, a1, a2, a3, a4, a5, a6, a7})
			})
		}
	})
	n := &fakeNCCL{version: 22809, missing: map[nccl.Function]bool{}, fail: map[nccl.Function]uint32{}, next: 0xc0, called: make(chan nccl.Function, 4096)}
	ncclNow.Store(n)
	return n
}

func (n *fakeNCCL) resolve(symbol string) (uintptr, error) {
	for f := range nccl.Functions {
		if f.String() == symbol && !n.missing[f] {
			return ncclAddresses[f], nil
		}
	}
	return 0, errors.New("no such symbol")
}

// arguments is how many arguments a function takes.
var arguments = map[nccl.Function]int{nccl.CommInitRankScalable: 6, nccl.CommSplit: 5, nccl.CommAbort: 1, nccl.CommDestroy: 1, nccl.AllReduce: 7, nccl.Reduce: 8, nccl.Broadcast: 7,
	nccl.AllGather: 6, nccl.ReduceScatter: 7, nccl.Send: 6, nccl.Recv: 6}

func (n *fakeNCCL) serve(f nccl.Function, a []uintptr) uintptr {
	if f == nccl.GetErrorString {
		return uintptr(unsafe.Pointer(&ncclTexts[0][0]))
	}
	if f == nccl.GetLastError {
		return uintptr(unsafe.Pointer(&ncclTexts[1][0]))
	}
	n.mu.Lock()
	hang := n.hang
	n.mu.Unlock()
	if hang != nil && (f == nccl.CommInitRankScalable || f == nccl.CommInitRank) {
		n.called <- f
		<-hang
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if code := n.fail[f]; code != 0 {
		return uintptr(code)
	}
	switch f {
	case nccl.GetVersion:
		poke(a[0], n.version)
		return 0
	case nccl.GetUniqueID:
		copy(fakeBytes(a[0], 128), ncclID)
		return 0
	case nccl.CommGetAsyncError:
		poke(a[1], n.async)
		return 0
	case nccl.CommInitRank:
		n.next++
		poke(a[0], n.next)
		// The ID is by value: 128 bytes on the stack on amd64, and a pointer to a copy of them on arm64.
		rank, id := a[2], uint64(a[6])
		if runtime.GOARCH == "arm64" {
			rank, id = a[3], binary.LittleEndian.Uint64(fakeBytes(a[2], 8))
		}
		n.log = append(n.log, fmt.Sprintf("%s ranks %d, rank %d, id %x", f, uint32(a[1]), uint32(rank), id))
	case nccl.CommInitRankScalable:
		n.next++
		poke(a[0], n.next)
		n.log = append(n.log, fmt.Sprintf("%s ranks %d, rank %d, ids %d, id %s", f, uint32(a[1]), uint32(a[2]), uint32(a[3]), fakeBytes(a[4], 20)))
	case nccl.CommSplit:
		poke(a[3], uintptr(0))
		if int32(a[1]) >= 0 {
			n.next++
			poke(a[3], n.next)
		}
		n.log = append(n.log, fmt.Sprintf("%s of %x: color %d, key %d", f, a[0], int32(a[1]), int32(a[2])))
	default:
		text := f.String()
		for _, v := range a[:arguments[f]] {
			text += fmt.Sprintf(" %x", v)
		}
		n.log = append(n.log, text)
	}
	select {
	case n.called <- f:
	default:
	}
	return 0
}

func (n *fakeNCCL) calls() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	log := n.log
	n.log = nil
	return log
}

func (n *fakeNCCL) returns(f nccl.Function, code uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail[f] = code
}

// await waits until a function was called.
func (n *fakeNCCL) await(t *testing.T, wanted nccl.Function) {
	t.Helper()
	late := time.After(10 * time.Minute)
	for {
		select {
		case f := <-n.called:
			if f == wanted {
				return
			}
		case <-late:
			t.Fatalf("%s was not called", wanted)
		}
	}
}

// pair is rank 0 of four with a connected platform; the other ranks only wait at the store.
type pair struct {
	p      *Platform
	w      *world.World
	others []*world.World
	stream cudart.Stream
}

// joinAll lets ranks of this process meet.
func joinAll(t *testing.T, ranks int) []*world.World {
	t.Helper()
	at, err := world.FreeAddress()
	require.NoError(t, err)
	worlds, errs := make([]*world.World, ranks), make([]error, ranks)
	var all sync.WaitGroup
	for rank := range ranks {
		all.Go(func() {
			place := world.Place{Rank: rank, Ranks: ranks, Rendezvous: at}
			worlds[rank], _, errs[rank] = world.Join(t.Context(), world.JoinOptions{Place: place, Secret: "s", Arrive: 10 * time.Minute, Hash: "h", Device: "GPU-" + strconv.Itoa(rank),
				Expected: func(world.Member) (world.Expected, error) { return world.Expected{Hash: "h"}, nil }})
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	return worlds
}

// newPair lets four ranks meet. The others take part in what ranks agree on before they connect, and have groups of their own.
func newPair(t *testing.T) *pair {
	t.Helper()
	var others sync.WaitGroup
	t.Cleanup(others.Wait) // the context of the test has been cancelled by then
	worlds := joinAll(t, 4)
	for _, w := range worlds[1:] {
		others.Add(1)
		go func() {
			defer others.Done()
			if _, err := w.Barrier(t.Context(), "nccl id", ""); err == nil {
				_, _ = w.Barrier(t.Context(), "nccl groups", `[{"First":1,"Count":1,"Step":1},{"First":0,"Count":4,"Step":1}]`)
			}
		}()
	}
	return &pair{p: newFakeDriver(t).open(t), w: worlds[0], others: worlds[1:]}
}

// connect connects rank 0, which communicates in groups.
func (x *pair) connect(t *testing.T, n *fakeNCCL, groups []dag.Among) error {
	t.Helper()
	lib, err := nccl.Resolve(n.resolve, "libnccl.so.2")
	require.NoError(t, err)
	return x.p.connect(t.Context(), x.w, groups, lib)
}

func connectedPair(t *testing.T, n *fakeNCCL, groups []dag.Among) *pair {
	t.Helper()
	x := newPair(t)
	require.NoError(t, x.connect(t, n, groups))
	var err error
	x.stream, err = x.p.NewStream(0, dag.High)
	require.NoError(t, err)
	return x
}

// end closes the platform and lets all ranks leave.
func (x *pair) end(t *testing.T) {
	t.Helper()
	if x.stream != nil {
		require.NoError(t, x.stream.Close())
	}
	require.NoError(t, x.p.Close())
	x.leave(nil)
}

func (x *pair) leave(err error) {
	var all sync.WaitGroup
	for _, w := range append(x.others, x.w) {
		all.Go(func() { w.Leave(err) })
	}
	all.Wait()
}

func communicate(x *pair, label string, c *cudart.Communication) cudart.Command {
	return cudart.Command{Kind: cudart.Communicate, Stream: x.stream, Label: label, Communication: c}
}

func TestCommunicationCallsNCCL(t *testing.T) {
	n := newFakeNCCL()
	evens := dag.Among{First: 0, Count: 2, Step: 2}
	x := connectedPair(t, n, []dag.Among{evens, {First: 0, Count: 2, Step: 1}})
	// Groups without a common rank are split off together: the even ranks and rank 1.
	require.Equal(t, []string{"ncclCommInitRankScalable ranks 4, rank 0, ids 1, id 0123456789abcdefghij", "ncclCommSplit of c1: color 0, key 0", "ncclCommSplit of c1: color 0, key 0"}, n.calls())
	all := dag.Among{First: 0, Count: 4, Step: 1}
	of := func(v dag.Verb, op dag.Reduction, t dag.DType, src, dst int64) *cudart.Communication {
		return &cudart.Communication{Verb: v, Reduction: op, DType: t, Group: all, Src: 0x1000, Dst: 0x2000, SrcBytes: src, DstBytes: dst}
	}
	among := of(dag.AllReduce, dag.Max, dag.F64, 80, 80)
	among.Group = evens
	reduce := of(dag.Reduce, dag.Min, dag.I32, 40, 40)
	reduce.Group, reduce.Root = evens, 2
	exchange := &cudart.Communication{Verb: dag.Exchange, Transfers: []cudart.Transfer{{Rank: 3, Ptr: 0x3000, Bytes: 12}, {Rank: 1, Ptr: 0x4000, Bytes: 16, Receive: true}}}
	memory, err := x.p.AllocHost(32, false) // the fake driver copies between any addresses
	require.NoError(t, err)
	copy(x.p.HostBytes(memory, 32), "to itself...")
	self := &cudart.Communication{Verb: dag.Exchange, Transfers: []cudart.Transfer{{Ptr: memory, Bytes: 12}, {Ptr: memory + 16, Bytes: 12, Receive: true}}}
	list, err := x.p.Encode([]cudart.Command{
		communicate(x, "allreduce", of(dag.AllReduce, dag.Sum, dag.F32, 40, 40)),
		communicate(x, "among", among),
		communicate(x, "reduce", reduce),
		communicate(x, "scatter", of(dag.ReduceScatter, dag.Avg, dag.BF16, 80, 20)),
		communicate(x, "broadcast", of(dag.Broadcast, 0, dag.C64, 80, 80)),
		communicate(x, "gather", of(dag.AllGather, 0, dag.Bool, 3, 12)),
		communicate(x, "alltoall", of(dag.AllToAll, 0, dag.F32, 32, 32)),
		communicate(x, "exchange", exchange),
		communicate(x, "self", self),
	}, cudart.ListOptions{Origin: x.stream})
	require.NoError(t, err)
	require.NoError(t, list.Submit())
	s := fmt.Sprintf("%x", x.stream.Handle())
	require.Equal(t, []string{
		"ncclAllReduce 1000 2000 a 7 0 c1 " + s,
		"ncclAllReduce 1000 2000 a 8 2 c2 " + s,
		"ncclReduce 1000 2000 a 2 3 1 c2 " + s,
		"ncclReduceScatter 1000 2000 a 9 4 c1 " + s,
		"ncclBroadcast 1000 2000 50 1 0 c1 " + s,
		"ncclAllGather 1000 2000 3 1 c1 " + s,
		"ncclGroupStart",
		"ncclSend 1000 8 1 0 c1 " + s, "ncclRecv 2000 8 1 0 c1 " + s,
		"ncclSend 1008 8 1 1 c1 " + s, "ncclRecv 2008 8 1 1 c1 " + s,
		"ncclSend 1010 8 1 2 c1 " + s, "ncclRecv 2010 8 1 2 c1 " + s,
		"ncclSend 1018 8 1 3 c1 " + s, "ncclRecv 2018 8 1 3 c1 " + s,
		"ncclGroupEnd",
		"ncclGroupStart",
		"ncclSend 3000 c 1 3 c1 " + s, "ncclRecv 4000 10 1 1 c1 " + s,
		"ncclGroupEnd",
	}, n.calls())
	require.Equal(t, "to itself...", string(x.p.HostBytes(memory+16, 12)))
	require.NoError(t, x.p.Free(memory))
	graph, err := list.Capture(cudart.GraphOptions{Origin: x.stream})
	require.NoError(t, err)
	require.Len(t, n.calls(), 20)
	require.NoError(t, graph.Close())

	_, err = x.p.BuildGraph([]cudart.Command{communicate(x, "sum", of(dag.AllReduce, dag.Sum, dag.F32, 40, 40))}, [][]int32{nil}, cudart.GraphOptions{})
	require.EqualError(t, err, `node "sum": NCCL's work cannot be added to a graph node by node; use --graph=on`)
	wrong := of(dag.AllReduce, dag.Sum, dag.F32, 40, 40)
	wrong.Group = dag.Among{First: 0, Count: 3, Step: 1}
	for _, c := range []struct {
		of   *cudart.Communication
		text string
	}{
		{nil, `node "sum": there is no communication to do`},
		{wrong, `node "sum": the ranks 0, 1 and so on, 3 of them, were not connected as a group`},
		{of(dag.AllReduce, dag.Sum, dag.F32, 40, 44), `node "sum": allreduce of 40 bytes to 44 on rank 0 of the group {0 4 1} is not possible`},
		{&cudart.Communication{Verb: dag.Exchange, Transfers: []cudart.Transfer{{Bytes: 8}}}, `node "sum": rank 0 sends 1 times to itself and receives 0 times`},
	} {
		_, err := x.p.Encode([]cudart.Command{communicate(x, "sum", c.of)}, cudart.ListOptions{Origin: x.stream})
		require.EqualError(t, err, c.text)
	}
	require.EqualError(t, x.p.Connect(t.Context(), x.w, nil), "the platform is connected already")

	n.returns(nccl.Reduce, 3)
	require.EqualError(t, list.Submit(), `node "reduce": ncclReduce: ncclInternalError (3): internal error`+"\nlink down")
	require.NoError(t, list.Close())
	n.calls()
	x.end(t)
	require.Equal(t, []string{"ncclCommDestroy c3", "ncclCommDestroy c2", "ncclCommDestroy c1"}, n.calls())
}

func TestOldNCCLTakesTheIDByValue(t *testing.T) {
	n := newFakeNCCL()
	n.missing[nccl.CommInitRankScalable] = true
	x := connectedPair(t, n, nil)
	require.Equal(t, fmt.Sprintf("ncclCommInitRank ranks 4, rank 0, id %x", binary.LittleEndian.Uint64(ncclID)), n.calls()[0])
	x.end(t)
}

// A graph with library calls is built node by node. It must not leave communication out.
func TestCommunicationIsNotLostInGraphsWithCalls(t *testing.T) {
	n := newFakeNCCL()
	x := connectedPair(t, n, nil)
	sum := &cudart.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, DType: dag.F32, Group: dag.Among{First: 0, Count: 4, Step: 1}, Src: 0x1000, Dst: 0x1000, SrcBytes: 40, DstBytes: 40}
	self := &cudart.Communication{Verb: dag.Exchange, Transfers: []cudart.Transfer{{Ptr: 0x1000, Bytes: 12}, {Ptr: 0x2000, Bytes: 12, Receive: true}}}
	for _, c := range []*cudart.Communication{sum, self} {
		made, err := x.p.Encode([]cudart.Command{communicate(x, "sum", c)}, cudart.ListOptions{Origin: x.stream})
		require.NoError(t, err)
		nodes, deps := streamOrder(made.(*list).commands)
		_, err = x.p.build(nodes, deps, x.p.devices[0], false)
		require.ErrorIs(t, err, cudart.ErrUnsupported)
		require.ErrorContains(t, err, `node "sum": communication with other ranks cannot be a node of a graph that is built, as those with library calls are; use --graph=off`)
		require.NoError(t, made.Close())
	}
	x.end(t)
}

func TestABucketIsAGroupOfNCCL(t *testing.T) {
	n := newFakeNCCL()
	x := connectedPair(t, n, nil)
	bucket := &cudart.Communication{Verb: dag.AllReduce, Reduction: dag.Avg, DType: dag.F32, Group: dag.Among{First: 0, Count: 4, Step: 1}, Src: 0x1000, Dst: 0x1000, SrcBytes: 40,
		DstBytes: 40, More: []cudart.Pair{{Src: 0x2000, Dst: 0x3000, Bytes: 8}, {Src: 0x4000, Dst: 0x4000, Bytes: 12}}}
	n.calls() // of connecting
	list, err := x.p.Encode([]cudart.Command{communicate(x, "sum.0..sum.2", bucket)}, cudart.ListOptions{Origin: x.stream})
	require.NoError(t, err)
	require.NoError(t, list.Submit())
	s := fmt.Sprintf("%x", x.stream.Handle())
	require.Equal(t, []string{"ncclGroupStart", "ncclAllReduce 1000 1000 a 7 4 c1 " + s, "ncclAllReduce 2000 3000 2 7 4 c1 " + s, "ncclAllReduce 4000 4000 3 7 4 c1 " + s, "ncclGroupEnd"},
		n.calls())
	require.NoError(t, list.Close())
	odd := *bucket
	odd.More = []cudart.Pair{{Src: 0x2000, Dst: 0x3000, Bytes: 7}}
	_, err = x.p.Encode([]cudart.Command{communicate(x, "odd", &odd)}, cudart.ListOptions{Origin: x.stream})
	require.ErrorContains(t, err, "allreduce of 7 bytes to 7 on rank 0 of the group {0 4 1} is not possible")
	odd.Verb, odd.Reduction = dag.Broadcast, dag.NoReduction
	_, err = x.p.Encode([]cudart.Command{communicate(x, "odd", &odd)}, cudart.ListOptions{Origin: x.stream})
	require.ErrorContains(t, err, "a bucket of broadcast; only all-reduces are bucketed")
	x.end(t)
}

func TestNCCLThatIsTooOld(t *testing.T) {
	n := newFakeNCCL()
	n.missing[nccl.CommSplit] = true
	_, err := nccl.Resolve(n.resolve, "/opt/libnccl.so.2")
	require.ErrorIs(t, err, nccl.ErrNoLibrary)
	require.EqualError(t, err, "no NCCL (libnccl.so.2): /opt/libnccl.so.2 has no ncclCommSplit; NCCL 2.18 or newer is needed")
}

// An error that NCCL finds while communication is running ends all ranks, with NCCL's words.
func TestErrorsOfRunningCommunication(t *testing.T) {
	n := newFakeNCCL()
	x := connectedPair(t, n, nil)
	n.mu.Lock()
	n.async = 6
	n.mu.Unlock()
	<-x.w.Failed()
	require.EqualError(t, x.w.Cause(), "ncclCommGetAsyncError: ncclRemoteError (6): internal error: link down")
	n.await(t, nccl.CommAbort)
	x.end(t)
	require.NotContains(t, n.calls(), "ncclCommDestroy c1")
}

// When another rank fails, communication is aborted, and not waited for.
func TestAbortWhenAnotherRankFails(t *testing.T) {
	n := newFakeNCCL()
	x := connectedPair(t, n, []dag.Among{{First: 0, Count: 2, Step: 1}})
	x.others[1].Leave(errors.New("no memory"))
	n.await(t, nccl.CommAbort)
	require.NoError(t, x.stream.Close())
	require.NoError(t, x.p.Close())
	require.ErrorContains(t, x.w.Cause(), "failed: no memory")
	x.leave(x.w.Cause())
	log := n.calls()
	require.Subset(t, log, []string{"ncclCommAbort c1", "ncclCommAbort c2"})
	require.NotContains(t, log, "ncclCommDestroy c1")
}

// While communicators are made, NCCL waits for all ranks. A rank that fails then must not keep the others waiting.
func TestARankFailsWhileTheyConnect(t *testing.T) {
	n := newFakeNCCL()
	n.hang = make(chan struct{})
	x := newPair(t)
	go func() {
		<-n.called // all ranks are past what they agree on before
		x.others[0].Leave(errors.New("no driver"))
	}()
	require.ErrorContains(t, x.connect(t, n, nil), "failed: no driver")
	require.NoError(t, x.p.Close())
	d := fakeNow.Load()
	require.Equal(t, 1, d.retained[10], "the context was taken from the thread that is still inside NCCL")
	x.leave(x.w.Cause())
	close(n.hang)
	left := func() int { // contexts that threads have pushed
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.stacks)
	}
	for left() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// A reduction that is new to pipelines must not become NCCL's number 0, which is a sum.
func TestEveryReductionHasItsNumberInNCCL(t *testing.T) {
	numbers := map[uintptr]bool{}
	for r := dag.Sum; r.String() != fmt.Sprintf("Reduction(%d)", r); r++ {
		number, known := ncclReductions[r]
		require.True(t, known, r)
		numbers[number] = true
	}
	require.Len(t, numbers, 5)
}
