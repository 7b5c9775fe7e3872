// Tests of the order checker: its exact reports, and what it must not report. Timing never matters, so neither does the seed.

package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart"
)

// script runs lines against four streams, four events and a buffer x of 1,024 bytes:
//
//	NAME STREAM ACCESS...   a kernel; an access is r or w and a range: w0:64
//	record EVENT STREAM     wait EVENT STREAM     sync STREAM     host EVENT
type script struct {
	*bench
	streams []*stream
	events  []cudart.Event
	x       cudart.Ptr
}

func newScript(t testing.TB, b *bench) *script {
	s := &script{bench: b, x: b.alloc(1024)}
	for range 4 {
		s.streams = append(s.streams, b.stream())
		s.events = append(s.events, b.event(false))
	}
	return s
}

func (s *script) command(line string) cudart.Command {
	f := strings.Fields(line)
	var e, st int
	switch f[0] {
	case "record", "wait":
		_, err := fmt.Sscanf(line[len(f[0]):], " e%d s%d", &e, &st)
		require.NoError(s, err)
		if f[0] == "record" {
			return record(s.streams[st], s.events[e])
		}
		return wait(s.streams[st], s.events[e])
	}
	_, err := fmt.Sscanf(f[1], "s%d", &st)
	require.NoError(s, err)
	c := s.kernel(s.streams[st], "noop")
	c.Label = f[0]
	for _, a := range f[2:] {
		var lo, hi int64
		_, err := fmt.Sscanf(a[1:], "%d:%d", &lo, &hi)
		require.NoError(s, err)
		c.Accesses = append(c.Accesses, cudart.Access{Ptr: s.x + cudart.Ptr(lo), Bytes: hi - lo, Write: a[0] == 'w', Name: "x", Offset: lo})
	}
	return c
}

func (s *script) run(lines string) error {
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		line = strings.TrimSpace(line)
		f := strings.Fields(line)
		var n int
		switch f[0] {
		case "sync":
			_, _ = fmt.Sscanf(f[1], "s%d", &n)
			require.NoError(s, s.streams[n].Synchronize(context.Background()))
			continue
		case "host":
			_, _ = fmt.Sscanf(f[1], "e%d", &n)
			require.NoError(s, s.events[n].Synchronize(context.Background()))
			continue
		}
		l, err := s.Encode([]cudart.Command{s.command(line)}, cudart.ListOptions{})
		require.NoError(s, err)
		err = l.Submit()
		require.NoError(s, l.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

func TestOrder(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"one stream is ordered", `
			a s0 w0:1024
			b s0 r0:1024 w0:64`, ""},
		{"a write is not seen by another stream", `
			a s0 w0:1024
			b s1 r512:1024`,
			`node "b" (stream 1) reads x[512:1024], which node "a" (stream 0) writes, and nothing orders the two: a wait is missing`},
		{"a wait orders", `
			a s0 w0:1024
			record e0 s0
			wait e0 s1
			b s1 r512:1024`, ""},
		{"a record before the write does not", `
			record e0 s0
			a s0 w0:1024
			wait e0 s1
			b s1 w1000:1024`,
			`node "b" (stream 1) writes x[1000:1024], which node "a" (stream 0) writes, and nothing orders the two: a wait is missing`},
		{"reads do not conflict", `
			a s0 r0:64
			b s1 r0:64
			c s2 r32:128`, ""},
		{"a write conflicts with each reader", `
			a s0 r0:64
			b s1 r0:64
			record e0 s0
			wait e0 s2
			c s2 w0:64`,
			`node "c" (stream 2) writes x[0:64], which node "b" (stream 1) reads, and nothing orders the two: a wait is missing`},
		{"disjoint ranges do not conflict", `
			a s0 w0:64
			b s1 w64:128
			c s2 w128:1024`, ""},
		{"waits are transitive", `
			a s0 w0:64
			record e0 s0
			wait e0 s1
			record e1 s1
			wait e1 s2
			b s2 w0:64`, ""},
		{"a wait takes the record before it", `
			a s0 w0:64
			record e0 s0
			wait e0 s1
			b s0 w64:128
			record e0 s0
			c s1 r0:64
			d s1 r64:128`,
			`node "d" (stream 1) reads x[64:128], which node "b" (stream 0) writes, and nothing orders the two: a wait is missing`},
		{"a wait on an event never recorded orders nothing", `
			a s0 w0:64
			wait e0 s1
			b s1 w0:64`,
			`node "b" (stream 1) writes x[0:64], which node "a" (stream 0) writes, and nothing orders the two: a wait is missing`},
		{"the host orders what it has waited for", `
			a s0 w0:64
			b s1 w64:128
			sync s0
			c s2 w0:64
			d s3 r127:128`,
			`node "d" (stream 3) reads x[127:128], which node "b" (stream 1) writes, and nothing orders the two: a wait is missing`},
		{"the host waits for an event", `
			a s0 w0:64
			record e0 s0
			b s0 w64:128
			host e0
			c s1 w0:64
			d s1 w64:65`,
			`node "d" (stream 1) writes x[64:65], which node "b" (stream 0) writes, and nothing orders the two: a wait is missing`},
		{"a range is split where parts have other histories", `
			a s0 w0:1024
			record e0 s0
			wait e0 s1
			wait e0 s2
			b s1 w100:200
			c s2 w300:400
			record e2 s2
			wait e2 s0
			d s0 r0:100 r200:1024
			e s0 r150:250`,
			`node "e" (stream 0) reads x[150:200], which node "b" (stream 1) writes, and nothing orders the two: a wait is missing`},
		{"what lies behind an inner range keeps its history", `
			a s0 w0:1024
			record e0 s0
			wait e0 s1
			b s1 w100:200
			c s1 r300:400
			d s2 r50:60`,
			`node "d" (stream 2) reads x[50:60], which node "a" (stream 0) writes, and nothing orders the two: a wait is missing`},
		{"and what lies after it", `
			a s0 w0:1024
			record e0 s0
			wait e0 s1
			b s1 w100:200
			d s2 r1000:1010`,
			`node "d" (stream 2) reads x[1000:1010], which node "a" (stream 0) writes, and nothing orders the two: a wait is missing`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, seed := range []uint64{0, 1, 2} {
				s := newScript(t, newBench(t, Options{CheckOrder: true, Perturb: seed}))
				err := s.run(c.script)
				if c.want == "" {
					require.NoError(t, err)
					continue
				}
				var race *cudart.RaceError
				require.ErrorAs(t, err, &race)
				require.Equal(t, c.want, race.Error())
				require.Equal(t, s.streams[race.Second.StreamNumber], race.Second.Stream)
			}
		})
	}
}

func TestOrderOfCopiesIsWhatTheyTouch(t *testing.T) {
	b := newBench(t, Options{CheckOrder: true})
	h, _ := b.host(1024)
	d, other := b.alloc(1024), b.alloc(1024)
	s, u := b.stream(), b.stream()
	l := b.list(toDevice(s, d, h, 512), cudart.Command{Kind: cudart.SetMemory, Label: "zero", Stream: u, Dst: other, Bytes: 256, Width: 4})
	require.NoError(t, l.Submit())
	require.NoError(t, l.SetCopy(1, d+256, 0))
	err := l.Submit()
	require.EqualError(t, err,
		`node "zero" (stream 1) writes 1024 bytes of memory of device 0[256:512], which node "up" (stream 0) writes, and nothing orders the two: a wait is missing`)
	// What is declared of either side names the buffer, and the bytes as the file counts them.
	require.NoError(t, b.Synchronize(context.Background(), 0))
	up := toDevice(s, d, h, 512)
	up.Accesses = []cudart.Access{{Ptr: h, Bytes: 512, Name: "from", Offset: 8}, {Ptr: d, Bytes: 512, Write: true, Name: "to", Offset: 100}}
	down := toHost(u, h+256, d+256, 256)
	down.Accesses = []cudart.Access{{Ptr: d + 256, Bytes: 256, Name: "to", Offset: 356}, {Ptr: h + 256, Bytes: 256, Write: true, Name: "from", Offset: 264}}
	require.EqualError(t, b.submit(up, down), `node "down" (stream 1) reads to[356:612], which node "up" (stream 0) writes, and nothing orders the two: a wait is missing`)
	require.NoError(t, b.Synchronize(context.Background(), 0))
	down.Src = other
	down.Accesses[0] = cudart.Access{Ptr: other, Bytes: 256, Name: "else"}
	require.EqualError(t, b.submit(up, down), `node "down" (stream 1) writes from[264:520], which node "up" (stream 0) reads, and nothing orders the two: a wait is missing`)
	require.ErrorContains(t, b.submit(cudart.Command{Kind: cudart.CopyMemory, Label: "self", Stream: s, Dst: d, Src: d + 8, Bytes: 16}),
		"source and destination overlap")
}

func TestOrderInGraphs(t *testing.T) {
	b := newBench(t, Options{CheckOrder: true})
	s := newScript(t, b)
	commands := []cudart.Command{s.command("a s0 w0:64"), s.command("b s0 r0:64 w64:128"), s.command("c s0 r0:64 w128:192"), s.command("d s0 r64:192 w0:8")}
	build := func(deps ...[]int32) cudart.Graph {
		g, err := b.BuildGraph(commands, deps, cudart.GraphOptions{Origin: s.streams[0]})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, g.Close()) })
		return g
	}
	whole := build(nil, []int32{0}, []int32{0}, []int32{1, 2})
	require.NoError(t, whole.Launch(s.streams[0]))
	require.NoError(t, whole.Launch(s.streams[1]), "a graph never overlaps itself")
	require.NoError(t, s.run("late s1 w0:1024"))
	require.NoError(t, s.streams[1].Synchronize(context.Background()))
	require.NoError(t, b.Synchronize(context.Background(), 0))
	require.NoError(t, whole.Launch(s.streams[0]))
	require.EqualError(t, s.run("late s2 w70:80"),
		`node "late" (stream 2) writes x[70:80], which node "b" (graph) writes, and nothing orders the two: a wait is missing`)
	require.NoError(t, b.Synchronize(context.Background(), 0))
	broken := build(nil, []int32{0}, []int32{0}, []int32{1})
	err := broken.Launch(s.streams[0])
	require.EqualError(t, err, `node "d" (graph) reads x[128:192], which node "c" (graph) writes, and nothing orders the two: a wait is missing`)
	var race *cudart.RaceError
	require.ErrorAs(t, err, &race)
	require.Equal(t, [2]cudart.RaceAccess{{Label: "c", Index: 2, StreamNumber: -1, Write: true}, {Label: "d", Index: 3, StreamNumber: -1}}, [2]cudart.RaceAccess{race.First, race.Second})
}

// TestOrderAgainstEveryPair compares the checker with the definition: two accesses race if they conflict and no path of stream
// order, waits and host synchronisation connects them.
func TestOrderAgainstEveryPair(t *testing.T) {
	b := newBench(t, Options{CheckOrder: true})
	rapid.Check(t, func(t *rapid.T) {
		type op struct {
			kind, stream, event int
			lo, hi              int64
			write               bool
		}
		ops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
			o := op{
				kind: rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 2, 3}).Draw(t, "kind"), stream: rapid.IntRange(0, 3).Draw(t, "stream"),
				event: rapid.IntRange(0, 2).Draw(t, "event"), lo: rapid.Int64Range(0, 15).Draw(t, "lo"), write: rapid.Bool().Draw(t, "write"),
			}
			o.hi = rapid.Int64Range(o.lo+1, 16).Draw(t, "hi")
			return o
		}), 1, 40).Draw(t, "ops")

		x, err := b.Alloc(0, 16)
		require.NoError(t, err)
		var streams []cudart.Stream
		for range 4 {
			s, err := b.NewStream(0, 0)
			require.NoError(t, err)
			streams = append(streams, s)
		}
		var events []cudart.Event
		for range 3 {
			e, err := b.NewEvent(0, false)
			require.NoError(t, err)
			events = append(events, e)
		}
		// after[i] is the set of ops before op i; last, recorded and host are the same for streams, events and the host.
		n := len(ops)
		after := make([][]bool, n)
		union := func(a, b []bool) []bool {
			c := make([]bool, n)
			for i := range c {
				c[i] = a != nil && a[i] || b != nil && b[i]
			}
			return c
		}
		last, recorded := make([][]bool, 4), make([][]bool, 3)
		var host []bool
		for i, o := range ops {
			switch o.kind {
			case 3:
				require.NoError(t, streams[o.stream].Synchronize(context.Background()))
				host = union(host, last[o.stream])
				continue
			}
			c := cudart.Command{Stream: streams[o.stream], Label: fmt.Sprint(i), Node: int32(i), Event: events[o.event], Grid: one, Block: one}
			switch o.kind {
			case 0:
				c.Kernel, err = b.module.Kernel("noop")
				require.NoError(t, err)
				c.Accesses = []cudart.Access{{Ptr: x + cudart.Ptr(o.lo), Bytes: o.hi - o.lo, Write: o.write}}
			case 1:
				c.Kind = cudart.RecordEvent
			case 2:
				c.Kind = cudart.WaitEvent
			}
			l, err := b.Encode([]cudart.Command{c}, cudart.ListOptions{})
			require.NoError(t, err)
			got := l.Submit()
			require.NoError(t, l.Close())
			switch o.kind {
			case 1:
				require.NoError(t, got)
				recorded[o.event] = union(union(last[o.stream], host), nil)
				continue
			case 2:
				require.NoError(t, got)
				last[o.stream] = union(last[o.stream], recorded[o.event])
				continue
			}
			last[o.stream] = union(last[o.stream], host)
			after[i] = union(last[o.stream], nil)
			last[o.stream][i] = true
			want := map[int]bool{}
			for j := range i {
				p := ops[j]
				if p.kind == 0 && (p.write || o.write) && p.lo < o.hi && o.lo < p.hi && !after[i][j] {
					want[j] = true
				}
			}
			var race *cudart.RaceError
			if len(want) == 0 {
				require.NoError(t, got)
				continue
			}
			require.ErrorAs(t, got, &race)
			require.True(t, want[int(race.First.Node)], "reported %v, expected one of %v", race, want)
			break // the checker's state after a race is undefined
		}
		for _, s := range streams {
			require.NoError(t, s.Close())
		}
		for _, e := range events {
			require.NoError(t, e.Close())
		}
		require.NoError(t, b.Free(x))
	})
}

func TestSequencesAreUsedAgain(t *testing.T) {
	b := newBench(t, Options{CheckOrder: true})
	for range 100 {
		s, err := b.NewStream(0, 0)
		require.NoError(t, err)
		require.NoError(t, b.submit(b.kernel(s, "noop")))
		require.NoError(t, s.Synchronize(context.Background()))
		require.NoError(t, s.Close())
	}
	require.Less(t, len(b.order.clocks), 3)
	var race *cudart.RaceError
	require.False(t, errors.As(b.Synchronize(context.Background(), 0), &race))
}

func BenchmarkOrderOfAnArena(b *testing.B) {
	const tiles = 10_000
	t := newBench(b, Options{CheckOrder: true})
	x := t.alloc(tiles * 256)
	s := []*stream{t.stream(), t.stream()}
	var commands []cudart.Command
	for i := range tiles {
		c := t.kernel(s[i%2], "noop")
		j := i * 7919 % tiles // in no order
		c.Accesses = []cudart.Access{{Ptr: x + cudart.Ptr(j*256), Bytes: 256, Write: true, Name: "x"}}
		commands = append(commands, c)
	}
	l := t.list(commands...)
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Submit(); err != nil {
			b.Fatal(err)
		}
		if err := t.Synchronize(context.Background(), 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tiles, "ns/command")
}
