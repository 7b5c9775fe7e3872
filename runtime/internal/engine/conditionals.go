// Loops and branches as nodes of a graph: the device decides about them, and counts what they do.

package engine

import (
	"context"
	"errors"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/conditions"
)

const countBytes = 8 * conditions.CountWords

// nested lists a loop or branch and all in its bodies, outer ones first.
func (c *control) nested(list []*control) []*control {
	list = append(list, c)
	for _, body := range c.bodies {
		for _, inner := range body.in.controls {
			if inner != nil {
				list = inner.nested(list)
			}
		}
	}
	return list
}

// takeCounts gives the loops and branches of an instance memory to count in.
func (p *Program) takeCounts(in *instance) error {
	for _, c := range in.controls {
		if c == nil || c.counts != nil {
			continue
		}
		c.counts = &counts{nest: c.nested(nil)}
		device := c.node.Device
		bytes := int64(countBytes * len(c.counts.nest))
		var err error
		if c.counts.device, err = p.platform.Alloc(device, bytes); err != nil {
			return err
		}
		if c.counts.host, err = p.platform.AllocHost(bytes, false); err != nil {
			return err
		}
		c.counts.words = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(p.platform.HostBytes(c.counts.host, bytes)))), bytes/8)
		c.counts.fetch, err = p.platform.Encode([]cudart.Command{{Kind: cudart.CopyMemory, Stream: c.stream, Label: c.name, Node: -1,
			Dst: c.counts.host, DstDevice: -1, Src: c.counts.device, SrcDevice: device, Bytes: bytes}}, cudart.ListOptions{Origin: c.stream})
		if err != nil {
			return err
		}
		for k, inner := range c.counts.nest {
			inner.counted = c.counts.device + cudart.Ptr(countBytes*k)
		}
	}
	return nil
}

// count notes that the counts are those of a replay from now on.
func (in *instance) count() {
	for _, c := range in.controls {
		if c != nil && c.counts != nil {
			c.counts.known = true
		}
	}
}

// readCounts takes over what the device has counted in the last replay, which has ended, of an instance that is replayed as a graph.
func (in *instance) readCounts(ctx context.Context) error {
	for _, c := range in.controls {
		if c == nil || c.counts == nil || !c.counts.known {
			continue
		}
		if err := c.counts.fetch.Submit(); err != nil {
			return err
		}
		if err := c.stream.Synchronize(ctx); err != nil {
			return err
		}
		for k, inner := range c.counts.nest {
			words := c.counts.words[conditions.CountWords*k:]
			inner.runs, inner.passes, inner.missed = words[conditions.CountRuns], words[conditions.CountPasses], words[conditions.CountMissed]
			if inner.node.Kind == dag.Branch {
				inner.chosen = [2]int64{words[conditions.CountHeld], inner.runs - words[conditions.CountHeld]}
			}
		}
	}
	return nil
}

// close frees the memory to count in.
func (k *counts) close(platform cudart.Platform, note func(error)) {
	if k.fetch != nil {
		note(k.fetch.Close())
	}
	for _, memory := range []cudart.Ptr{k.host, k.device} {
		if memory != 0 {
			note(platform.Free(memory))
		}
	}
}

// withoutGraph makes a program with loops or branches replay as streams because the platform cannot put them into a graph. Any other error
// remains one. The driver also calls it invalid if a body does what no body may, such as launching kernels from a kernel.
func (p *Program) withoutGraph(err error) error {
	const invalidValue = 1
	var failure *cudart.Error
	invalid := errors.As(err, &failure) && failure.Code == invalidValue
	if p.bodies == nil || !invalid && !errors.Is(err, cudart.ErrUnsupported) {
		return err
	}
	for _, in := range p.instances {
		if in.graph != nil {
			if err := in.graph.Close(); err != nil {
				return err
			}
			in.graph = nil
		}
	}
	p.replayAsStreams(err.Error())
	return nil
}

// NoGraph says why a program with loops or branches replays as streams although its Options asked for a graph; "" if it need not.
func (p *Program) NoGraph() string {
	if p == nil {
		return ""
	}
	return p.noGraph
}

func (p *Program) replayAsStreams(why string) {
	p.mode = Streams
	p.noGraph = why
	p.choice = "streams: the host tests the conditions of loops and branches, because " + why
	p.log.Info("chose how to replay", "mode", p.mode.String(), "because", why)
}
