// Lists: commands encoded once and submitted many times.

package driver

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// list is an encoded sequence of commands.
type list struct {
	p        *Platform
	mu       sync.Mutex // allows one replay or one change at a time
	commands []checked
	origin   *stream
	code     *encoded
	crew     *crew
	devices  []*device
	ready    uint64 // generation of the last replay
	closed   bool
}

// Encode encodes commands as a list. The number of submitting threads is limited to GOMAXPROCS and to the streams of the list.
func (p *Platform) Encode(commands []cudart.Command, options cudart.ListOptions) (cudart.List, error) {
	checked, err := p.check(commands, true)
	if err != nil {
		return nil, err
	}
	origin, err := p.origin(options.Origin)
	if err != nil {
		return nil, err
	}
	code, err := p.encode(checked, origin, min(options.Threads, p.cores))
	if err != nil {
		return nil, err
	}
	l := &list{p: p, commands: checked, origin: origin, code: code}
	for i := range checked {
		c := &checked[i]
		c.Args = slices.Clone(c.Args)
		if c.stream != nil && !slices.Contains(l.devices, c.stream.d) {
			l.devices = append(l.devices, c.stream.d)
		}
	}
	if len(code.submitters) > 1 {
		l.crew = newCrew(code.submitters[1:])
	}
	p.live.lists.Add(1)
	return l, nil
}

func (p *Platform) origin(s cudart.Stream) (*stream, error) {
	if s == nil {
		return nil, nil
	}
	origin, ok := s.(*stream)
	if !ok || origin.p != p {
		return nil, fmt.Errorf("the origin stream is not one of this platform's")
	}
	return origin, nil
}

// Submit submits all commands to their streams in one call into C.
func (l *list) Submit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("submit of a closed list")
	}
	for _, d := range l.devices {
		if d.fault.Load() != nil {
			return d.faulted()
		}
	}
	main := l.code.submitters[0].walk
	*l.code.stop = 0
	l.ready++
	main.generation = l.ready
	if l.crew != nil {
		l.crew.begin(l.ready)
	}
	walkTable(main)
	if *l.code.stop != 0 || main.epilogueFailed != nil {
		return l.code.outcome(l.commands)
	}
	return nil
}

// SetArgs changes a launch.
func (l *list) SetArgs(index int, grid [3]uint32, args []cudart.Value) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("change of a closed list")
	}
	c, err := commandAt(l.commands, index, cudart.LaunchKernel)
	if err != nil {
		return err
	}
	was := nothing(c.Grid)
	if err := changeLaunch(c, index, grid, args); err != nil {
		return err
	}
	if c.kernel.call != nil {
		return l.changeCall(index, c)
	}
	at := &l.code.places[index]
	setArgs(at.args, c.Args)
	r := &l.code.submitters[at.submitter].rows[at.row]
	switch {
	case at.config != nil:
		at.config.grid = grid
		r.fn = l.p.lib.address[cuLaunchKernelEx]
	case c.Cooperative:
		r.fn = l.p.lib.address[cuLaunchCooperativeKernel]
	default:
		r.fn = l.p.lib.address[cuLaunchKernel]
	}
	if at.config == nil {
		r.arg[1], r.arg[2], r.arg[3] = uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2])
	}
	if nothing(grid) {
		r.fn = rowNothing
	}
	if nothing(grid) != was {
		l.code.begin(l.commands)
	}
	return nil
}

// changeLaunch checks and stores a launch's new arguments.
func changeLaunch(c *checked, index int, grid [3]uint32, args []cudart.Value) error {
	if len(args) != len(c.Args) {
		return c.wrong(index, "kernel %s was encoded with %d arguments, but %d are given", c.kernel.entry, len(c.Args), len(args))
	}
	if err := checkArgs(c.kernel, args); err != nil {
		return c.wrong(index, "%v", err)
	}
	for i := range args {
		if args[i].Within != c.Args[i].Within || args[i].Offset != c.Args[i].Offset {
			return c.wrong(index, "kernel %s was encoded with another member of a structure as value %d", c.kernel.entry, i)
		}
		if len(args[i].Struct) != len(c.Args[i].Struct) {
			return c.wrong(index, "kernel %s was encoded with %d bytes for argument %d, but %d are given", c.kernel.entry, len(c.Args[i].Struct), i, len(args[i].Struct))
		}
	}
	if err := checkGrid(c.kernel, grid); err != nil {
		return c.wrong(index, "%v", err)
	}
	if problem := dag.ClusterProblem(c.Cluster, grid); problem != "" {
		return c.wrong(index, "kernel %s: %s", c.kernel.entry, problem)
	}
	if c.Cooperative {
		if err := c.kernel.fitsTogether(grid, c.Block[0]*c.Block[1]*c.Block[2], c.Shared); err != nil {
			return c.wrong(index, "%v", err)
		}
	}
	bound, err := c.kernel.p.bindTextures(c.kernel.d, args)
	if err != nil {
		return c.wrong(index, "kernel %s: %v", c.kernel.entry, err)
	}
	copy(c.Args, bound)
	c.Grid = grid
	return nil
}

// changeCall captures a call of a list again, whose arguments have changed. l.mu is held.
func (l *list) changeCall(index int, c *checked) error {
	exec, err := c.kernel.call.executable(c)
	if err != nil {
		return err
	}
	at := &l.code.places[index]
	l.code.submitters[at.submitter].rows[at.row].arg[0] = exec
	old := l.code.calls[index]
	l.code.calls[index] = callRow{c.kernel.d, exec}
	return l.p.dispose(old.d, cuGraphExecDestroy, old.exec)
}

func commandAt(commands []checked, index int, kinds ...cudart.CommandKind) (*checked, error) {
	if index < 0 || index >= len(commands) {
		return nil, fmt.Errorf("there is no command %d; the list has %d", index, len(commands))
	}
	c := &commands[index]
	if !slices.Contains(kinds, c.Kind) {
		return nil, c.wrong(index, "is of a kind that this change does not apply to")
	}
	return c, nil
}

// SetCopy changes the addresses of a copy or a set.
func (l *list) SetCopy(index int, dst, src cudart.Ptr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("change of a closed list")
	}
	c, err := commandAt(l.commands, index, cudart.CopyMemory, cudart.SetMemory)
	if err != nil {
		return err
	}
	c.Dst, c.Src = dst, src
	at := &l.code.places[index]
	if c.Kind == cudart.CopyMemory && at.args != nil {
		fillCopyRows(at.args, &c.Command)
		return nil
	}
	submitter := l.code.submitters[at.submitter]
	r := &submitter.rows[at.row]
	r.arg[0] = uintptr(dst)
	if c.Kind == cudart.CopyMemory {
		r.arg[1] = uintptr(src)
	}
	return nil
}

// Len returns the number of commands.
func (l *list) Len() int { return len(l.commands) }

// Close ends the list's threads and frees its memory. Submitted work continues: the driver has copied what it needs.
func (l *list) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.crew != nil {
		l.crew.close()
	}
	l.p.live.lists.Add(-1)
	return l.code.close()
}
