//go:build linux

// The reference: pipelines as lists of nodes that each know the elements they touch and what they do to them, run one after the other as they are
// declared. It shares no code with dagrun.

package main

import (
	"fmt"
	"strings"
)

// element is a type of integers.
type element struct {
	name  string
	bytes int
	low   func(v int64) int64 // what is left of a number in so many bits
}

var elements = []element{
	{"i32", 4, func(v int64) int64 { return int64(int32(v)) }},
	{"i32", 4, func(v int64) int64 { return int64(int32(v)) }}, // twice: kernels take it
	{"i64", 8, func(v int64) int64 { return v }},
	{"u8", 1, func(v int64) int64 { return int64(uint8(v)) }},
	{"i16", 2, func(v int64) int64 { return int64(int16(v)) }},
	{"u32", 4, func(v int64) int64 { return int64(uint32(v)) }},
}

// buffer is one of a pipeline.
type buffer struct {
	name   string
	host   bool
	init   string // "" for none
	first  func(i int) int64
	saved  bool
	offset int // the first of its elements among those of all buffers
}

// touch is an element that a node reads or writes.
type touch struct {
	at    int // among those of all buffers
	write bool
}

// node is one of a pipeline.
type node struct {
	name    string
	text    string // its keys but for the name
	touches []touch
	do      func(m []int64)

	times int // of a loop
	body  []*node
	other []*node // of a branch
	holds func(m []int64) bool
	keys  string // further keys: stream, after, cost, priority

	group string // the text of a repetition that it belongs to; the first node of a group has it, the others none
	inner bool   // it is one of a group, but not the first
}

// pipeline is a random one.
type pipeline struct {
	element  element
	rows     int
	columns  int // 0: one dimension
	explicit bool
	buffers  []buffer
	nodes    []*node
	module   bool
}

func (p *pipeline) size() int { return p.rows * max(p.columns, 1) }

// start is the memory before the first replay.
func (p *pipeline) start() []int64 {
	memory := make([]int64, len(p.buffers)*p.size())
	for _, b := range p.buffers {
		for i := range p.size() {
			if b.first != nil {
				memory[b.offset+i] = p.element.low(b.first(i))
			}
		}
	}
	return memory
}

func play(nodes []*node, m []int64) {
	for _, n := range nodes {
		switch {
		case n.holds != nil:
			if n.holds(m) {
				play(n.body, m)
			} else {
				play(n.other, m)
			}
		case n.times > 0:
			for range n.times {
				play(n.body, m)
			}
		default:
			n.do(m)
		}
	}
}

// expected is what the file of a saved buffer must hold after some replays.
func (p *pipeline) expected(m []int64, b *buffer) []byte {
	var out []byte
	for _, v := range m[b.offset : b.offset+p.size()] {
		for k := range p.element.bytes {
			out = append(out, byte(uint64(v)>>(8*k)))
		}
	}
	return out
}

// yaml is the pipeline as a file.
func (p *pipeline) yaml() string {
	var w strings.Builder
	fmt.Fprintf(&w, "version: 1\nname: case\n")
	if p.explicit {
		fmt.Fprintf(&w, "sync: explicit\n")
	}
	if p.module {
		fmt.Fprintf(&w, "modules:\n  own: {source: own.ptx}\n")
	}
	shape := fmt.Sprint(p.rows)
	if p.columns > 0 {
		shape += fmt.Sprint(", ", p.columns)
	}
	fmt.Fprintf(&w, "buffers:\n")
	for _, b := range p.buffers {
		place := "device"
		if b.host {
			place = "host"
		}
		fmt.Fprintf(&w, "  %s: {place: %s, dtype: %s, shape: [%s]", b.name, place, p.element.name, shape)
		if b.init != "" {
			fmt.Fprintf(&w, ", init: %s", b.init)
		}
		if b.saved {
			fmt.Fprintf(&w, ", save: %s.bin", b.name)
		}
		fmt.Fprintf(&w, "}\n")
	}
	fmt.Fprintf(&w, "nodes:\n")
	list(&w, p.nodes, "  ")
	return w.String()
}

func list(w *strings.Builder, nodes []*node, indent string) {
	for _, n := range nodes {
		switch {
		case n.inner:
		case n.group != "":
			fmt.Fprintf(w, "%s- %s\n", indent, n.group)
		case n.body != nil:
			fmt.Fprintf(w, "%s- name: %s\n%s  %s\n%s  nodes:\n", indent, n.name, indent, n.text, indent)
			list(w, n.body, indent+"    ")
			if n.other != nil {
				fmt.Fprintf(w, "%s  else:\n", indent)
				list(w, n.other, indent+"    ")
			}
		default:
			fmt.Fprintf(w, "%s- {name: %s, %s%s}\n", indent, n.name, n.text, n.keys)
		}
	}
}

// conflict reports whether the order of two nodes matters.
func conflict(a, b *node) bool {
	writes := map[int]bool{}
	touched := map[int]bool{}
	for _, x := range a.touches {
		touched[x.at] = true
		writes[x.at] = writes[x.at] || x.write
	}
	for _, y := range b.touches {
		if touched[y.at] && (y.write || writes[y.at]) {
			return true
		}
	}
	return false
}
