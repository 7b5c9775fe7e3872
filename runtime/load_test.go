// Tests of loading: which modules a device is given.

package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/fault"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// twoDevices is two CPU devices whose calls are counted.
func twoDevices(t *testing.T) *fault.Platform {
	device, err := host.Open(host.Options{Devices: 2, CheckOrder: true})
	require.NoError(t, err)
	platform := fault.Wrap(device, fault.Plan{})
	t.Cleanup(func() { platform.Close() })
	return platform
}

// replayed replays a pipeline in a mode, and checks its results.
func replayed(t *testing.T, text string, platform cudart.Platform, mode runtime.Mode, replays int) {
	ctx := t.Context()
	g, err := file.Parse([]byte(text), file.Options{Name: "p.yaml", Library: kernels.Library()})
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	p, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
	require.NoError(t, err)
	require.Equal(t, mode, p.Mode(), p.NoGraph())
	require.NoError(t, p.Run(ctx, replays))
	results, err := p.Finish(ctx)
	require.NoError(t, err)
	for _, c := range results.Checks {
		require.True(t, c.OK, "%+v", c)
	}
	require.NoError(t, p.Close())
}

func TestMapsOfADeviceAreLoadedTogether(t *testing.T) {
	const text = `
version: 1
name: maps
buffers:
  a: {place: device, dtype: f32, shape: [100]}
  b: {place: device, dtype: f32, shape: [100], device: 1}
  c: {place: device, dtype: f32, shape: [100]}
  long: {place: device, dtype: f32, shape: [100000], init: 1}
  x: {place: host, dtype: f32, shape: [100], expect: {expr: "4*(i + 1)"}}
  y: {place: host, dtype: f32, shape: [100], expect: {expr: "3*i"}}
nodes:
  - {name: count, kernel: iota, args: [100, 0, 1, a]}
  - {name: peer, memcpy: {from: a, to: b}}
  - {name: more, map: a = a + 1, with: {a: a}}
  - {name: twice, map: c = 2*a, with: {c: c, a: a}}
  - {name: again, map: k = 2*v - 1 + cos(0*v), with: {k: a, v: c}}
  - {name: much, map: l = l*cos(0*l), with: {l: long}}
  - {name: thrice, map: b = 3*b, with: {b: b}, device: 1}
  - {name: down, memcpy: {from: a, to: x}}
  - {name: across, memcpy: {from: b, to: y}}
`
	platform := twoDevices(t)
	replayed(t, text, platform, runtime.Streams, 2)
	require.Equal(t, 4, calls(platform, "cuModuleLoad"), "the library, the maps for few elements and the one for many on device 0, and the map of device 1")
}

// deciding is a CPU device that asks for deciders, and notes those that graphs bring. It tests conditions itself.
type deciding struct {
	*fault.Platform
	given map[string]int // by loop or branch: the number of its condition
}

func (*deciding) TakesDeciders() bool { return true }

func (p *deciding) Load(ctx context.Context, device int32, m *launch.Module) (cudart.Module, error) {
	loaded, err := p.Platform.Load(ctx, device, m)
	return decidingModule{loaded}, err
}

type decidingModule struct{ cudart.Module }

func (m decidingModule) Kernel(entry string) (cudart.Kernel, error) {
	if entry == conditions.Entry { // the CPU device cannot run it
		return struct{ cudart.Kernel }{}, nil
	}
	return m.Module.Kernel(entry)
}

func (p *deciding) BuildGraph(commands []cudart.Command, deps [][]int32, options cudart.GraphOptions) (cudart.Graph, error) {
	p.note(commands)
	return p.Platform.BuildGraph(commands, deps, options)
}

func (p *deciding) note(commands []cudart.Command) {
	for k := range commands {
		if v := commands[k].Conditional; v != nil {
			if p.given[commands[k].Label] = v.Number; v.Decider == nil {
				p.given[commands[k].Label] = -1
			}
			for _, body := range v.Bodies {
				p.note(body.Commands)
			}
		}
	}
}

func TestDecidersAreLoadedWithTheMaps(t *testing.T) {
	const text = `
version: 1
name: deciders
buffers:
  a: {place: device, dtype: f32, shape: [2], init: 3}
  b: {place: device, dtype: f32, shape: [2], device: 1}
  x: {place: host, dtype: f32, shape: [2], expect: {value: 6}}
  y: {place: host, dtype: f32, shape: [2], expect: {value: 6}}
nodes:
  - name: grow
    repeat: {until: a(0..1) >= 6, most: 10}
    nodes:
      - {name: more, map: a = a + 1, with: {a: a}}
      - name: odd
        if: a(1..2) >= 6
        nodes:
          - name: settle
            repeat: {times: 3}
            nodes: [{name: same, map: a = a*1, with: {a: a}}]
  - {name: peer, memcpy: {from: a, to: b}}
  - name: there
    repeat: {until: b(1..2) >= 6, most: 10}
    nodes: [{name: keep, map: b = b*1, with: {b: b}, device: 1}]
  - {name: down, memcpy: {from: a, to: x}}
  - {name: across, memcpy: {from: b, to: y}}
`
	platform := &deciding{twoDevices(t), map[string]int{}}
	replayed(t, text, platform, runtime.Built, 1)
	require.Equal(t, map[string]int{"grow": 1, "odd": 1, "settle": 0, "there": 1}, platform.given, "equal conditions have one number")
	require.Equal(t, 2, calls(platform.Platform, "cuModuleLoad"), "on each device, the maps and the decider are one module")
}
