// The pipelines of all ranks of one file, folded into classes of ranks that do the same.

package file

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/internal/digest"
	"github.com/dagrun/dagrun/internal/files"
	"gopkg.in/yaml.v3"
)

// Family is what all ranks of a file do. Ranks of one class have equal pipelines, but for what they exchange with whom: a peer is counted
// from the rank itself, and a group of ranks from its first.
type Family struct {
	Ranks   int32
	Classes []*dag.Graph // each of the lowest rank of its class
	Class   []int32      // by rank: index into Classes
	Firsts  [][]int32    // by rank: First of the groups of its communication that has Among, in program order
}

// RankParseError is a mistake that a file has on one rank.
type RankParseError struct {
	Rank, Ranks int
	Err         error // *ParseError, or what the rank's pipeline conflicts with
}

func (e *RankParseError) Error() string {
	if e == nil || e.Err == nil {
		return "rank without a mistake"
	}
	return fmt.Sprintf("rank %d of %d: %s", e.Rank, e.Ranks, e.Err)
}

func (e *RankParseError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// saved is a file that a buffer is saved to, as it is found and as it is written.
type saved struct{ file, written string }

// member is one rank while the family is made.
type member struct {
	hash   string
	firsts []int32
	saves  []saved
	err    error
}

// ParseFamily reads a file for every rank, as Parse does for one. The error is a *RankParseError of the lowest rank that has a mistake, or
// a *ParseError where the file cannot be read at all.
func ParseFamily(source []byte, options Options, ranks int) (*Family, error) {
	return ParseFamilyContext(context.Background(), source, options, ranks)
}

// ParseFamilyContext is ParseFamily with a context, which ends compilations as that of [ParseContext] does.
func ParseFamilyContext(ctx context.Context, source []byte, options Options, ranks int) (*Family, error) {
	options.Rank, options.Ranks, options.LocalRank = 0, ranks, 0
	first := newParser(options)
	root := first.root(source)
	if err := first.err(); err != nil {
		return nil, err
	}
	options.OpenModule = sharedModules(options.OpenModule)
	members := make([]member, ranks)
	var next atomic.Int64
	var failed atomic.Bool
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), ranks) {
		workers.Go(func() {
			memory := newParserMemory()
			for {
				rank := int(next.Add(1)) - 1
				if rank >= ranks || failed.Load() || rank > 0 && ctx.Err() != nil { // ranks are handed out in order, so those below one that failed are being read
					return
				}
				p, err := declaredOn(ctx, source, root, options, rank, memory)
				members[rank].err = err
				if err != nil {
					failed.Store(true)
					continue
				}
				members[rank].fold(p)
				memory.old = p.pipeline
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil && !failed.Load() {
		return nil, context.Cause(ctx)
	}
	f := &Family{Ranks: int32(ranks), Class: make([]int32, ranks), Firsts: make([][]int32, ranks)}
	classes := map[string]int32{}
	writers := map[string]int{}
	for rank := range members {
		m := &members[rank]
		if m.err != nil {
			return nil, &RankParseError{rank, ranks, m.err}
		}
		for _, s := range m.saves {
			if other, taken := writers[s.file]; taken {
				return nil, &RankParseError{rank, ranks, fmt.Errorf("rank %d saves to %s too; put $rank in the name of the file", other, s.written)}
			}
			writers[s.file] = rank
		}
		class, known := classes[m.hash]
		if !known {
			class = int32(len(f.Classes))
			classes[m.hash] = class
			p, err := declaredOn(ctx, source, root, options, rank, newParserMemory())
			if err != nil {
				return nil, &RankParseError{rank, ranks, err}
			}
			g := p.derive()
			if err := p.err(); err != nil {
				return nil, &RankParseError{rank, ranks, err}
			}
			f.Classes = append(f.Classes, g)
		}
		f.Class[rank], f.Firsts[rank] = class, m.firsts
	}
	return f, nil
}

func declaredOn(ctx context.Context, source []byte, root *yaml.Node, options Options, rank int, memory *parserMemory) (*parser, error) {
	options.Rank, options.LocalRank = rank, rank
	if options.LocalRanks != nil {
		options.LocalRank = options.LocalRanks[rank]
	}
	p := newParser(options)
	p.shared, p.memory, p.cache = true, memory, memory.cache
	t, bad := newText(source)
	if bad != nil {
		return nil, errors.New(bad.message)
	}
	p.text = t
	p.declare(ctx, root)
	return p, p.err()
}

// fold computes what a rank is told apart by.
func (m *member) fold(from *parser) {
	p := from.pipeline
	h := digest.New("dagrun class 1")
	h.Numbers(int64(p.Sync), int64(len(p.Buffers)))
	for k := range p.Buffers {
		b := &p.Buffers[k]
		h.Text(b.Name)
		h.Numbers(int64(b.Place), int64(b.DType), int64(b.Device), b.Bytes)
		if b.Save != "" {
			m.saves = append(m.saves, saved{files.Full(p.Dir, b.Save), b.Save})
		}
	}
	m.nodes(h, &p.Pipeline, &p.Pipeline)
	m.hash = h.Sum()
}

// nodes adds the nodes of a list: of the pipeline, or of a body in it.
func (m *member) nodes(h *digest.Digest, root, p *dag.Pipeline) {
	h.Numbers(int64(len(p.Nodes)))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		h.Text(n.Name)
		h.Text(n.Function)
		accesses := p.Accesses(dag.NodeID(i))
		h.Numbers(int64(n.Kind), int64(n.Device), int64(n.Stream.Number()), int64(n.Priority), int64(len(accesses)), int64(len(n.After)), int64(n.Pos.Line))
		for _, a := range accesses {
			h.Numbers(int64(a.Buffer), a.Lo, a.Hi, int64(a.Mode))
		}
		for _, after := range n.After {
			h.Numbers(int64(after))
		}
		if c := n.Communication; c != nil {
			m.communication(h, root, c)
		}
		if c := n.Control; c != nil {
			h.Numbers(int64(len(c.Declared())), digest.Flag(c.While))
			h.Numbers(c.Times, c.Every)
			h.Text(c.Condition.Bound())
			for _, body := range c.Declared() {
				m.nodes(h, root, body)
			}
		}
	}
}

func (m *member) communication(h *digest.Digest, p *dag.Pipeline, c *dag.Communication) {
	root := int32(0)
	if c.Verb == dag.Reduce || c.Verb == dag.Broadcast {
		root = c.Among.Members(max(p.Ranks, 1)).Index(c.Root)
	}
	h.Numbers(int64(c.Verb), int64(c.Reduction), int64(c.DType), int64(root), int64(c.Among.Count), int64(c.Among.Step), c.From.Bytes(), c.To.Bytes(),
		int64(len(c.Transfers)))
	if !c.Among.All() {
		m.firsts = append(m.firsts, c.Among.First)
	}
	for _, t := range c.Transfers {
		meets := p.Meets(t)
		h.Numbers(digest.Flag(t.Receive), digest.Flag(meets), int64(t.Range.Buffer), t.Range.Lo, t.Range.Hi)
		if meets {
			h.Numbers(int64(t.Rank - p.Rank))
		}
	}
}

// sharedModules opens each module once for all ranks that declare it alike.
func sharedModules(open func(dag.Module) (dag.Library, error)) func(dag.Module) (dag.Library, error) {
	if open == nil {
		return nil
	}
	type opened struct {
		library dag.Library
		err     error
	}
	var mu sync.Mutex
	known := map[string]opened{}
	return func(m dag.Module) (dag.Library, error) {
		mu.Lock()
		defer mu.Unlock()
		key := fmt.Sprintf("%q %q %q %q %q %q", m.Name, m.Path, m.Include, m.Define, m.Options, m.Compiler)
		o, ok := known[key]
		if !ok {
			o.library, o.err = open(m)
			known[key] = o
		}
		return o.library, o.err
	}
}
