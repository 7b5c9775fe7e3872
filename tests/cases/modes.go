//go:build linux

// Random pipelines in random modes: the results are those of the reference, to the bit.

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// place writes the files of a pipeline.
func (t *trial) place(p *pipeline) {
	t.write("case.yaml", []byte(p.yaml()))
	if p.module {
		t.write("own.ptx", []byte(ownPTX))
	}
}

// compare compares what a run has saved with the reference after some replays.
func (t *trial) compare(p *pipeline, replays int) {
	m := p.start()
	for range replays {
		play(p.nodes, m)
	}
	for i := range p.buffers {
		if b := &p.buffers[i]; b.saved {
			if want, got := p.expected(m, b), t.read(b.name+".bin"); !bytes.Equal(want, got) {
				t.wrong("%s is wrong:\n got %x\nwant %x", b.name, got, want)
				return
			}
		}
	}
}

// planFlags draws flags that change the plan.
func (t *trial) planFlags() []string {
	flags := []string{"--strategy", pick(t, "auto", "list", "cover", "heft", "roundrobin", "serial")}
	if !t.chance(3) {
		flags = append(flags, "--streams", fmt.Sprint(1+t.IntN(8)))
	}
	if t.chance(3) {
		flags = append(flags, "--effort", pick(t, "quick", "normal", "thorough"))
	}
	if t.chance(4) {
		flags = append(flags, "--machine", pick(t, "h200", "clean", "unit"))
	}
	return flags
}

// pipelines is a random pipeline in a random mode.
func (t *trial) pipelines() {
	p := t.pipeline(false, 1+t.IntN(24))
	for i, n := range p.nodes { // what users may add does not change the results
		if n.body != nil || n.group != "" || n.inner {
			continue
		}
		switch t.IntN(8) {
		case 0:
			n.keys += fmt.Sprintf(", stream: %d", t.IntN(4))
		case 1:
			n.keys += fmt.Sprintf(", cost: {us: %d}", t.IntN(50))
		case 2:
			n.keys += ", priority: " + pick(t, "high", "normal", "low")
		case 3:
			if i > 0 {
				n.keys += fmt.Sprintf(", after: [%s]", p.nodes[t.IntN(i)].name)
			}
		}
	}
	t.place(p)
	replays := pick(t, 1, 1, 2, 3, 5)
	args := append([]string{"case.yaml", "--iterations", fmt.Sprint(replays)}, t.planFlags()...)
	args = append(args, "--graph="+pick(t, "auto", "on", "off", "built"), "--learn", pick(t, "auto", "off"))
	devices := 1
	if t.chance(4) {
		devices = 2
		args = append(args, "--devices", "2", "--spread", pick(t, "auto", "heft", "mintransfer", "roundrobin", "owner", "chains", "one"))
	}
	args = append(args, "--backend", fmt.Sprintf("cpu:%d", devices))
	if t.chance(3) {
		args = append(args, "--threads", fmt.Sprint(1+t.IntN(3)))
	}
	if t.chance(4) {
		args = append(args, "--memory", "separate")
	}
	if t.chance(4) {
		args = append(args, "--inflight", fmt.Sprint(1+t.IntN(3)))
	}
	if t.chance(4) {
		args = append(args, "--memory-cap", fmt.Sprint(256*(1+t.IntN(8))))
	}
	if t.chance(5) {
		args = append(args, "--warmup", fmt.Sprint(t.IntN(3)))
	}
	if t.chance(8) {
		args = append(args, "--node-by-node")
	}
	if t.chance(5) {
		args = append(args, "--overlap", pick(t, "auto", "on", "off"))
	}
	if t.chance(6) {
		args = append(args, "--verify="+pick(t, "results", "nodes"))
	}
	if t.chance(4) {
		args = append(args, "--sanitize", pick(t, "full", "fast", "off"))
	}
	o := t.run(args...)
	switch {
	case o.status == 0:
		t.count("ran")
		t.compare(p, replays)
	case o.status < 0: // a finding already
	case o.status == 2 && slices.ContainsFunc(refusals, func(text string) bool { return strings.Contains(o.errors, text) }):
		t.count("refused")
	default:
		t.wrong("exit status %d:\n%s", o.status, shortened(o.text()))
	}
}

// refusals are the reasons for which a right pipeline cannot run with some flags.
var refusals = []string{
	"replays in flight are not possible",
	"a stream belongs to one device",
	"more than the memory cap",
	"launches overlap on NVIDIA GPUs only",
	"are allowed: not enough streams",
}
