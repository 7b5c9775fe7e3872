// Host functions: functions of the program that embeds dagrun, which nodes run between the work of devices.

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/dagrun/dagrun/dag"
)

// Len returns how many accesses the node declares.
func (c *HostCall) Len() int {
	if c == nil {
		return 0
	}
	return len(c.memory)
}

// Bytes returns the memory of the k-th access that the node declares, nil if there is none. The function may write it only if it is
// declared as written.
func (c *HostCall) Bytes(k int) []byte {
	if k < 0 || k >= c.Len() {
		return nil
	}
	return c.memory[k]
}

// Buffer returns the memory of the first access to a buffer, nil if the node declares none.
func (c *HostCall) Buffer(name string) []byte {
	for k := range c.Len() {
		if c.names[k] == name {
			return c.memory[k]
		}
	}
	return nil
}

func (e *HostError) Error() string {
	if e == nil {
		return "a host function failed"
	}
	how := ""
	if e.Stack != "" {
		how = " panicked"
	}
	return fmt.Sprintf("node %q: host function %q%s in replay %d: %v; no results are saved", e.Node, e.Function, how, e.Replay, e.Err)
}

func (e *HostError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// UnknownFunctionError is returned by New if a node runs a host function that Options.Functions does not have.
type UnknownFunctionError struct{ Node, Function string }

func (e *UnknownFunctionError) Error() string {
	if e == nil {
		return "a host function is unknown"
	}
	return fmt.Sprintf("node %q runs the host function %q, which this program does not have; a Go program that embeds dagrun passes it in runtime.Options.Functions", e.Node, e.Function)
}

// findFunctions checks that there is a function for every node that runs one.
func (p *Program) findFunctions() error {
	place := map[string]int{}
	var missing error
	p.graph.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if n.Kind != dag.HostFunction {
				continue
			}
			place[n.Name] = len(place)
			if p.options.Functions[n.Function] == nil && missing == nil {
				missing = &UnknownFunctionError{n.Name, n.Function}
			}
		}
	})
	if len(place) > 0 {
		p.hosts = &hostCalls{place: place}
	}
	return missing
}

// beginHosts starts a replay of an instance as far as host functions are concerned: not before the one before it has ended, nor after a failure.
func (p *Program) beginHosts(ctx context.Context, in *instance) error {
	if p.hosts == nil {
		return nil
	}
	if err := p.awaitHosts(ctx, in); err != nil {
		return err
	}
	p.hosts.mu.Lock()
	replay := p.hosts.begun
	p.hosts.begun++
	p.hosts.mu.Unlock()
	r := in.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.replay, r.failed, r.started = replay, nil, true
	return nil
}

// awaitHosts waits for the latest replay of an instance, and returns the failure of a host function, of whichever replay.
func (p *Program) awaitHosts(ctx context.Context, in *instance) error {
	if p.hosts == nil {
		return nil
	}
	in.run.mu.Lock()
	started := in.run.started
	in.run.mu.Unlock()
	if started {
		if err := in.streams[0].Synchronize(ctx); err != nil {
			return err
		}
		in.run.end(nil)
	}
	return p.hosts.failure()
}

// end ends the context of a replay's host functions.
func (r *hostRun) end(cause error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = false
	if r.cancel != nil {
		r.cancel(cause)
	}
}

// failure returns the first failure of a host function, nil if there is none.
func (h *hostCalls) failure() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed == nil {
		return nil
	}
	return h.failed
}

// failure returns the first failure of a host function in the latest replay.
func (r *hostRun) failure() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		return nil
	}
	return r.failed
}

// earlier reports whether an error is to be reported rather than another one: that of the earlier replay, and in it of the node declared first.
func (h *hostCalls) earlier(e, other *HostError) bool {
	return other == nil || e.Replay < other.Replay || e.Replay == other.Replay && h.place[e.Node] < h.place[other.Node]
}

func (h *hostCalls) fail(r *hostRun, e *HostError) {
	r.mu.Lock()
	if h.earlier(e, r.failed) {
		r.failed = e
	}
	r.mu.Unlock()
	h.mu.Lock()
	if h.earlier(e, h.failed) {
		h.failed = e
	}
	h.mu.Unlock()
}

// hostCommand returns what runs a node's host function in an instance's memory.
func (p *Program) hostCommand(in *instance, id dag.NodeID) func() {
	n := &p.graph.Nodes[id]
	function := p.options.Functions[n.Function]
	call := HostCall{Node: n.Name}
	for _, a := range p.graph.Accesses(id) {
		call.names = append(call.names, p.graph.Buffers[a.Buffer].Name)
		call.memory = append(call.memory, p.platform.HostBytes(in.at(a.Range), a.Bytes()))
	}
	hosts, run := p.hosts, in.run
	return func() {
		run.mu.Lock()
		ctx, replay := run.ctx, run.replay
		run.mu.Unlock()
		own := call
		own.Replay = replay
		if stack, err := callHost(ctx, function, &own); err != nil {
			hosts.fail(run, &HostError{Node: n.Name, Function: n.Function, Replay: replay, Err: err, Stack: stack})
		}
	}
}

// callHost calls a function on a goroutine of its own and waits for it, so that neither a panic nor runtime.Goexit ends the thread of the device.
func callHost(ctx context.Context, function HostFunction, call *HostCall) (stack string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if v := recover(); v != nil {
				stack = string(debug.Stack())
				if err, _ = v.(error); err == nil {
					err = fmt.Errorf("%v", v)
				}
			} else if !returned {
				err = errors.New("it ended its goroutine (runtime.Goexit)")
			}
		}()
		err = function(ctx, call)
		returned = true
	}()
	<-done
	return stack, err
}
