// The wrapped streams, events, modules, kernels, lists and graphs. They forward their calls, except the one that must fail.

package fault

import (
	"context"
	"slices"

	"github.com/dagrun/dagrun/cudart"
)

// Platform is a platform with one call that fails. Name, Devices, HostBytes and Live do not count as calls.
type Platform struct {
	cudart.Platform
	script *script
}

type stream struct {
	cudart.Stream
	script *script
}

func (s *stream) Synchronize(ctx context.Context) error {
	return then(s.script.at("cuStreamSynchronize", nil, 0), s.Stream.Synchronize(ctx))
}

func (s *stream) Query() (bool, error) {
	if err := s.script.at("cuStreamQuery", nil, 0); err != nil {
		return false, err
	}
	return s.Stream.Query()
}

func (s *stream) Close() error { return then(s.script.at("cuStreamDestroy", nil, 0), s.Stream.Close()) }

type event struct {
	cudart.Event
	script *script
}

func (e *event) Query() (bool, error) {
	if err := e.script.at("cuEventQuery", nil, 0); err != nil {
		return false, err
	}
	return e.Event.Query()
}

func (e *event) Synchronize(ctx context.Context) error {
	return then(e.script.at("cuEventSynchronize", nil, 0), e.Event.Synchronize(ctx))
}

func (e *event) Since(earlier cudart.Event) (float64, error) {
	if err := e.script.at("cuEventElapsedTime", nil, 0); err != nil {
		return 0, err
	}
	return e.Event.Since(unwrapEvent(earlier))
}

func (e *event) Close() error { return then(e.script.at("cuEventDestroy", nil, 0), e.Event.Close()) }

type module struct {
	cudart.Module
	script *script
}

func (m *module) Kernel(entry string) (cudart.Kernel, error) {
	if err := m.script.at("cuModuleGetFunction", nil, 0); err != nil {
		return nil, err
	}
	k, err := m.Module.Kernel(entry)
	if err != nil {
		return nil, err
	}
	return &kernel{k, m.script}, nil
}

func (m *module) Global(name string) (cudart.Ptr, int64, error) {
	if err := m.script.at("cuModuleGetGlobal", nil, 0); err != nil {
		return 0, 0, err
	}
	return m.Module.Global(name)
}

func (m *module) Close() error { return then(m.script.at("cuModuleUnload", nil, 0), m.Module.Close()) }

type kernel struct {
	cudart.Kernel
	script *script
}

func (k *kernel) Occupancy(shared uint32) (uint32, int, error) {
	if err := k.script.at("cuOccupancyMaxPotentialBlockSize", nil, 0); err != nil {
		return 0, 0, err
	}
	return k.Kernel.Occupancy(shared)
}

func (k *kernel) SetMaxShared(bytes uint32) error {
	if err := k.script.at("cuFuncSetAttribute", nil, 0); err != nil {
		return err
	}
	return k.Kernel.SetMaxShared(bytes)
}

// list keeps its commands, so that a submission can fail in the middle, as with the driver.
type list struct {
	cudart.List
	platform *Platform
	commands []cudart.Command
	options  cudart.ListOptions
}

// Submit counts every command as a call. Those before the one that fails are submitted.
func (l *list) Submit() error {
	for i := range l.commands {
		call := l.commands[i].Call()
		if call == "" {
			continue
		}
		if err := l.platform.script.at(call, &l.commands[i], i); err != nil {
			if e := l.submitBefore(i); e != nil {
				return e
			}
			return err
		}
	}
	return l.List.Submit()
}

func (l *list) submitBefore(n int) error {
	part, err := l.platform.Platform.Encode(l.commands[:n], l.options)
	if err != nil {
		return err
	}
	err = part.Submit()
	return then(err, part.Close())
}

// Capture counts as one call: a capture that fails leaves nothing behind.
func (l *list) Capture(options cudart.GraphOptions) (cudart.Graph, error) {
	if err := l.platform.script.at("cuStreamEndCapture", nil, 0); err != nil {
		return nil, err
	}
	options.Origin = unwrapStream(options.Origin)
	g, err := l.List.Capture(options)
	if err != nil {
		return nil, err
	}
	return &graph{g, l.platform.script}, nil
}

func (l *list) SetArgs(index int, grid [3]uint32, args []cudart.Value) error {
	if err := l.List.SetArgs(index, grid, args); err != nil {
		return err
	}
	l.commands[index].Grid, l.commands[index].Args = grid, slices.Clone(args)
	return nil
}

func (l *list) SetCopy(index int, dst, src cudart.Ptr) error {
	if err := l.List.SetCopy(index, dst, src); err != nil {
		return err
	}
	l.commands[index].Dst, l.commands[index].Src = dst, src
	return nil
}

type graph struct {
	cudart.Graph
	script *script
}

func (g *graph) Launch(s cudart.Stream) error {
	if err := g.script.at("cuGraphLaunch", nil, 0); err != nil {
		return err
	}
	return g.Graph.Launch(unwrapStream(s))
}

func (g *graph) Upload(s cudart.Stream) error {
	if err := g.script.at("cuGraphUpload", nil, 0); err != nil {
		return err
	}
	return g.Graph.Upload(unwrapStream(s))
}

func (g *graph) SetArgs(index int, grid [3]uint32, args []cudart.Value) error {
	if err := g.script.at("cuGraphExecKernelNodeSetParams", nil, 0); err != nil {
		return err
	}
	return g.Graph.SetArgs(index, grid, args)
}

func (g *graph) SetCopy(index int, dst, src cudart.Ptr) error {
	if err := g.script.at("cuGraphExecMemcpyNodeSetParams", nil, 0); err != nil {
		return err
	}
	return g.Graph.SetCopy(index, dst, src)
}

func (g *graph) Update(l cudart.List) error {
	if err := g.script.at("cuGraphExecUpdate", nil, 0); err != nil {
		return err
	}
	if w, ok := l.(*list); ok {
		l = w.List
	}
	return g.Graph.Update(l)
}

func (g *graph) Close() error {
	return then(g.script.at("cuGraphExecDestroy", nil, 0), g.Graph.Close())
}

func unwrapStream(s cudart.Stream) cudart.Stream {
	if w, ok := s.(*stream); ok {
		return w.Stream
	}
	return s
}

func unwrapEvent(e cudart.Event) cudart.Event {
	if w, ok := e.(*event); ok {
		return w.Event
	}
	return e
}

func unwrapAll(commands []cudart.Command) []cudart.Command {
	inner := slices.Clone(commands)
	for i := range inner {
		c := &inner[i]
		c.Stream, c.Event = unwrapStream(c.Stream), unwrapEvent(c.Event)
		if w, ok := c.Kernel.(*kernel); ok {
			c.Kernel = w.Kernel
		}
		if c.Conditional != nil {
			v := *c.Conditional
			if w, ok := v.Decider.(*kernel); ok {
				v.Decider = w.Kernel
			}
			v.Bodies = slices.Clone(v.Bodies)
			for k := range v.Bodies {
				v.Bodies[k].Commands = unwrapAll(v.Bodies[k].Commands)
			}
			c.Conditional = &v
		}
	}
	return inner
}
