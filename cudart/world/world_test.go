// Several ranks of one process: they meet, communicate, and end together when one of them fails.

package world

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

var addresses atomic.Int64

// freeAddress is an address of this machine that nobody listens on now. Its port is not one that outgoing connections get.
func freeAddress(t *testing.T) string {
	for {
		at := net.JoinHostPort("127.0.0.1", jobPort(fmt.Sprint(os.Getpid(), addresses.Add(1))))
		if l, err := net.Listen("tcp", at); err == nil {
			require.NoError(t, l.Close())
			return at
		}
	}
}

func joining(at string, rank, ranks int) JoinOptions {
	return JoinOptions{Place: Place{Rank: rank, Ranks: ranks, Rendezvous: at}, Secret: "secret", Arrive: 10 * time.Minute, Mesh: true, Hash: "graph",
		Outline: func() []string { return []string{"up\x00memcpy", "sum\x00communication"} }, Decision: []byte(`{"iterations":3}`),
		Expected: func(Member) (Expected, error) {
			return Expected{"graph", func() []string { return []string{"up\x00memcpy", "sum\x00communication"} }}, nil
		}}
}

// together runs ranks, each with its own change of the options, and returns how each of them ended.
func together(t *testing.T, ranks int, change func(*JoinOptions), run func(*World) error) []error {
	t.Helper()
	at := freeAddress(t)
	ended := make([]error, ranks)
	var all sync.WaitGroup
	for rank := range ranks {
		all.Go(func() {
			o := joining(at, rank, ranks)
			change(&o)
			w, decision, err := Join(context.Background(), o)
			if err != nil {
				ended[rank] = err
				return
			}
			if string(decision) != `{"iterations":3}` {
				t.Errorf("rank %d got the decision %s", rank, decision)
			}
			err = run(w)
			if other := w.Leave(err); err == nil {
				err = other
			}
			ended[rank] = err
		})
	}
	all.Wait()
	return ended
}

func unchanged(*JoinOptions) {}

func floatsOf(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func TestCollectives(t *testing.T) {
	const ranks = 3
	all := dag.Among{First: 0, Count: ranks, Step: 1}
	var mu sync.Mutex
	got := map[dag.Verb][][]byte{}
	ended := together(t, ranks, unchanged, func(w *World) error {
		r := float32(w.Place().Rank)
		for _, c := range []struct {
			verb     dag.Verb
			src, dst []byte
		}{
			{dag.AllReduce, floatsOf(r, 2*r, 1), make([]byte, 12)},
			{dag.Reduce, floatsOf(r, 10), make([]byte, 8)},
			{dag.Broadcast, floatsOf(r + 5), nil},
			{dag.AllGather, floatsOf(r), make([]byte, 12)},
			{dag.ReduceScatter, floatsOf(r, 10*r, 100*r), make([]byte, 4)},
			{dag.AllToAll, floatsOf(10*r, 10*r+1, 10*r+2), make([]byte, 12)},
		} {
			if c.dst == nil {
				c.dst = c.src
			}
			talk := &cudart.Communication{Verb: c.verb, DType: dag.F32, Rank: int32(r), Root: 1, Group: all}
			if c.verb == dag.AllReduce || c.verb == dag.Reduce || c.verb == dag.ReduceScatter {
				talk.Reduction = dag.Sum
			}
			if err := w.Communicate("node", talk, Memory{Src: c.src, Dst: c.dst}); err != nil {
				return err
			}
			mu.Lock()
			if got[c.verb] == nil {
				got[c.verb] = make([][]byte, ranks)
			}
			got[c.verb][w.Place().Rank] = c.dst
			mu.Unlock()
		}
		return nil
	})
	for _, err := range ended {
		require.NoError(t, err)
	}
	for r := range ranks {
		f := float32(r)
		require.Equal(t, floatsOf(3, 6, 3), got[dag.AllReduce][r])
		require.Equal(t, floatsOf(6), got[dag.Broadcast][r])
		require.Equal(t, floatsOf(0, 1, 2), got[dag.AllGather][r])
		require.Equal(t, floatsOf([]float32{3, 30, 300}[r]), got[dag.ReduceScatter][r])
		require.Equal(t, floatsOf(f, 10+f, 20+f), got[dag.AllToAll][r])
	}
	require.Equal(t, floatsOf(3, 30), got[dag.Reduce][1])
	require.Equal(t, floatsOf(0, 0), got[dag.Reduce][0])
}

func TestElementsAreCombinedInTheOrderOfTheRanks(t *testing.T) {
	big, one := float32(1<<24), float32(1)
	out := make([]byte, 4)
	combine(dag.Sum, dag.F32, out, [][]byte{floatsOf(big), floatsOf(one), floatsOf(-big)})
	require.Equal(t, floatsOf(0), out, "the one is lost beside 2^24")
	combine(dag.Sum, dag.F32, out, [][]byte{floatsOf(big), floatsOf(-big), floatsOf(one)})
	require.Equal(t, floatsOf(1), out)
	small := make([]byte, 1)
	combine(dag.Min, dag.I8, small, [][]byte{{0xff}, {1}})
	require.Equal(t, []byte{0xff}, small)
	combine(dag.Min, dag.U8, small, [][]byte{{0xff}, {1}})
	require.Equal(t, []byte{1}, small)
}

func TestAFailureEndsAllRanksWithItsCause(t *testing.T) {
	ended := together(t, 3, unchanged, func(w *World) error {
		if w.Place().Rank == 2 {
			return errGarbage
		}
		c := &cudart.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, DType: dag.F32, Rank: int32(w.Place().Rank), Group: dag.Among{Count: 3, Step: 1}}
		return w.Communicate("sum", c, Memory{Src: floatsOf(1), Dst: make([]byte, 4)})
	})
	require.Equal(t, errGarbage, ended[2])
	for _, err := range ended[:2] {
		require.ErrorIs(t, err, ErrRank)
		require.ErrorContains(t, err, "rank 2 of 3 (host ")
		require.ErrorContains(t, err, ") failed: "+errGarbage.Error())
	}
}

func TestRanksThatDoNotFitAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*JoinOptions)
		want   string
	}{
		"another file": {func(o *JoinOptions) {
			if o.Place.Rank == 2 {
				o.Hash, o.Outline = "other", func() []string { return []string{"up\x00memcpy", "sum.3\x00communication"} }
			}
		}, `) runs another pipeline: node 1 is "sum.3", here "sum"`},
		"other arguments": {func(o *JoinOptions) {
			if o.Place.Rank == 2 {
				o.Hash, o.Outline = "other", func() []string { return []string{"up\x00memcpy", "sum\x00op=max"} }
			}
		}, `) runs another pipeline: node 1, "sum", has op=max, here communication`},
		"other contents": {func(o *JoinOptions) {
			lines, first := []string{"up\x00memcpy", "sum\x00communication", "buffer\x00x\x00init=i"}, o.Expected
			if o.Place.Rank == 2 {
				o.Hash, o.Outline = "other", func() []string { return append(lines[:2:2], "buffer\x00x\x00init=2*i") }
			}
			o.Expected = func(m Member) (Expected, error) {
				e, err := first(m)
				e.Outline = func() []string { return lines }
				return e, err
			}
		}, `) runs another pipeline: buffer "x" has init=2*i, here init=i`},
		"one GPU for two": {func(o *JoinOptions) { o.Device = [...]string{"GPU-0", "GPU-1", "GPU-1"}[o.Place.Rank] },
			`) uses the same GPU as rank 1 (GPU-1), but NCCL needs one for each rank: start fewer ranks, or add --backend cpu`},
		"a pipeline that is refused": {func(o *JoinOptions) { o.Check = func([]Member) error { return errGarbage } }, ") refuses the pipeline: " + errGarbage.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range together(t, 3, c.change, func(*World) error { return nil }) {
				require.ErrorIs(t, err, ErrRank)
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// All ranks of a test have one clock, so what is found must be 0 within the error that is stated.
func TestClocksOfOneMachineAreEqual(t *testing.T) {
	ended := together(t, 3, unchanged, func(w *World) error {
		offset, within, err := w.Clock(t.Context())
		switch {
		case err != nil:
			return err
		case w.Place().Rank == 0 && (offset != 0 || within != 0):
			return fmt.Errorf("rank 0 is %v within %v from its own clock", offset, within)
		case offset.Abs() > within:
			return fmt.Errorf("rank %d is %v within %v from rank 0", w.Place().Rank, offset, within)
		}
		return nil
	})
	require.Equal(t, []error{nil, nil, nil}, ended)
	_, _, err := (&World{place: Place{Rank: 1}}).Clock(t.Context())
	require.Equal(t, errNoWorld, err)
}

func TestADifferenceLeavesOutWhatIsEqual(t *testing.T) {
	require.Equal(t, `node 1, "m", has n=8, a=3, here n=9, a=2`, firstDifference([]string{"up\x00memcpy", "m\x00map y = a*x, n=8, a=3, out x"}, []string{"up\x00memcpy", "m\x00map y = a*x, n=9, a=2, out x"}))
}
