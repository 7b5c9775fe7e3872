// Tests of loading: which modules a device is given.

package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/fault"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

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
	g, err := dag.Parse([]byte(text), dag.Options{Name: "maps.yaml", Library: kernels.Library()})
	require.NoError(t, err)
	device, err := host.Open(host.Options{Devices: 2, CheckOrder: true})
	require.NoError(t, err)
	platform := fault.Wrap(device, fault.Plan{})
	defer platform.Close()
	ctx := context.Background()
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	p, err := runtime.New(ctx, g, plan, platform, runtime.Options{})
	require.NoError(t, err)
	require.NoError(t, p.Run(ctx, 2))
	results, err := p.Finish(ctx)
	require.NoError(t, err)
	for _, c := range results.Checks {
		require.True(t, c.OK, "%+v", c)
	}
	require.NoError(t, p.Close())
	require.Equal(t, 4, calls(platform, "cuModuleLoad"), "the library, the maps for few elements and the one for many on device 0, and the map of device 1")
}
