// Tests of launches that begin early, on a fake driver.

//go:build linux && (amd64 || arm64)

package driver

import (
	"bytes"
	"context"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/launch"
)

// earlyWorld has the test module in the form whose kernels wait.
func earlyWorld(t *testing.T, d *fakeDriver) (*Platform, *bench) {
	d.version = 12040
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	require.NoError(t, w.module.Close())
	waiting := *testModule
	waiting.Waiting, waiting.Code = true, bytes.Replace(testModule.Code, []byte("sm_60"), []byte("sm_60\n.address_size 64"), 1)
	w.module, err = p.Load(context.Background(), 0, &waiting)
	require.NoError(t, err)
	w.kernel, err = w.module.Kernel("scale")
	require.NoError(t, err)
	require.True(t, w.kernel.Attributes().WaitsFirst)
	return p, w
}

// attributes are the attributes of each launch since a place in the log, nil for a launch without any.
func (d *fakeDriver) attributes(from int) (list [][]launchAttribute) {
	for _, c := range d.log[from:] {
		switch c.f {
		case cuLaunchKernel:
			list = append(list, nil)
		case cuLaunchKernelEx:
			config := *(**launchConfig)(unsafe.Pointer(&c.args[0]))
			list = append(list, append([]launchAttribute{}, config.list[:config.count]...))
		}
	}
	return list
}

func TestEarlyLaunches(t *testing.T) {
	d := newFakeDriver(t)
	p, w := earlyWorld(t, d)
	require.NoError(t, p.CanOverlap(0))
	early := func(c cudart.Command) cudart.Command { c.Early = true; return c }
	l, err := p.Encode([]cudart.Command{
		early(w.launch(w.origin, "first")),
		early(w.launch(w.second, "apart")),
		early(w.launch(w.origin, "second")),
		{Kind: cudart.RecordEvent, Stream: w.origin, Event: w.event},
		early(w.launch(w.origin, "after a record")),
		early(w.launch(w.origin, "third")),
		w.launch(w.origin, "plain"),
	}, cudart.ListOptions{Origin: w.origin})
	require.NoError(t, err)
	begins := []launchAttribute{{id: attributeEarly, value: [16]uint32{1}}}
	none := []launchAttribute{}
	submit := func() [][]launchAttribute {
		from := d.mark()
		require.NoError(t, l.Submit())
		return d.attributes(from)
	}
	require.Equal(t, [][]launchAttribute{none, none, begins, none, begins, nil}, submit())
	last := d.log[len(d.log)-3]
	config := *(**launchConfig)(unsafe.Pointer(&last.args[0]))
	require.Equal(t, cuLaunchKernelEx, last.f)
	require.Equal(t, [3]uint32{4, 1, 1}, config.grid)
	require.Equal(t, [3]uint32{64, 1, 1}, config.block)
	require.Equal(t, w.origin.Handle(), config.stream)
	args := w.launch(w.origin, "").Args
	require.NoError(t, l.SetArgs(4, [3]uint32{0, 1, 1}, args))
	require.Equal(t, [][]launchAttribute{none, none, begins, none, nil}, submit(), "the launch before is empty, and before that is a record")
	require.NoError(t, l.SetArgs(4, [3]uint32{9, 1, 1}, args))
	require.Equal(t, [][]launchAttribute{none, none, begins, none, begins, nil}, submit())
	require.NoError(t, l.SetArgs(2, [3]uint32{5, 1, 1}, args))
	require.Equal(t, [][]launchAttribute{none, none, begins, none, begins, nil}, submit())
	require.NoError(t, l.Close())
	require.NoError(t, w.close())
	d.clean(t)
}

func TestEarlyNodesOfGraphs(t *testing.T) {
	d := newFakeDriver(t)
	p, w := earlyWorld(t, d)
	var commands []cudart.Command
	for range 4 {
		c := w.launch(w.origin, "")
		c.Early = true
		commands = append(commands, c)
	}
	from := d.mark()
	g, err := p.BuildGraph(commands, [][]int32{nil, {0}, {0}, {1, 2}}, cudart.GraphOptions{})
	require.NoError(t, err)
	edges := func() (early []uintptr) {
		for _, c := range d.log[from:] {
			if c.f == cuGraphAddDependencies2 {
				require.EqualValues(t, uint64(1|1<<16), peek[uint64](c.args[3]))
				early = append(early, c.args[4])
			}
		}
		return early
	}
	require.Equal(t, []uintptr{2}, edges(), "the node with two dependencies begins when both have ended")
	from = d.mark()
	require.NoError(t, g.SetArgs(0, [3]uint32{0, 1, 1}, commands[0].Args))
	require.Empty(t, edges(), "nothing begins early after a node that does nothing")
	from = d.mark()
	require.NoError(t, g.SetArgs(0, [3]uint32{1, 1, 1}, commands[0].Args))
	require.Equal(t, []uintptr{2}, edges())
	_, err = p.BuildGraph(commands[:2], [][]int32{{1}, {0}}, cudart.GraphOptions{})
	require.EqualError(t, err, "command 0: it waits for itself through other nodes")
	require.NoError(t, g.Close())
	require.NoError(t, w.close())
	d.clean(t)
}

func TestEarlyLaunchesAreRefused(t *testing.T) {
	d := newFakeDriver(t)
	p, w := earlyWorld(t, d)
	encode := func(change func(*cudart.Command)) error {
		c := w.launch(w.origin, "k")
		c.Early = true
		change(&c)
		_, err := p.Encode([]cudart.Command{c}, cudart.ListOptions{Origin: w.origin})
		return err
	}
	plain, err := p.Load(context.Background(), 0, testModule)
	require.NoError(t, err)
	require.EqualError(t, encode(func(c *cudart.Command) { c.Kernel, err = plain.Kernel("scale"); require.NoError(t, err) }),
		`node "k": kernel scale may begin before the launch before it has ended, but its code does not wait for that`)
	require.EqualError(t, encode(func(c *cudart.Command) { c.Cooperative = true }),
		`node "k": kernel scale may begin before the launch before it has ended, but all its blocks must run at once`)
	_, err = p.Load(context.Background(), 0, &launch.Module{Name: "mine", Kind: launch.Cubin, Waiting: true, Code: []byte("binary")})
	require.EqualError(t, err, "module mine: not supported: launches of its kernels cannot overlap, because its code is no PTX")
	_, err = p.Load(context.Background(), 0, &launch.Module{Name: "mine", Kind: launch.PTX, Waiting: true, Code: []byte(".version 7.0\n.target sm_60\n.address_size 32\n")})
	require.EqualError(t, err, "module mine: not supported: launches of its kernels cannot overlap: the PTX has addresses of 32 bits")
	require.NoError(t, plain.Close())
	require.NoError(t, w.close())
	require.EqualError(t, p.CanOverlap(7), "no device 7: there are 2, numbered from 0")
	d.clean(t)
	for version, missing := range map[int32]string{12020: "", 12040: "cuLaunchKernelEx"} {
		d := newFakeDriver(t)
		d.version = version
		if missing != "" {
			d.missing[missing] = true
		}
		p := d.open(t)
		want := "not supported: launches overlap with drivers for CUDA 12.3 and newer, and this one is for CUDA 12.2"
		if missing != "" {
			want = "not supported: the driver (CUDA 12.4) has no cuLaunchKernelEx, which came with CUDA 11.6"
		}
		require.EqualError(t, p.CanOverlap(0), want)
		d.clean(t)
	}
}
