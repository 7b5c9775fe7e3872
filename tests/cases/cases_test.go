//go:build linux

// Tests of the cases themselves: a few of each kind find nothing, and what is wrong is caught.

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain moves to the module's folder, where samples are.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		panic(err)
	}
	m.Run()
}

func TestAFewCasesOfEachKind(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out, settings{seed: 3, count: 60, only: -1, parallel: 4, keep: t.TempDir()}), "%s", &out)
	for _, kind := range kinds {
		require.Contains(t, out.String(), "\n"+kind.name)
	}
}

// A command that finds nothing and computes nothing is caught, and the finding says how to make it again.
func TestALyingCommandIsCaught(t *testing.T) {
	folder := t.TempDir()
	lying := filepath.Join(folder, "dagrun")
	require.NoError(t, os.WriteFile(lying, []byte("#!/bin/sh\necho '{\"races\": []}'\n"), 0o700))
	for kind, text := range map[int]string{0: "is wrong:", 1: "check misses the race of", 3: "brute force says 1"} {
		var out bytes.Buffer
		for try := 0; try < 20 && !bytes.Contains(out.Bytes(), []byte(text)); try++ {
			out.Reset()
			require.ErrorIs(t, orNil(run(&out, settings{seed: 3, only: kind + try*len(kinds), parallel: 1, dagrun: lying, keep: folder})), errFound)
		}
		require.Contains(t, out.String(), text)
		require.Regexp(t, `again: go run ./tests/cases -seed 3 -only \d+\n`, out.String())
	}
}

// orNil lets cases pass in which a lie is the truth.
func orNil(err error) error {
	if err == nil {
		return errFound
	}
	return err
}

// inTwo is a plan of a pipeline with its last node on a second stream, which waits for the first one or not.
func inTwo(p *pipeline, waits bool, offsets ...int64) *planFile {
	f := &planFile{Streams: make([]planStream, 2)}
	put := func(stream int, op, node string) {
		f.Streams[stream].Ops = append(f.Streams[stream].Ops, planOp{Op: op, Node: node})
		f.Order = append(f.Order, stream)
	}
	last := len(p.nodes) - 1
	for _, n := range p.nodes[:last] {
		put(0, "launch", n.name)
	}
	put(0, "record", "")
	if waits {
		put(1, "wait", "")
	}
	put(1, "launch", p.nodes[last].name)
	for i, offset := range offsets {
		f.Memory = append(f.Memory, placement{Buffer: fmt.Sprintf("%c", 'a'+i), Offset: offset})
	}
	return f
}

func TestWhatIsWrongWithPlans(t *testing.T) {
	d := &drawing{trial: &trial{Rand: rand.New(rand.NewPCG(1, 1))}, p: &pipeline{element: elements[0], rows: 8}}
	in, a, b, out := d.add("in", true, "", nil), d.add("a", false, "", nil), d.add("b", false, "", nil), d.add("out", true, "", nil)
	d.p.nodes = []*node{d.copyNode("up", d.whole(a), d.whole(in)), d.copyNode("over", d.whole(b), d.whole(a)), d.copyNode("down", d.whole(out), d.whole(b))}
	require.Empty(t, inTwo(d.p, true, 0, 32).wrong(d.p))
	require.Equal(t, "over and down are in no order", inTwo(d.p, false, 0, 32).wrong(d.p))
	require.Regexp(t, `^byte \d+: over and over use it for two buffers, in no order$`, inTwo(d.p, true, 0, 16).wrong(d.p))
	f := inTwo(d.p, true, 0, 32)
	f.Order = f.Order[:2]
	require.Equal(t, `"down" is not launched`, f.wrong(d.p))
	f.Order = []int{0, 0, 0, 0}
	require.Equal(t, "the order has ops that no stream has", f.wrong(d.p))
	f = inTwo(d.p, true)
	f.Streams[0].Ops[1] = f.Streams[0].Ops[0]
	require.Equal(t, `"up" is launched twice, or is no node`, f.wrong(d.p))

	// A buffer whose value is read after another one took its place, in this replay or the one before.
	c := d.add("c", false, "", nil)
	first, other, down := d.copyNode("first", d.whole(a), d.whole(in)), d.copyNode("other", d.whole(c), d.whole(in)), d.copyNode("down", d.whole(out), d.whole(a))
	d.p.nodes = []*node{first, other, down}
	require.Regexp(t, `^byte \d+: down reads what other may have written for another buffer$`, inTwo(d.p, true, 0, 64, 0).wrong(d.p))
	d.p.nodes = []*node{down, other}
	require.Regexp(t, `^byte \d+: down reads what another buffer had in the replay before$`, inTwo(d.p, true, 0, 64, 0).wrong(d.p))
}
