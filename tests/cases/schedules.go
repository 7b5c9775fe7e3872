//go:build linux

// Schedules of the user's own: check lists exactly the pairs of nodes that nothing orders, run refuses those, and what is in order computes what
// the reference does.

package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// order is which nodes come before which: by node, those it is known to follow.
type order []map[int]bool

// follow adds that a node follows another, and all that that one follows.
func (o order) follow(node, earlier int) {
	o[node][earlier] = true
	for k := range o[earlier] {
		o[node][k] = true
	}
}

// schedules is a random schedule, right or wrong.
func (t *trial) schedules() {
	p := t.pipeline(true, 1+t.IntN(16))
	p.explicit = true
	streams, known := 1+t.IntN(4), order{}
	last := map[int]int{}
	careful := t.IntN(3) // 0: every order that is needed is there; otherwise some are missing
	for i, n := range p.nodes {
		known = append(known, map[int]bool{})
		stream := t.IntN(streams)
		if before, ok := last[stream]; ok {
			known.follow(i, before)
		}
		last[stream] = i
		var after []string
		for j := i - 1; j >= 0; j-- {
			needed := conflict(p.nodes[j], n) && !known[i][j] && (careful == 0 || !t.chance(8*careful))
			if needed || t.chance(40) {
				after = append(after, p.nodes[j].name)
				known.follow(i, j)
			}
		}
		n.keys = fmt.Sprintf(", stream: %d", stream)
		if len(after) > 0 {
			n.keys += fmt.Sprintf(", after: [%s]", strings.Join(after, ", "))
		}
	}
	t.place(p)
	races := map[string]bool{}
	for i, n := range p.nodes {
		for j := range i {
			if conflict(p.nodes[j], n) && !known[i][j] {
				races[p.nodes[j].name+" and "+n.name] = true
			}
		}
	}
	o := t.run("check", "case.yaml", "--all", "--output", "json")
	var report struct {
		Races []struct{ First, Second struct{ Node string } }
		Pairs int `json:"unordered_pairs"`
	}
	if err := json.Unmarshal([]byte(o.out), &report); err != nil {
		t.wrong("check printed no JSON: %v\n%s", err, shortened(o.text()))
		return
	}
	listed := map[string]bool{}
	for _, r := range report.Races {
		listed[r.First.Node+" and "+r.Second.Node] = true
	}
	for pair := range races {
		if !listed[pair] {
			t.wrong("check misses the race of %s", pair)
		}
	}
	for pair := range listed {
		if !races[pair] {
			t.wrong("check lists a race of %s, which are in order", pair)
		}
	}
	if want := min(len(races), 1); o.status != want {
		t.wrong("check ended with %d, not %d", o.status, want)
	}
	o = t.run("case.yaml", "--backend", "cpu", "--learn", "off", "--graph="+pick(t, "on", "off", "built"))
	switch {
	case len(races) > 0:
		t.count("with races")
		if o.status != 1 && o.status != 2 {
			t.wrong("a schedule with races ran: exit status %d", o.status)
		}
	case o.status != 0:
		t.wrong("a schedule without races did not run: exit status %d\n%s", o.status, shortened(o.text()))
	default:
		t.count("in order")
		t.compare(p, 1)
	}
}
