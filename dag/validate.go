// Checks of a whole pipeline, declared by Go calls or filled in by hand. Files are checked while they are read, when the places of
// mistakes are known.

package dag

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag/internal/ids"
	"github.com/dagrun/dagrun/internal/files"
)

// checker collects what is wrong with a pipeline.
type checker struct{ errs []error }

func (c *checker) wrong(what, name, message, hint string) {
	c.errs = append(c.errs, &DeclarationError{what, name, message, hint})
}

// problem notes an error about something, if there is one.
func (c *checker) problem(what, name string, err error) {
	if err != nil {
		c.wrong(what, name, err.Error(), "")
	}
}

// Problem returns everything that is wrong with a pipeline whose graph has not been derived yet, joined, or nil.
func (p *Pipeline) Problem() error {
	if p == nil {
		return errors.New("there is no pipeline")
	}
	var c checker
	c.pipeline(p)
	return errors.Join(c.errs...)
}

// pipeline checks everything that the derivation of dependencies, and whoever reads a graph, relies on.
func (c *checker) pipeline(p *Pipeline) {
	untouched := len(c.errs) == 0
	if p.Name != "" {
		c.problem("pipeline", p.Name, CheckName(p.Name))
	}
	if len(p.Nodes) > MaxNodes || len(p.Buffers) > math.MaxInt32 || len(p.accesses) > math.MaxInt32 {
		c.wrong("pipeline", p.Name, fmt.Sprintf("there are %d nodes, %d buffers and %d accesses; at most %d nodes are allowed", len(p.Nodes),
			len(p.Buffers), len(p.accesses), MaxNodes), "")
		return
	}
	if max(len(p.accessStart), 1) != len(p.Nodes)+1 {
		c.wrong("pipeline", p.Name, fmt.Sprintf("there are %d nodes, but the accesses of %d", len(p.Nodes), max(len(p.accessStart)-1, 0)),
			"declare nodes with New and Builder.Node, which takes their accesses")
		return
	}
	if p.Sync > SyncExplicit {
		c.wrong("pipeline", p.Name, fmt.Sprintf("unknown sync %d", uint8(p.Sync)), "it must be SyncAuto or SyncExplicit")
	}
	for i := range p.Modules {
		if m := &p.Modules[i]; m.Library == nil {
			c.wrong("module", m.Name, "there is no library", "")
		}
	}
	c.names("buffer", len(p.Buffers), func(i int32) string { return p.Buffers[i].Name })
	c.names("node", len(p.Nodes), func(i int32) string { return p.Nodes[i].Name })
	for i := range p.Buffers {
		c.buffer(&p.Buffers[i], untouched)
	}
	c.saves(p)
	p.inheritAll()
	c.streams(p)
	for i := range p.Nodes {
		c.node(p, NodeID(i))
	}
	c.bodies(p)
}

func (c *checker) names(what string, n int, name func(i int32) string) {
	index := ids.NewNames(n)
	for i := range int32(n) {
		if err := CheckName(name(i)); err != nil {
			c.wrong(what, name(i), err.Error(), "")
		} else if first := index.Add(i, name); first != i {
			c.wrong(what, name(i), fmt.Sprintf("the name is taken (ids %d and %d)", first, i), "")
		}
	}
}

func (c *checker) buffer(b *Buffer, untouched bool) {
	switch {
	case b.Place > Device:
		c.wrong("buffer", b.Name, fmt.Sprintf("unknown place %d", uint8(b.Place)), "it must be Host or Device")
	case b.Device < 0 || b.Device >= MaxDevices:
		c.wrong("buffer", b.Name, fmt.Sprintf("device %d; devices count from 0 to %d", b.Device, MaxDevices-1), "")
	case b.Place == Host && b.Device != 0:
		c.wrong("buffer", b.Name, "a host buffer has no device", "")
	case b.Place == Device && b.Pageable:
		c.wrong("buffer", b.Name, "a device buffer cannot be pageable", "")
	case b.Place == Host && b.Symbol != "":
		c.wrong("buffer", b.Name, "a variable of a module is in device memory", "")
	}
	switch bytes, err := bufferBytes(b.DType, b.Shape); {
	case err != nil && (untouched || b.Bytes != 0): // otherwise Builder.Buffer has reported it and left Bytes at 0
		c.wrong("buffer", b.Name, err.Error(), "")
	case err == nil && b.Bytes != bytes:
		c.wrong("buffer", b.Name, fmt.Sprintf("it has %d bytes, but its type and shape make %d", b.Bytes, bytes), "")
	}
	if b.Init != nil {
		c.problem("buffer", b.Name, b.Init.problem())
		c.problem("buffer", b.Name, valuesProblem("init", b, b.Init.Values))
	}
	if b.Expect != nil {
		c.problem("buffer", b.Name, b.Expect.problem())
		c.problem("buffer", b.Name, valuesProblem("expect", b, b.Expect.Values))
	}
}

// Check returns what is wrong with a buffer that was made by hand, its name apart.
func (b *Buffer) Check() error {
	if b == nil {
		return errors.New("there is no buffer")
	}
	var c checker
	c.buffer(b, true)
	return errors.Join(c.errs...)
}

// problem says what is wrong with an init, or nil.
func (in *Init) problem() error {
	switch {
	case in.Kind > InitFile:
		return fmt.Errorf("init: unknown kind %d", in.Kind)
	case in.Kind == InitFile && in.File == "":
		return errors.New("init: the file has no name")
	case in.Kind == InitExpr:
		if err := in.Expr.Check(); err != nil {
			return fmt.Errorf("init: %w", err)
		}
	}
	return nil
}

// problem says what is wrong with an expectation, or nil.
func (e *Expect) problem() error {
	switch {
	case e.Kind > ExpectExpr:
		return fmt.Errorf("expect: unknown kind %d", e.Kind)
	case e.Kind == ExpectFile && e.File == "":
		return errors.New("expect: the file has no name")
	case e.Norm > NormMax:
		return fmt.Errorf("expect: unknown norm %d", e.Norm)
	case e.Differing < 0:
		return fmt.Errorf("expect: %d elements may differ; the number must not be negative", e.Differing)
	case e.Differing > 0 && e.Norm != NoNorm, e.Kind == ExpectSum && (e.Differing > 0 || e.Norm != NoNorm):
		return errors.New("expect: only one of sum, norm and differing is possible")
	case !(e.RTol >= 0 && e.ATol >= 0):
		return fmt.Errorf("expect: tolerances of %v and %v; they must not be negative", e.RTol, e.ATol)
	case e.Kind == ExpectExpr:
		if err := e.Expr.Check(); err != nil {
			return fmt.Errorf("expect: %w", err)
		}
	}
	return nil
}

// saves refuses two buffers that are saved to one file.
func (c *checker) saves(p *Pipeline) {
	saved := map[string]string{} // by file: the buffer that is saved to it
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.Save != "" {
			file := files.Full(p.Dir, b.Save)
			if first, taken := saved[file]; taken {
				c.wrong("buffer", b.Name, fmt.Sprintf("it is saved to the same file as %q", first), "give each buffer a file of its own")
			} else {
				saved[file] = b.Name
			}
		}
	}
}

// streams refuses streams of several devices or priorities.
func (c *checker) streams(p *Pipeline) {
	first := map[int32]*Node{} // by stream: the first node on it
	for i := range p.Nodes {
		n := &p.Nodes[i]
		stream := n.Stream.Number()
		if stream < 0 {
			continue
		}
		if earlier := first[stream]; earlier == nil {
			first[stream] = n
		} else if earlier.Device != n.Device && p.Devices == 0 {
			c.wrong("node", n.Name, fmt.Sprintf("stream %d has %q on device %d and %q on device %d", stream, earlier.Name, earlier.Device, n.Name, n.Device),
				"a stream belongs to one device")
		} else if earlier.Priority != n.Priority {
			c.wrong("node", n.Name, fmt.Sprintf("stream %d has %q of %s priority and %q of %s priority", stream, earlier.Name, earlier.Priority, n.Name,
				n.Priority), "a stream has one priority")
		}
	}
}

func (c *checker) node(p *Pipeline, id NodeID) {
	n := &p.Nodes[id]
	if n.Stream.plusOne < 0 {
		c.wrong("node", n.Name, fmt.Sprintf("the number of its stream must be from 0 to %d", math.MaxInt32-1), "leave Stream out to let the planner choose")
	}
	if n.Device < 0 || n.Device >= MaxDevices {
		c.wrong("node", n.Name, fmt.Sprintf("device %d; devices count from 0 to %d", n.Device, MaxDevices-1), "")
	}
	if n.Priority < Low || n.Priority > High {
		c.wrong("node", n.Name, fmt.Sprintf("priority %d; it is one of Low, Normal and High", int8(n.Priority)), "")
	}
	if n.HasCost && !(n.CostUS >= 0 && n.CostUS <= math.MaxFloat64) {
		c.wrong("node", n.Name, fmt.Sprintf("a cost of %v us", n.CostUS), "")
	}
	c.problem("node", n.Name, n.Work.problem())
	for _, from := range n.After {
		if from < 0 || int(from) >= len(p.Nodes) {
			c.wrong("node", n.Name, fmt.Sprintf("after: there is no node with id %d", from), "")
		}
	}
	for _, a := range p.Accesses(id) {
		if a.Mode < Read || a.Mode > ReadWrite {
			c.wrong("node", n.Name, "an access must be in, out or inout", "")
		}
		c.problem("node", n.Name, p.rangeProblem(a.Range))
	}
	if n.Kind == HostFunction {
		c.hostFunction(p, id)
	}
	c.problem("node", n.Name, p.actionProblem(n))
}

// hostFunction checks what a host function accesses.
func (c *checker) hostFunction(p *Pipeline, id NodeID) {
	n := &p.Nodes[id]
	for _, a := range p.Accesses(id) {
		if p.rangeProblem(a.Range) != nil {
			continue // reported already
		}
		if problem, hint := p.HostAccessProblem(a.Range); problem != "" {
			c.wrong("node", n.Name, problem, hint)
		}
	}
}

// actionProblem says what is wrong with what a node does, or nil. A node of any kind may lack its Copy, Set or Launch: it can then be
// planned, not run.
func (p *Pipeline) actionProblem(n *Node) error {
	switch {
	case n.Kind > HostFunction:
		return fmt.Errorf("unknown kind %d", uint8(n.Kind))
	case n.Control != nil && n.Kind != Repeat && n.Kind != Branch:
		return fmt.Errorf("it is a %s, but has a Control", n.Kind)
	case n.Control == nil && (n.Kind == Repeat || n.Kind == Branch):
		return fmt.Errorf("it is a %s, but has no Control; declare it with Builder.Repeat or Builder.If", n.Kind)
	case n.Copy != nil && n.Kind != Memcpy:
		return fmt.Errorf("it is a %s, but has a Copy", n.Kind)
	case n.Set != nil && n.Kind != Memset:
		return fmt.Errorf("it is a %s, but has a Set", n.Kind)
	case n.Launch != nil && n.Kind != Kernel && n.Kind != Map && n.Kind != Call:
		return fmt.Errorf("it is a %s, but has a Launch", n.Kind)
	case (n.Function != "") != (n.Kind == HostFunction):
		return errors.New("a node has a Function if, and only if, it is a HostFunction")
	case n.Communication != nil && n.Kind != Communicate:
		return fmt.Errorf("it is a %s, but has a Communication", n.Kind)
	case n.Communication != nil:
		_, err := p.communicationProblem(n.Communication)
		return err
	case n.Copy != nil:
		for _, r := range []Range{n.Copy.Dst, n.Copy.Src} {
			if err := p.rangeProblem(r); err != nil {
				return err
			}
		}
		if err := p.copyProblem(n.Copy.Dst, n.Copy.Src); err != nil {
			return fmt.Errorf("memcpy: %w", err)
		}
	case n.Set != nil:
		if err := p.rangeProblem(n.Set.Dst); err != nil {
			return err
		}
		return p.setProblem(n.Set.Dst, n.Set.Bits)
	case n.Launch != nil:
		return p.launchProblem(n.Kind, n.Launch)
	case n.Control != nil:
		return n.Control.problem(p, n)
	}
	return nil
}

// launchProblem says what is wrong with a launch, or nil.
func (p *Pipeline) launchProblem(kind Kind, l *Launch) error {
	switch {
	case l.Kernel == nil:
		return errors.New("its launch has no kernel")
	case l.Module < -1 || int(l.Module) >= len(p.Modules):
		return fmt.Errorf("its launch is of module %d, but there are %d", l.Module, len(p.Modules))
	case (kind == Map) != (l.Map != nil):
		return fmt.Errorf("it is a %s, but its launch says otherwise", kind)
	}
	for k := range l.Args {
		switch a := &l.Args[k]; {
		case a.Struct != "" && !a.IsBuffer:
		case !a.DType.known():
			return fmt.Errorf("argument %d has the unknown type %s", k+1, a.DType)
		case !a.IsBuffer:
		case a.Mode < Read || a.Mode > Untouched || a.Mode == Untouched && l.Module < 0:
			return fmt.Errorf("argument %d must be in, out, inout, or unused by a kernel of a module", k+1)
		default:
			if err := p.rangeProblem(a.Range); err != nil {
				return fmt.Errorf("argument %d: %w", k+1, err)
			}
			if a.Start < 0 || a.Start > a.Range.Hi-a.Range.Lo || a.Start > 0 && (l.Module < 0 || a.Texture != nil) {
				return fmt.Errorf("argument %d points to byte %d of its slice, where it cannot", k+1, a.Start)
			}
			if a.Texture != nil {
				if problem, _ := a.Texture.problem(p, a.Range); problem != "" || a.Mode != Read {
					return fmt.Errorf("argument %d is a texture that cannot be read so: %s", k+1, problem)
				}
			}
		}
	}
	if m := l.Map; m != nil {
		buffers := 1 + len(m.Inputs)
		if want := 1 + buffers + len(m.Scalars); len(l.Args) != want || slices.ContainsFunc(l.Args[1:1+buffers], func(a Arg) bool { return !a.IsBuffer }) {
			return fmt.Errorf("its launch must have the %d arguments of its map: a count, the output, the inputs and the numbers", want)
		}
		if err := m.Expr.Check(); err != nil {
			return fmt.Errorf("map: %w", err)
		}
	}
	return nil
}

// DeclarationError is one thing wrong with a declaration made by Go calls.
type DeclarationError struct {
	What    string // "pipeline", "module", "buffer" or "node"
	Name    string // of the node or buffer
	Message string
	Hint    string // a way out, or ""
}

// Error is such as: node "saxpy": unknown kernel "saxpi"; did you mean "saxpy"?
func (e *DeclarationError) Error() string {
	text := fmt.Sprintf("%s %q: %s", e.What, e.Name, e.Message)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// bodies checks the nodes of all bodies that have no graph yet.
func (c *checker) bodies(p *Pipeline) {
	var check func(*Pipeline, int)
	names := map[string]bool{}
	for i := range p.Nodes {
		if p.Nodes[i].Control != nil && len(names) == 0 {
			for k := range p.Nodes {
				names[p.Nodes[k].Name] = true
			}
		}
	}
	check = func(level *Pipeline, depth int) {
		for i := range level.Nodes {
			control := level.Nodes[i].Control
			if control == nil {
				continue
			}
			if depth >= MaxBodyDepth {
				c.wrong("node", level.Nodes[i].Name, fmt.Sprintf("loops and branches are nested deeper than %d levels", MaxBodyDepth), "")
				continue
			}
			if p.Sync == SyncExplicit {
				c.wrong("node", level.Nodes[i].Name, "loops and branches need sync: auto", "use SyncAuto")
			}
			for _, body := range control.declared {
				body.Buffers, body.Modules, body.Rank, body.Ranks = p.Buffers, p.Modules, p.Rank, p.Ranks
				c.streams(body)
				for k := range body.Nodes {
					if name := body.Nodes[k].Name; names[name] {
						c.wrong("node", name, "the name is taken", "names of nodes are unique in the whole pipeline, bodies included")
					} else if err := CheckName(name); err != nil {
						c.wrong("node", name, err.Error(), "")
					}
					names[body.Nodes[k].Name] = true
					c.node(body, NodeID(k))
				}
				check(body, depth+1)
			}
		}
	}
	check(p, 0)
}
