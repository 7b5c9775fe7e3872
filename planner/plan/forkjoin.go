// Fork and join: which streams a replay must tie to its origin, the plan's first stream. Adds nothing to a plan.

package plan

import "github.com/dagrun/dagrun/dag"

// fewTied is how many streams most plans stay within: what is kept by stream lies on the stack then.
const fewTied = 32

// Fork returns the streams that must wait for the origin before their first op. A stream that starts with a wait needs none:
// what it waits for was submitted in the same replay, so it is behind the fork already.
func (p *Plan) Fork() []int32 { return p.appendFork(nil) }

func (p *Plan) appendFork(fork []int32) []int32 {
	for s := 1; s < len(p.Streams); s++ {
		if ops := p.Streams[s].Ops; len(ops) > 0 && ops[0].Kind != Wait {
			fork = append(fork, int32(s))
		}
	}
	return fork
}

// Join returns the streams that the origin must wait for at the end. A stream needs none whose last launch some other stream
// waits for before a launch of its own: that stream's end, or the end of one that waits for it, stands for both.
func (p *Plan) Join() []int32 { return p.appendJoin(nil) }

func (p *Plan) appendJoin(join []int32) []int32 {
	if len(p.Streams) < 2 {
		return join
	}
	var few [fewTied]int32
	last := few[:] // each stream's last launch, -1 for none
	if len(p.Streams) > fewTied {
		last = make([]int32, len(p.Streams))
	}
	highest := int32(-1)
	for s := range p.Streams {
		last[s] = -1
		ops := p.Streams[s].Ops
		for i := len(ops) - 1; i >= 0 && last[s] < 0; i-- {
			if ops[i].Kind == Launch {
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
				if launchAfter && ops[i].Node <= dag.NodeID(highest) {
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

// CountForkJoin is how many records and waits a program adds to tie the streams to the origin.
func (p *Plan) CountForkJoin() (records, waits int) {
	var few [fewTied]int32
	fork, join := len(p.appendFork(few[:0])), len(p.appendJoin(few[:0]))
	return min(fork, 1) + join, fork + join
}
