//go:build linux

// Plans with something changed: what is accepted must order every conflict, use no byte twice at a time, and compute what the reference does.

package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// planFile is a plan as its JSON has it, as far as the order of nodes and the place of buffers depend on it.
type planFile struct {
	Streams []planStream
	Order   []int
	Memory  []placement
}

type planStream struct{ Ops []planOp }

type planOp struct {
	Op, Node string
	Event    int
}

type placement struct {
	Buffer         string
	Device, Offset int64
}

// known works out which nodes of the plan come before which; problem says why it is no plan of these nodes.
func (f *planFile) known(p *pipeline) (known order, problem string) {
	index := map[string]int{}
	for i, n := range p.nodes {
		index[n.name] = i
		known = append(known, nil)
	}
	next := make([]int, len(f.Streams))
	stream := make([]map[int]bool, len(f.Streams)) // nodes that what comes next on it follows
	for s := range stream {
		stream[s] = map[int]bool{}
	}
	events := map[int]map[int]bool{}
	for _, s := range f.Order {
		if s < 0 || s >= len(f.Streams) || next[s] >= len(f.Streams[s].Ops) {
			return nil, "the order has ops that no stream has"
		}
		op := f.Streams[s].Ops[next[s]]
		next[s]++
		switch op.Op {
		case "launch":
			i, ok := index[op.Node]
			if !ok || known[i] != nil {
				return nil, fmt.Sprintf("%q is launched twice, or is no node", op.Node)
			}
			known[i] = map[int]bool{}
			for k := range stream[s] {
				known[i][k] = true
			}
			stream[s][i] = true
		case "record":
			events[op.Event] = map[int]bool{}
			for k := range stream[s] {
				events[op.Event][k] = true
			}
		case "wait":
			for k := range events[op.Event] {
				stream[s][k] = true
			}
		}
	}
	for i, n := range p.nodes {
		if known[i] == nil {
			return nil, fmt.Sprintf("%q is not launched", n.name)
		}
	}
	return known, ""
}

// use is what a node does with a byte of device memory.
type use struct {
	node, at int // the element is among those of all buffers
	write    bool
}

// wrong says what is wrong with a plan.
func (f *planFile) wrong(p *pipeline) string {
	known, problem := f.known(p)
	if problem != "" {
		return problem
	}
	for i, n := range p.nodes {
		for j := range i {
			if conflict(p.nodes[j], n) && !known[i][j] {
				return fmt.Sprintf("%s and %s are in no order", p.nodes[j].name, n.name)
			}
		}
	}
	places := map[int]int64{} // of elements
	for _, m := range f.Memory {
		for _, b := range p.buffers {
			if b.name != m.Buffer {
				continue
			}
			for i := range p.size() {
				places[b.offset+i] = m.Device<<40 + m.Offset + int64(i*p.element.bytes)
			}
		}
	}
	bytes := map[int64][]use{}
	for i, n := range p.nodes {
		for _, touch := range n.touches {
			if at, placed := places[touch.at]; placed {
				for k := range int64(p.element.bytes) {
					bytes[at+k] = append(bytes[at+k], use{i, touch.at, touch.write})
				}
			}
		}
	}
	for at, uses := range bytes {
		if problem := shared(p, uses, known); problem != "" {
			return fmt.Sprintf("byte %d: %s", at, problem)
		}
	}
	return ""
}

// shared says what is wrong with the uses of one byte by elements of several buffers. uses are in declared order, reads of a node first.
func shared(p *pipeline, uses []use, known order) string {
	before := func(a, b int) bool { return a != b && known[b][a] }
	lives := map[int][2]int{} // by element: the node that wrote its value, and whether there is one
	for _, u := range uses {
		for _, other := range uses {
			if other.at != u.at && (u.write || other.write) && !before(u.node, other.node) && !before(other.node, u.node) {
				return fmt.Sprintf("%s and %s use it for two buffers, in no order", p.nodes[u.node].name, p.nodes[other.node].name)
			}
		}
		if u.write {
			lives[u.at] = [2]int{u.node, 1}
			continue
		}
		for _, other := range uses { // nothing may come between a value and its reader
			writer := lives[u.at]
			if other.at != u.at && other.write && !before(u.node, other.node) && !(writer[1] == 1 && before(other.node, writer[0])) {
				return fmt.Sprintf("%s reads what %s may have written for another buffer", p.nodes[u.node].name, p.nodes[other.node].name)
			}
		}
		if writer := lives[u.at]; writer[1] == 0 { // its value is older than the replay
			for _, other := range uses {
				if other.at != u.at && other.write {
					return fmt.Sprintf("%s reads what another buffer had in the replay before", p.nodes[u.node].name)
				}
			}
		}
	}
	return ""
}

type (
	object = map[string]any
	array  = []any
)

// change changes one thing of a plan.
func (t *trial) change(plan object) string {
	streams := plan["streams"].(array)
	stream := t.IntN(len(streams))
	ops, order := streams[stream].(object)["ops"].(array), plan["order"].(array)
	memory := plan["memory"].(array)
	set := func(ops array) { streams[stream].(object)["ops"] = ops }
	// slot is where the order has an op of the stream.
	slot := func(op int) int {
		for k, s := range order {
			if fmt.Sprint(s) == fmt.Sprint(streams[stream].(object)["id"]) {
				if op == 0 {
					return k
				}
				op--
			}
		}
		return 0
	}
	without := func(list array, k int) array { return append(append(array{}, list[:k]...), list[k+1:]...) }
	number := func() any { return pick[any](t, -1, 0, 1, 2, 3, 7, 1<<31, 1e300, "x", nil, 0.5) }
	kind := t.IntN(14)
	at := 0
	if len(ops) > 0 {
		at = t.IntN(len(ops))
	} else {
		kind = 12
	}
	switch kind {
	case 0, 1: // an op less
		what := ops[at].(object)["op"]
		plan["order"] = without(order, slot(at))
		set(without(ops, at))
		return fmt.Sprint("without ", what)
	case 2, 3: // two ops of a stream swapped
		other := t.IntN(len(ops))
		ops[at], ops[other] = ops[other], ops[at]
		return "ops swapped"
	case 4: // submitted in another order
		k, other := t.IntN(len(order)), t.IntN(len(order))
		order[k], order[other] = order[other], order[k]
		return "order swapped"
	case 5, 6: // an op on another stream
		to := t.IntN(len(streams))
		target := streams[to].(object)
		op, k := ops[at], slot(at)
		set(without(ops, at))
		order[k] = target["id"]
		list := target["ops"].(array)
		seen := 0
		for _, s := range order[:k] {
			if fmt.Sprint(s) == fmt.Sprint(target["id"]) {
				seen++
			}
		}
		seen = min(seen, len(list))
		target["ops"] = append(append(append(array{}, list[:seen]...), op), list[seen:]...)
		return "op moved"
	case 7: // another event
		for k := range ops {
			if op := ops[(at+k)%len(ops)].(object); op["event"] != nil {
				op["event"] = t.IntN(4)
				return "event changed"
			}
		}
	case 8, 9, 10: // a buffer elsewhere
		if len(memory) > 0 {
			m := memory[t.IntN(len(memory))].(object)
			m["offset"] = pick[any](t, memory[t.IntN(len(memory))].(object)["offset"], 0, 256, 512, 4, 1<<40, -256)
			return "buffer moved"
		}
	case 11:
		if len(memory) > 0 {
			memory[t.IntN(len(memory))].(object)[pick(t, "bytes", "device", "offset")] = number()
			return "memory changed"
		}
	case 12: // anything at all
		keys := []string{}
		for key := range plan {
			keys = append(keys, key)
		}
		key := pick(t, "edges", "kept", "costs", "stats", "works", "strategy", "machine", "version", "graph", "work", "streams", "order", "memory")
		if t.chance(2) {
			delete(plan, key)
			return "without " + key
		}
		plan[key] = pick[any](t, number(), array{}, object{}, plan[keys[0]])
		return key + " changed"
	case 13:
		ops[at].(object)[pick(t, "op", "node", "event", "work")] = pick[any](t, number(), "launch", "wait", "record", ops[t.IntN(len(ops))].(object)["node"])
		return "op changed"
	}
	return "nothing changed"
}

// plans is the plan of a random pipeline, changed.
func (t *trial) plans() {
	p := t.pipeline(true, 2+t.IntN(14))
	t.place(p)
	flags := t.planFlags()
	if o := t.run(append([]string{"plan", "case.yaml", "--save-plan", "right.json"}, flags...)...); o.status != 0 {
		if !strings.Contains(o.errors, "not enough streams") {
			t.wrong("it made no plan: %s", shortened(o.text()))
		}
		return
	}
	t.accepts(p, "right.json", true)
	for k := range 3 {
		var plan object
		t.must(json.Unmarshal(t.read("right.json"), &plan))
		changes := ""
		for range 1 + t.IntN(2) {
			if changed, ok := t.changed(plan); ok {
				changes += " " + changed
			} else {
				break
			}
		}
		text, err := json.Marshal(plan)
		t.must(err)
		name := fmt.Sprintf("changed%d.json", k)
		t.write(name, text)
		t.accepts(p, name, false)
	}
}

// changed is change of a plan that earlier changes may have damaged beyond that.
func (t *trial) changed(plan object) (what string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return t.change(plan), true
}

// accepts runs with a plan: if it is accepted, it must be right; and it must be accepted if nothing was changed.
func (t *trial) accepts(p *pipeline, name string, right bool) {
	var f planFile
	problem := ""
	if err := json.Unmarshal(t.read(name), &f); err != nil {
		problem = "it is no plan"
	} else {
		problem = f.wrong(p)
	}
	o := t.run("case.yaml", "--plan", name, "--backend", "cpu", "--learn", "off", "--graph="+pick(t, "on", "off", "built"))
	switch {
	case o.status == 2 && !right:
		t.count("refused")
		return
	case o.status != 0:
		t.wrong("%s: exit status %d: %s", name, o.status, shortened(o.text()))
	case problem != "":
		t.wrong("%s is accepted: %s", name, problem)
	}
	t.count("accepted")
	t.compare(p, 1)
}
