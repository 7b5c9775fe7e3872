// Measures a machine with small pipelines that are planned and replayed like any other. Each is made so that one figure of the planning
// model determines how long it takes.

package measure

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// measuredRounds is how many times what takes little time is measured, of which the fastest counts: a host submits at other speeds at other times,
// for up to seconds, and other processes may use the device.
const measuredRounds = 3

// Machine returns a planning model of a platform's first device, measured where that can be. report is called before each step; it may be nil.
func Machine(ctx context.Context, platform cudart.Platform, report func(stage string, done, total int)) (*planner.Machine, error) {
	if platform == nil || len(platform.Devices()) == 0 {
		return nil, fmt.Errorf("there is nothing to measure: %w", cudart.ErrNoDevice)
	}
	m := &measurer{platform: platform, machine: MachineOf(platform), bytes: 256 << 20, runs: 20}
	if platform.Name() == "cpu" {
		m.bytes = 8 << 20
	}
	type step struct {
		name string
		run  func(context.Context) error
	}
	// Measure graphs first: with some drivers, a process that has used several streams replays graphs more slowly.
	small := []step{{"graphs", m.graphs}, {"engines", m.engines}, {"launches", m.launches}, {"gaps", m.gaps}}
	large := []step{{"copies", m.copies}, {"switches", m.switches}, {"memory", m.memory}, {"peers", m.peers}, {"buses", m.buses}}
	done, total := 0, measuredRounds*len(small)+len(large)
	take := func(steps []step) error {
		for _, step := range steps {
			if report != nil {
				report("measure "+step.name, done, total)
			}
			if err := step.run(ctx); err != nil {
				return fmt.Errorf("measure %s: %w", step.name, err)
			}
			done++
		}
		return nil
	}
	for range measuredRounds {
		m.call = 0
		if err := take(small); err != nil {
			return nil, err
		}
	}
	if err := take(large); err != nil {
		return nil, err
	}
	return m.machine, m.machine.Validate()
}

func (m *measurer) graphs(ctx context.Context) error {
	chain, err := m.time(ctx, engine.Captured, chains(1, measuredChain, 0))
	if err != nil {
		return err
	}
	wide, err := m.time(ctx, engine.Captured, chains(measuredWidth, measuredChain, 0))
	if err != nil {
		return err
	}
	short, err := m.time(ctx, engine.Captured, chains(1, measuredShort, 0))
	if err != nil {
		return err
	}
	m.machine.GraphNodeUS = chain.Device.Min / measuredChain
	m.machine.GraphLaunchUS = max(0, short.Wall-measuredShort*m.machine.GraphNodeUS)
	m.machine.GraphIssueUS = min(m.machine.GraphNodeUS, wide.Device.Min/(measuredWidth*measuredChain))
	return nil
}

func (m *measurer) launches(ctx context.Context) error {
	chain, err := m.time(ctx, engine.Streams, chains(1, measuredChain, 0))
	if err != nil {
		return err
	}
	ping, err := m.time(ctx, engine.Streams, pingPong(measuredChain, 0))
	if err != nil {
		return err
	}
	m.machine.LaunchUS = chain.Submit.Median / measuredChain
	// Each step adds a record and a wait. Differences are of the fastest replays: the host may be slower during one measurement than during another.
	m.machine.EventUS = max(0, (ping.Submit.Min-chain.Submit.Min)/(2*(measuredChain-1)))
	if m.machine.Cores > 0 {
		return nil
	}
	// Copies in a row take less than copies between kernels, which is what pipelines have.
	mixed, err := m.time(ctx, engine.Streams, m.inTurn(1, m.upload, func(b *dag.Builder, _, i int) dag.NodeID {
		return b.Kernel(fmt.Sprintf("k%d", i), "noop", nil)
	}))
	if err != nil {
		return err
	}
	m.machine.CopyLaunchUS = max(leastLaunchUS, mixed.Submit.Min/(measuredTurns/2)-chain.Submit.Min/measuredChain)
	return nil
}

func (m *measurer) gaps(ctx context.Context) error {
	const steps = 64
	chain, err := m.time(ctx, engine.Streams, chains(1, steps, measuredSpinUS))
	if err != nil {
		return err
	}
	ping, err := m.time(ctx, engine.Streams, pingPong(steps, measuredSpinUS))
	if err != nil {
		return err
	}
	m.machine.GapUS = max(0, chain.Device.Min/steps-measuredSpinUS)
	m.machine.SyncUS = max(0, (ping.Device.Min-chain.Device.Min)/(steps-1))
	return nil
}

// copy measures a small and a large copy, and returns the time before the first byte and the rate.
func (m *measurer) copy(ctx context.Context, from, to func(b *dag.Builder, name string, elements int64) dag.BufferID) (startUS, rate float64, err error) {
	timed := func(bytes int64) (float64, error) {
		t, err := m.time(ctx, engine.Streams, func(b *dag.Builder) {
			src, dst := from(b, "from", bytes/4), to(b, "to", bytes/4)
			b.Copy("copy", b.Whole(dst), b.Whole(src))
		})
		if err != nil {
			return 0, err
		}
		return t.Device.Min, nil
	}
	small, err := timed(4096)
	if err != nil {
		return 0, 0, err
	}
	large, err := timed(m.bytes)
	if err != nil {
		return 0, 0, err
	}
	return small, float64(m.bytes) / max(large-small, 1e-3), nil
}

func (m *measurer) copies(ctx context.Context) (err error) {
	start, rate, err := m.copy(ctx, onHost, onDevice)
	if err != nil {
		return err
	}
	if m.machine.HostToDevice = rate; m.machine.Cores > 0 {
		m.machine.CopyUS = start
	}
	if _, m.machine.DeviceToHost, err = m.copy(ctx, onDevice, onHost); err != nil {
		return err
	}
	if _, m.machine.DeviceToDevice, err = m.copy(ctx, onDevice, onDevice); err != nil {
		return err
	}
	if _, m.machine.HostToHost, err = m.copy(ctx, onHost, onHost); err != nil {
		return err
	}
	return m.bothWays(ctx)
}

// bothWays measures an upload and a download that start together, and each of them alone.
func (m *measurer) bothWays(ctx context.Context) error {
	timed := func(up, down bool) (float64, error) {
		t, err := m.time(ctx, engine.Streams, func(b *dag.Builder) {
			from, to := onHost(b, "from", m.bytes/4), onDevice(b, "to", m.bytes/4)
			made, result := onDevice(b, "made", m.bytes/4), onHost(b, "result", m.bytes/4)
			if up {
				b.Copy("up", b.Whole(to), b.Whole(from))
			}
			if down {
				b.Copy("down", b.Whole(result), b.Whole(made))
			}
		})
		if err != nil {
			return 0, err
		}
		return t.Device.Min, nil
	}
	up, err := timed(true, false)
	if err != nil {
		return err
	}
	down, err := timed(false, true)
	if err != nil {
		return err
	}
	both, err := timed(true, true)
	if err != nil {
		return err
	}
	// Both are slowed until the shorter one ends. The rest of the longer one runs at full speed.
	shorter, rest := min(up, down), max(up, down)-min(up, down)
	m.machine.BothWays = max(0.01, min(1, shorter/max(both-rest, 1e-3)))
	return nil
}

// switches measures copies that an engine takes from three streams in turn, and the same copies on one stream. A kernel after each copy
// delays the next copy of its stream, so that the engine has to change streams. Between copies of one stream there is a gap.
func (m *measurer) switches(ctx context.Context) error {
	const copies, streams = 48, 3
	elements := m.bytes / 4 / (4 * copies)
	timed := func(copyOn, kernelOn func(i int) int32) (float64, error) {
		t, err := m.time(ctx, engine.Streams, func(b *dag.Builder) {
			from, to := onHost(b, "from", copies*elements), onDevice(b, "to", copies*elements)
			for i := range int64(copies) {
				part := func(buffer dag.BufferID) dag.Range {
					return dag.Range{Buffer: buffer, Lo: 4 * i * elements, Hi: 4 * (i + 1) * elements}
				}
				copied := b.Copy(fmt.Sprintf("copy%d", i), part(to), part(from))
				b.Stream(copied, copyOn(int(i)))
				kernel := b.Kernel(fmt.Sprintf("kernel%d", i), "noop", nil)
				b.Stream(kernel, kernelOn(int(i)))
				b.After(kernel, copied)
			}
		})
		if err != nil {
			return 0, err
		}
		return t.Device.Min, nil
	}
	stay, err := timed(func(int) int32 { return 0 }, func(int) int32 { return 1 })
	if err != nil {
		return err
	}
	inTurn := func(i int) int32 { return int32(i % streams) }
	change, err := timed(inTurn, inTurn)
	if err != nil {
		return err
	}
	m.machine.CopySwitchUS = max(0, m.machine.GapUS+(change-stay)/(copies-1))
	return nil
}

// memory measures a kernel that reads and writes as fast as it can, and one that does almost nothing.
func (m *measurer) memory(ctx context.Context) error {
	timed := func(elements int64) (float64, error) {
		t, err := m.time(ctx, engine.Streams, func(b *dag.Builder) {
			x, y := b.Device("x", dag.F32, elements), b.Device("y", dag.F32, elements)
			b.Kernel("square", "square", dag.Args{elements, b.Whole(x), b.Whole(y)})
		})
		if err != nil {
			return 0, err
		}
		return t.Device.Min, nil
	}
	small, err := timed(1)
	if err != nil {
		return err
	}
	large, err := timed(m.bytes / 4)
	if err != nil {
		return err
	}
	m.machine.Memory = 2 * float64(m.bytes) / max(large-small, 1e-3)
	return nil
}

func (m *measurer) peers(ctx context.Context) (err error) {
	devices := m.platform.Devices()
	if len(devices) < 2 || !devices[0].Peers[1] {
		return nil
	}
	second := func(b *dag.Builder, name string, elements int64) dag.BufferID {
		id := b.Device(name, dag.F32, elements)
		b.OnDevice(id, 1)
		return id
	}
	_, m.machine.PeerToPeer, err = m.copy(ctx, onDevice, second)
	return err
}

// mostMeasuredDevices limits the pairs that are measured.
const mostMeasuredDevices = 16

// buses measures uploads to several devices at once.
func (m *measurer) buses(ctx context.Context) (err error) {
	devices := m.platform.Devices()
	if len(devices) < 2 || m.machine.Cores > 0 {
		return nil
	}
	m.machine.Buses, err = findBuses(min(len(devices), mostMeasuredDevices), float64(m.bytes), func(list []int32) (float64, error) {
		t, err := m.time(ctx, engine.Streams, func(b *dag.Builder) { uploads(b, list, m.bytes/4) })
		if err != nil {
			return 0, err
		}
		return t.Device.Min, nil
	})
	return err
}
