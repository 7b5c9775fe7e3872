// Capture: records a list as a graph in one call into C. Runs nothing on the device.

package driver

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
)

// Capture records the list as a graph. Begin, commands and end are one call into C, because a thread-local capture must begin and end on one
// thread. The end is called even after an error.
func (l *list) Capture(options cudart.GraphOptions) (cudart.Graph, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && hasCalls(l.commands) {
		g, err := l.captureCalls(options)
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	g := &graph{p: l.p}
	template, d, err := l.capture(options, &g.hosts)
	if err != nil {
		return nil, err
	}
	g.d = d
	err = g.instantiate(template, options.Priorities)
	destroyErr := l.p.dispose(d, cuGraphDestroy, template)
	if err == nil && destroyErr != nil {
		g.Close()
		err = destroyErr
	}
	if err != nil {
		forgetHosts(g.hosts)
		return nil, err
	}
	return g, nil
}

// capture returns a CUgraph, and adds the functions of the host that its nodes run to a list. l.mu is held.
func (l *list) capture(options cudart.GraphOptions, hosts *[]uintptr) (uintptr, *device, error) {
	if l.closed {
		return 0, nil, fmt.Errorf("capture of a closed list")
	}
	origin, err := l.p.origin(options.Origin)
	if err != nil {
		return 0, nil, err
	}
	if origin == nil {
		origin = l.origin
	}
	if origin == nil {
		return 0, nil, fmt.Errorf("capture of a list without an origin stream")
	}
	if err := l.p.prepare(origin.d); err != nil {
		return 0, nil, err
	}
	code, err := l.p.encodeCapture(l.commands, origin)
	if err != nil {
		return 0, nil, err
	}
	defer code.memory.close()
	*code.stop = 0
	submitter := code.submitters[0]
	walkTable(submitter.walk)
	template := submitter.graph()
	if err := code.outcome(l.commands); err != nil {
		forgetHosts(code.functions)
		if template != 0 {
			l.p.dispose(origin.d, cuGraphDestroy, template)
		}
		return 0, nil, err
	}
	*hosts = append(*hosts, code.functions...)
	return template, origin.d, nil
}

// graph returns the CUgraph that cuStreamEndCapture wrote.
func (l *submitter) graph() uintptr {
	for i, f := range l.ends {
		if f == cuStreamEndCapture {
			return uintptr(**(**uint64)(unsafe.Pointer(&l.epilogue[i].arg[1])))
		}
	}
	return 0
}

// encodeCapture makes a table with one submitter, between the begin and the end of a capture. Legacy streams are not bridged here, because
// the launch of the graph is bridged.
func (p *Platform) encodeCapture(list []checked, origin *stream) (*encoded, error) {
	return p.encoding(list, func(e *encoded) error { return e.fillCapture(list, origin) })
}

func (e *encoded) fillCapture(list []checked, origin *stream) error {
	p := e.p
	result, err := e.memory.words(2)
	if err != nil {
		return err
	}
	waited := make(map[*event]bool)
	for i := range list {
		if list[i].Kind == cudart.WaitEvent {
			waited[list[i].event] = true
		}
	}
	l := new(submitter)
	e.submitters = []*submitter{l}
	l.add(p, cuCtxPushCurrent, -1, origin.d.context.Load())
	l.device = origin.d
	l.add(p, cuStreamBeginCapture, -1, origin.handle, captureThreadLocal)
	l.finally(p, cuStreamEndCapture, 1, origin.handle, uintptr(unsafe.Pointer(&result[0])))
	for i := range list {
		c := &list[i]
		if c.stream != nil {
			l.enter(p, c.stream.d)
		}
		// In a graph, a record that takes the time is a node. A record that only orders becomes an edge.
		if c.Kind == cudart.RecordEvent && c.event.timed && !waited[c.event] {
			e.places[i] = place{row: int32(len(l.rows))}
			l.add(p, cuEventRecordWithFlags, int32(i), c.event.handle, c.stream.handle, eventRecordExternal)
			continue
		}
		if err := e.command(l, 0, i, c); err != nil {
			return err
		}
	}
	return nil
}

// captureCalls makes the graph of a list that has calls. A graph cannot be launched into a stream that is being captured, so the graph is built
// from the order of the streams and events. l.mu is held.
func (l *list) captureCalls(options cudart.GraphOptions) (*graph, error) {
	origin, err := l.p.origin(options.Origin)
	if err != nil {
		return nil, err
	}
	if origin == nil {
		origin = l.origin
	}
	if origin == nil {
		return nil, errors.New("capture of a list without an origin stream")
	}
	if err := l.p.prepare(origin.d); err != nil {
		return nil, err
	}
	nodes, deps := streamOrder(l.commands)
	return l.p.build(nodes, deps, origin.d, options.Priorities)
}

// streamOrder returns the commands of a list that are nodes of a graph, and for each the nodes that it comes after: the last ones of its stream,
// and those that its stream has waited for.
func streamOrder(list []checked) (nodes []checked, deps [][]int32) {
	last, recorded := map[*stream][]int32{}, map[*event][]int32{}
	for i := range list {
		c := &list[i]
		switch {
		case c.Kind == cudart.RangePush || c.Kind == cudart.RangePop:
			continue
		case c.Kind == cudart.WaitEvent:
			before := append(slices.Clone(last[c.stream]), recorded[c.event]...)
			slices.Sort(before)
			last[c.stream] = slices.Compact(before)
			continue
		case c.Kind == cudart.RecordEvent:
			recorded[c.event] = last[c.stream]
			if !c.event.timed {
				continue
			}
		}
		nodes, deps = append(nodes, *c), append(deps, last[c.stream])
		last[c.stream] = []int32{int32(len(nodes) - 1)}
	}
	return nodes, deps
}

// Update replaces the graph by the capture of a list with the same shape.
func (g *graph) Update(from cudart.List) error {
	l, ok := from.(*list)
	if !ok || l.p != g.p {
		return fmt.Errorf("the list to update from is not one of this platform's")
	}
	l.mu.Lock()
	if !l.closed && hasCalls(l.commands) {
		next, err := l.captureCalls(cudart.GraphOptions{Priorities: g.priority})
		l.mu.Unlock()
		if err != nil {
			return err
		}
		return g.replace(next)
	}
	var hosts []uintptr
	template, d, err := l.capture(cudart.GraphOptions{}, &hosts)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	defer g.p.dispose(d, cuGraphDestroy, template)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		forgetHosts(hosts)
		return fmt.Errorf("update of a closed graph")
	}
	g.hosts = append(g.hosts, hosts...) // launches that were submitted still run the old ones
	s, err := g.p.sequence(g.d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(cuGraphExecUpdate, g.exec, template, s.out(0), s.out(1))
	if err := s.run(); err != nil {
		if failure, ok := err.(*cudart.Error); ok && failure.Code == codeGraphUpdateFailure {
			if reason := s.outs[1]; (reason == updateParametersChanged || reason == updateNotSupported) && hasRows(l.commands) {
				return g.replaceBy(template, d)
			}
			failure.Detail = updateResult(uint32(s.outs[1]))
		}
		return err
	}
	return nil
}

// updateResult tells why a graph cannot be updated (CUgraphExecUpdateResult).
func updateResult(result uint32) string {
	reasons := [...]string{
		1: "the update failed",
		2: "the graphs differ in shape",
		3: "a node changed its kind",
		4: "a kernel node changed its function in a way that this driver cannot update",
		5: "a node's parameters changed in a way that cannot be updated",
		6: "a node is of a kind that cannot be updated",
		7: "a kernel node changed its function in a way that cannot be updated",
		8: "a node's attributes changed in a way that cannot be updated",
	}
	if int(result) < len(reasons) && reasons[result] != "" {
		return reasons[result] + "; make a new graph instead"
	}
	return fmt.Sprintf("the update was refused with %d; make a new graph instead", result)
}
