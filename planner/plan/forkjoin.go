// Fork and join: which streams of a replay must wait for its origin, the first stream of the plan, and for which the origin must wait.

package plan

import "github.com/dagrun/dagrun/dag"

// fewTied is more streams than most plans have. Up to that many, arrays by stream are on the stack.
const fewTied = 32

// Fork returns the streams that must wait for the origin before their first op. A stream that starts with a wait is
// not among them: it waits for an op of the same replay, which already comes after the fork.
func (p *Plan) Fork() []int32 { return p.appendFork(nil) }

func (p *Plan) appendFork(fork []int32) []int32 {
	if p == nil {
		return fork
	}
	for s := 1; s < len(p.Streams); s++ {
		if ops := p.Streams[s].Ops; len(ops) > 0 && ops[0].Kind != Wait {
			fork = append(fork, int32(s))
		}
	}
	return fork
}

// Join returns the streams that the origin must wait for at the end. A stream is not among them if
// another stream waits for its last launch and launches something afterwards: when that stream has ended, so has this one.
func (p *Plan) Join() []int32 { return p.appendJoin(nil) }

func (p *Plan) appendJoin(join []int32) []int32 {
	if p == nil || len(p.Streams) < 2 {
		return join
	}
	var few [fewTied]int32
	last := few[:] // each stream's last launch, -1 for none
	if len(p.Streams) > fewTied {
		last = make([]int32, len(p.Streams))
	}
	highest := int32(-1)
	total := 0 // ops: a schedule launches each node once, so node numbers in a schedule are less than this
	for s := range p.Streams {
		total += len(p.Streams[s].Ops)
	}
	for s := range p.Streams {
		last[s] = -1
		ops := p.Streams[s].Ops
		for i := len(ops) - 1; i >= 0 && last[s] < 0; i-- {
			if ops[i].Kind == Launch && int(ops[i].Node) < total {
				last[s] = int32(ops[i].Node)
			}
		}
		highest = max(highest, last[s])
	}
	waited := make([]bool, highest+1)
	for s := range p.Streams {
		launchAfter := false
		ops := p.Streams[s].Ops
		for i := len(ops) - 1; i >= 0; i-- {
			switch ops[i].Kind {
			case Launch:
				launchAfter = true
			case Wait:
				if launchAfter && ops[i].Node >= 0 && ops[i].Node <= dag.NodeID(highest) {
					waited[ops[i].Node] = true
				}
			}
		}
	}
	for s := 1; s < len(p.Streams); s++ {
		if last[s] >= 0 && !waited[last[s]] {
			join = append(join, int32(s))
		}
	}
	return join
}

// CountForkJoin returns how many records and waits a program adds for fork and join.
func (p *Plan) CountForkJoin() (records, waits int) {
	var few [fewTied]int32
	fork, join := len(p.appendFork(few[:0])), len(p.appendJoin(few[:0]))
	return min(fork, 1) + join, fork + join
}
