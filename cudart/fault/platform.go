// The wrapped platform: memory, streams, events, modules, lists and graphs. Uses the wrapped platform only through its interface.

package fault

import (
	"context"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Wrap wraps a platform so that calls fail as planned. Closing the wrapper closes the platform.
func Wrap(p cudart.Platform, plan Plan) *Platform {
	return &Platform{p, &script{plan: plan}}
}

// Calls returns the names of the calls made so far.
func (p *Platform) Calls() []string {
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	return slices.Clone(p.script.calls)
}

// Broken reports whether the call that must fail was made.
func (p *Platform) Broken() bool {
	p.script.mu.Lock()
	defer p.script.mu.Unlock()
	return p.script.broken != nil
}

// MemoryInfo implements [cudart.Platform].
func (p *Platform) MemoryInfo(device int32) (free, total int64, err error) {
	if err := p.script.at("cuMemGetInfo", nil, 0); err != nil {
		return 0, 0, err
	}
	return p.Platform.MemoryInfo(device)
}

// Alloc implements [cudart.Platform].
func (p *Platform) Alloc(device int32, bytes int64) (cudart.Ptr, error) {
	if err := p.script.at("cuMemAlloc", nil, 0); err != nil {
		return 0, err
	}
	return p.Platform.Alloc(device, bytes)
}

// AllocHost implements [cudart.Platform].
func (p *Platform) AllocHost(bytes int64, pageable bool) (cudart.Ptr, error) {
	if err := p.script.at("cuMemHostAlloc", nil, 0); err != nil {
		return 0, err
	}
	return p.Platform.AllocHost(bytes, pageable)
}

// RegisterHost implements [cudart.Platform].
func (p *Platform) RegisterHost(memory []byte) (cudart.Ptr, error) {
	if err := p.script.at("cuMemHostRegister", nil, 0); err != nil {
		return 0, err
	}
	return p.Platform.RegisterHost(memory)
}

// UnregisterHost implements [cudart.Platform].
func (p *Platform) UnregisterHost(ptr cudart.Ptr) error {
	return then(p.script.at("cuMemHostUnregister", nil, 0), p.Platform.UnregisterHost(ptr))
}

// Free implements [cudart.Platform].
func (p *Platform) Free(ptr cudart.Ptr) error {
	return then(p.script.at("cuMemFree", nil, 0), p.Platform.Free(ptr))
}

// EnablePeer implements [cudart.Platform].
func (p *Platform) EnablePeer(device, peer int32) error {
	if err := p.script.at("cuCtxEnablePeerAccess", nil, 0); err != nil {
		return err
	}
	return p.Platform.EnablePeer(device, peer)
}

// NewStream implements [cudart.Platform].
func (p *Platform) NewStream(device int32, priority dag.Priority) (cudart.Stream, error) {
	return p.stream("cuStreamCreateWithPriority", func() (cudart.Stream, error) { return p.Platform.NewStream(device, priority) })
}

// AdoptStream implements [cudart.Platform].
func (p *Platform) AdoptStream(handle uintptr) (cudart.Stream, error) {
	return p.stream("cuStreamGetCtx", func() (cudart.Stream, error) { return p.Platform.AdoptStream(handle) })
}

func (p *Platform) stream(call string, open func() (cudart.Stream, error)) (cudart.Stream, error) {
	if err := p.script.at(call, nil, 0); err != nil {
		return nil, err
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	return &stream{s, p.script}, nil
}

// NewEvent implements [cudart.Platform].
func (p *Platform) NewEvent(device int32, timed bool) (cudart.Event, error) {
	if err := p.script.at("cuEventCreate", nil, 0); err != nil {
		return nil, err
	}
	e, err := p.Platform.NewEvent(device, timed)
	if err != nil {
		return nil, err
	}
	return &event{e, p.script}, nil
}

// Load implements [cudart.Platform].
func (p *Platform) Load(ctx context.Context, device int32, m *launch.Module) (cudart.Module, error) {
	if err := p.script.at("cuModuleLoadData", nil, 0); err != nil {
		return nil, err
	}
	loaded, err := p.Platform.Load(ctx, device, m)
	if err != nil {
		return nil, err
	}
	return &module{loaded, p.script}, nil
}

// Encode implements [cudart.Platform]. It counts as a call named "encode".
func (p *Platform) Encode(commands []cudart.Command, options cudart.ListOptions) (cudart.List, error) {
	if err := p.script.at("encode", nil, 0); err != nil {
		return nil, err
	}
	inner := unwrapAll(commands)
	options.Origin = unwrapStream(options.Origin)
	l, err := p.Platform.Encode(inner, options)
	if err != nil {
		return nil, err
	}
	return &list{List: l, platform: p, commands: inner, options: options}, nil
}

// BuildGraph implements [cudart.Platform].
func (p *Platform) BuildGraph(commands []cudart.Command, deps [][]int32, options cudart.GraphOptions) (cudart.Graph, error) {
	if err := p.script.at("cuGraphInstantiate", nil, 0); err != nil {
		return nil, err
	}
	options.Origin = unwrapStream(options.Origin)
	g, err := p.Platform.BuildGraph(unwrapAll(commands), deps, options)
	if err != nil {
		return nil, err
	}
	return &graph{g, p.script}, nil
}

// Synchronize implements [cudart.Platform].
func (p *Platform) Synchronize(ctx context.Context, device int32) error {
	return then(p.script.at("cuCtxSynchronize", nil, 0), p.Platform.Synchronize(ctx, device))
}

// Close implements [cudart.Platform].
func (p *Platform) Close() error {
	return then(p.script.at("cuDevicePrimaryCtxRelease", nil, 0), p.Platform.Close())
}

var _ cudart.Platform = (*Platform)(nil)
