// Modules that are joined before they are loaded: maps, and the kernel that decides about loops and branches in graphs.

package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/launch"
	kernelmaps "github.com/dagrun/dagrun/kernels/maps"
)

// needDecider notes where loops and branches in graphs need the kernel that decides about them. It is loaded whether there will be a graph or not, because
// it is joined with maps, and a driver compiles those again if they are joined with something else.
func (l *loader) needDecider(family []*Program) {
	if p := l.program; p.deciders != nil || p.bodies == nil || !p.platform.TakesDeciders() {
		return
	}
	d := &deciders{kernels: map[int32]cudart.Kernel{}}
	for _, q := range family {
		q.deciders = d
		for i := range q.graph.Nodes {
			if n := &q.graph.Nodes[i]; n.Control != nil {
				d.Add(testOf(n))
				d.kernels[n.Device] = nil
			}
		}
	}
	d.module = d.Module()
	for device := range d.kernels {
		l.joinable(device, d.module)
	}
}

// load loads the kernel that decides where that has not been done.
func (d *deciders) load(kernel func(device int32) (cudart.Kernel, error)) error {
	for _, device := range slices.Sorted(maps.Keys(d.kernels)) {
		if d.kernels[device] != nil {
			continue
		}
		k, err := kernel(device)
		if err != nil {
			return fmt.Errorf("loops and branches: %w", err)
		}
		d.kernels[device] = k
	}
	return nil
}

// joinable notes a module that can be joined with others.
func (l *loader) joinable(device int32, m *launch.Module) {
	if !slices.Contains(l.joinables[device], m) {
		l.joinables[device] = append(l.joinables[device], m)
	}
}

// join makes one module of those of each device that can be joined: a driver compiles it in less time than each on its own.
func (l *loader) join() {
	p := l.program
	if p.joined == nil {
		p.joined = map[int32]*launch.Module{}
	}
	for device, modules := range l.joinables {
		if p.joined[device] == nil && len(modules) > 1 {
			p.joined[device] = kernelmaps.Join(modules)
		}
	}
}
