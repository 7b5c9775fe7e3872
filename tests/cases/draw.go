//go:build linux

// Random pipelines.

package main

import (
	"fmt"
	"strings"
)

// drawing makes a pipeline.
type drawing struct {
	*trial
	p     *pipeline
	flat  bool // without loops, branches and repetitions
	named int
	depth int
}

func (t *trial) pipeline(flat bool, nodes int) *pipeline {
	d := &drawing{trial: t, flat: flat, p: &pipeline{element: pick(t, elements...), rows: 12}}
	switch t.IntN(3) {
	case 0:
		d.p.columns = 8
	case 1:
		d.p.rows = 96
	}
	d.p.module = d.p.element.name == "i32" && !t.chance(3)
	d.add("in", true, "{ramp: [1, 2]}", func(i int) int64 { return 1 + 2*int64(i) })
	var uploads []*node
	for i := range 2 + t.IntN(4) {
		name := fmt.Sprintf("d%d", i)
		if t.chance(4) {
			start := int64(t.IntN(9))
			d.add(name, false, fmt.Sprint(start), func(int) int64 { return start })
			continue
		}
		b := d.add(name, false, "", nil)
		uploads = append(uploads, d.copyNode(fmt.Sprintf("up%d", i), d.whole(b), d.whole(0)))
	}
	d.p.nodes = append(uploads, d.list(nodes)...)
	for i := range d.p.buffers {
		if b := d.p.buffers[i]; !b.host && (i == 1 || t.chance(2)) {
			out := d.add("out_"+b.name, true, "", nil)
			d.p.buffers[out].saved = true
			d.p.nodes = append(d.p.nodes, d.copyNode("down_"+b.name, d.whole(out), d.whole(i)))
		}
	}
	return d.p
}

func (d *drawing) add(name string, host bool, init string, first func(i int) int64) int {
	d.p.buffers = append(d.p.buffers, buffer{name: name, host: host, init: init, first: first, offset: len(d.p.buffers) * d.p.size()})
	return len(d.p.buffers) - 1
}

func (d *drawing) name(of string) string {
	d.named++
	return fmt.Sprintf("%s%d", of, d.named)
}

// region is a slice or tile of a buffer: its text and its elements.
type region struct {
	text       string
	at         []int
	contiguous bool
}

func (d *drawing) whole(b int) region { return d.box(b, 0, d.p.rows, 0, max(d.p.columns, 1)) }

// box is rows and columns of a buffer.
func (d *drawing) box(b, low, high, left, right int) region {
	buffer, columns := &d.p.buffers[b], max(d.p.columns, 1)
	r := region{text: buffer.name, contiguous: left == 0 && right == columns}
	if low > 0 || high < d.p.rows || !r.contiguous {
		r.text += fmt.Sprintf("(%d..%d)", low, high)
	}
	if !r.contiguous {
		r.text += fmt.Sprintf("(%d..%d)", left, right)
	}
	for row := low; row < high; row++ {
		for column := left; column < right; column++ {
			r.at = append(r.at, buffer.offset+row*columns+column)
		}
	}
	return r
}

// device draws a device buffer.
func (d *drawing) device() int {
	for {
		if b := d.IntN(len(d.p.buffers)); !d.p.buffers[b].host {
			return b
		}
	}
}

// regions draws slices of equal size, of which two are the same or have no element in common. tiles says that they may be tiles.
func (d *drawing) regions(count int, tiles bool) []region {
	rows, columns := 1+d.IntN(d.p.rows), max(d.p.columns, 1)
	if d.chance(3) {
		rows = d.p.rows
	}
	width := columns
	if tiles && d.chance(2) {
		width = 1 + d.IntN(columns)
	}
	var list []region
	for len(list) < count {
		low, left := d.IntN(d.p.rows-rows+1), d.IntN(columns-width+1)
		r := d.box(d.device(), low, low+rows, left, left+width)
		fits := true
		for _, other := range list {
			fits = fits && (r.text == other.text || !common(&r, &other))
		}
		if fits {
			list = append(list, r)
		}
	}
	return list
}

func common(a, b *region) bool {
	in := map[int]bool{}
	for _, x := range a.at {
		in[x] = true
	}
	for _, y := range b.at {
		if in[y] {
			return true
		}
	}
	return false
}

func reads(n *node, r region) {
	for _, at := range r.at {
		n.touches = append(n.touches, touch{at, false})
	}
}

func writes(n *node, r region) {
	for _, at := range r.at {
		n.touches = append(n.touches, touch{at, true})
	}
}

// each makes a node that computes every element of a region from the elements of others at the same place.
func (d *drawing) each(name, text string, to region, from []region, f func(i int, in []int64) int64) *node {
	n := &node{name: name, text: text}
	for _, r := range from {
		reads(n, r)
	}
	writes(n, to)
	low := d.p.element.low
	n.do = func(m []int64) {
		in, out := make([]int64, len(from)), make([]int64, len(to.at))
		for i := range to.at {
			for k := range from {
				in[k] = m[from[k].at[i]]
			}
			out[i] = low(f(i, in))
		}
		for i, at := range to.at {
			m[at] = out[i]
		}
	}
	return n
}

func (d *drawing) copyNode(name string, to, from region) *node {
	return d.each(name, fmt.Sprintf("memcpy: {from: %q, to: %q}", from.text, to.text), to, []region{from}, func(_ int, in []int64) int64 { return in[0] })
}

// list draws nodes.
func (d *drawing) list(count int) []*node {
	var all []*node
	for len(all) < count {
		if d.flat || !d.chance(6) {
			all = append(all, d.simple())
			continue
		}
		switch {
		case d.depth == 0 && d.chance(2):
			all = append(all, d.repetition()...)
		case d.depth < 2 && d.chance(2):
			all = append(all, d.loop())
		case d.depth < 2:
			all = append(all, d.branch())
		}
	}
	return all
}

// simple draws a copy, a memset, a kernel or a map.
func (d *drawing) simple() *node {
	kind := d.IntN(8)
	kernels := d.p.element.name == "i32"
	switch {
	case kind == 0:
		for {
			if r := d.regions(2, true); !common(&r[0], &r[1]) {
				return d.copyNode(d.name("copy"), r[1], r[0])
			}
		}
	case kind == 1:
		r, value := d.regions(1, true)[0], int64(d.IntN(9))
		if d.p.element.bytes == 8 {
			value = 0
		}
		return d.each(d.name("set"), fmt.Sprintf("memset: {to: %q, value: %d}", r.text, value), r, nil, func(int, []int64) int64 { return value })
	case kernels && kind < 5:
		return d.kernel()
	}
	return d.mapNode()
}

// kernel draws a launch of a kernel of the library or of the module.
func (d *drawing) kernel() *node {
	a := int64(d.IntN(7)) - 3
	r := d.regions(3, false)
	n := len(r[0].at)
	quoted := func(r region) string { return fmt.Sprintf("%q", r.text) }
	launch := func(kernel string, args ...any) string {
		var texts []string
		for _, arg := range args {
			texts = append(texts, fmt.Sprint(arg))
		}
		return fmt.Sprintf("kernel: %s, args: [%s]", kernel, strings.Join(texts, ", "))
	}
	grid := fmt.Sprintf(", grid: %d, block: 32", (n+31)/32)
	different := !common(&r[0], &r[1])
	switch kind := d.IntN(6); {
	case kind == 0 && d.p.module && different:
		return d.each(d.name("twist"), launch("own.twist", fmt.Sprintf("{i32: %d}", n), fmt.Sprintf("{in: %q}", r[0].text), fmt.Sprintf("{out: %q}", r[1].text),
			pick(d.trial, quoted(d.regions(1, false)[0]), fmt.Sprintf("{unused: %q}", d.regions(1, false)[0].text)))+grid,
			r[1], r[:1], func(i int, in []int64) int64 { return 3*in[0] + int64(i) })
	case kind == 1 && d.p.module:
		return d.each(d.name("bump"), launch("own.bump", fmt.Sprintf("{i32: %d}", n), quoted(r[0]))+grid, r[0], r[:1],
			func(i int, in []int64) int64 { return 5*in[0] + int64(i) })
	case kind == 2:
		return d.each(d.name("scale"), launch("scale", n, a, quoted(r[0])), r[0], r[:1], func(_ int, in []int64) int64 { return a * in[0] })
	case kind == 3 && different:
		return d.each(d.name("axpy"), launch("axpy", n, a, quoted(r[0]), quoted(r[1])), r[1], r[:2], func(_ int, in []int64) int64 { return a*in[0] + in[1] })
	case kind == 4 && different:
		return d.each(d.name("move"), launch("copy", n, quoted(r[0]), quoted(r[1])), r[1], r[:1], func(_ int, in []int64) int64 { return in[0] })
	}
	return d.each(d.name("add"), launch("add", n, quoted(r[0]), quoted(r[1]), quoted(r[2])), r[2], r[:2], func(_ int, in []int64) int64 { return in[0] + in[1] })
}

// mapNode draws an elementwise computation.
func (d *drawing) mapNode() *node {
	r := d.regions(3, false)
	text, f := d.expression(3)
	used := []string{fmt.Sprintf("o: %q", r[2].text)}
	var from []region
	var names []int
	for k, name := range []string{"x", "y"} {
		if strings.Contains(text, name+".") {
			used = append(used, fmt.Sprintf("%s: %q", name, r[k].text))
			from, names = append(from, r[k]), append(names, k)
		}
	}
	text = strings.NewReplacer("x.", "x", "y.", "y").Replace(text)
	return d.each(d.name("map"), fmt.Sprintf("map: %q, with: {%s}", "o = "+text, strings.Join(used, ", ")), r[2], from, func(_ int, in []int64) int64 {
		var both [2]int64
		for k, name := range names {
			both[name] = in[k]
		}
		return f(both)
	})
}

// expression draws a computation of whole numbers in 64 bits that wraps. Names are followed by a dot.
func (d *drawing) expression(depth int) (string, func(in [2]int64) int64) {
	if depth == 0 || d.chance(5) {
		switch d.IntN(3) {
		case 0:
			v := int64(d.IntN(1 << d.IntN(20)))
			return fmt.Sprint(v), func([2]int64) int64 { return v }
		case 1:
			return "x.", func(in [2]int64) int64 { return in[0] }
		}
		return "y.", func(in [2]int64) int64 { return in[1] }
	}
	a, f := d.expression(depth - 1)
	b, g := d.expression(depth - 1)
	switch d.IntN(8) {
	case 0:
		return "(" + a + " + " + b + ")", func(in [2]int64) int64 { return f(in) + g(in) }
	case 1:
		return "(" + a + " - " + b + ")", func(in [2]int64) int64 { return f(in) - g(in) }
	case 2:
		return "(" + a + " * " + b + ")", func(in [2]int64) int64 { return f(in) * g(in) }
	case 3:
		return "min(" + a + ", " + b + ")", func(in [2]int64) int64 { return min(f(in), g(in)) }
	case 4:
		return "max(" + a + ", " + b + ")", func(in [2]int64) int64 { return max(f(in), g(in)) }
	case 5:
		c, h := d.expression(depth - 1)
		return "select(" + a + " < " + b + ", " + c + ", " + a + ")", func(in [2]int64) int64 {
			if f(in) < g(in) {
				return h(in)
			}
			return f(in)
		}
	case 6:
		by := 1 + int64(d.IntN(9))
		return fmt.Sprintf("floor(%s/%d)", a, by), func(in [2]int64) int64 {
			v := f(in)
			if v < 0 && v%by != 0 {
				return v/by - 1
			}
			return v / by
		}
	}
	return "(" + a + " == " + b + ")", func(in [2]int64) int64 {
		if f(in) == g(in) {
			return 1
		}
		return 0
	}
}

// repetition draws a foreach of copies between parts of two buffers.
func (d *drawing) repetition() []*node {
	name, parts := d.name("each"), pick(d.trial, 2, 3, 4, 6)
	one, two := d.device(), d.device()
	if one == two {
		return []*node{d.simple()}
	}
	size := d.p.rows / parts
	var all []*node
	for i := range parts {
		n := d.copyNode(fmt.Sprintf("%s.%d", name, i), d.box(two, i*size, (i+1)*size, 0, max(d.p.columns, 1)), d.box(one, i*size, (i+1)*size, 0, max(d.p.columns, 1)))
		n.inner = i > 0
		all = append(all, n)
	}
	all[0].group = fmt.Sprintf("{foreach: {i: %d}, name: %s.$i, memcpy: {from: \"%s(i of %d)\", to: \"%s(i of %d)\"}}", parts, name,
		d.p.buffers[one].name, parts, d.p.buffers[two].name, parts)
	return all
}

func (d *drawing) body() []*node {
	d.depth++
	defer func() { d.depth-- }()
	return d.list(1 + d.IntN(3))
}

func (d *drawing) loop() *node {
	times := 1 + d.IntN(4)
	return &node{name: d.name("loop"), text: fmt.Sprintf("repeat: {times: %d}", times), times: times, body: d.body()}
}

func (d *drawing) branch() *node {
	row, column, bound := d.IntN(d.p.rows), d.IntN(max(d.p.columns, 1)), int64(d.IntN(40))
	b := d.device()
	r := d.box(b, row, row+1, column, column+1)
	if d.p.columns > 0 {
		r.text = fmt.Sprintf("%s(%d..%d)(%d..%d)", d.p.buffers[b].name, row, row+1, column, column+1)
	}
	n := &node{name: d.name("branch"), text: fmt.Sprintf("if: %q", fmt.Sprintf("%s > %d", r.text, bound)), body: d.body(),
		holds: func(m []int64) bool { return m[r.at[0]] > bound }}
	if d.chance(2) {
		n.other = d.body()
	}
	return n
}
