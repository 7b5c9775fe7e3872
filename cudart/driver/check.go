// Checks every command of a list or graph before anything is launched.

package driver

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// check resolves and checks commands. For a graph that is built node by node, streams are ignored.
func (p *Platform) check(commands []cudart.Command, streams bool) ([]checked, error) {
	list := make([]checked, len(commands))
	for i := range commands {
		c := &list[i]
		c.Command = commands[i]
		if streams && c.Kind != cudart.RangePush && c.Kind != cudart.RangePop {
			s, ok := c.Stream.(*stream)
			if !ok || s.p != p {
				return nil, c.wrong(i, "its stream is not one of this platform's")
			}
			if s.closed.Load() {
				return nil, c.wrong(i, "its stream is closed")
			}
			c.stream = s
		}
		if err := p.checkOne(c, i, streams); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *Platform) checkOne(c *checked, i int, streams bool) error {
	switch c.Kind {
	case cudart.LaunchKernel:
		k, ok := c.Kernel.(*kernel)
		if !ok || k.p != p {
			return c.wrong(i, "its kernel is not one of this platform's")
		}
		if k.closed.Load() {
			return c.wrong(i, "the module of kernel %s is closed", k.entry)
		}
		c.kernel = k
		if c.stream != nil && c.stream.d != k.d {
			return c.wrong(i, "kernel %s is loaded on device %d and its stream is on device %d", k.entry, k.d.number, c.stream.d.number)
		}
		return p.checkLaunch(c, i)
	case cudart.CopyMemory:
		if c.Bytes < 0 {
			return c.wrong(i, "a copy of %d bytes is not possible", c.Bytes)
		}
		if problem := c.RowProblem(); problem != "" {
			return c.wrong(i, "a copy of %s", problem)
		}
		for _, number := range [2]int32{c.DstDevice, c.SrcDevice} {
			if number >= 0 {
				if _, err := p.device(number); err != nil {
					return c.wrong(i, "%v", err)
				}
			}
		}
	case cudart.SetMemory:
		if c.DstDevice >= 0 {
			if _, err := p.device(c.DstDevice); err != nil {
				return c.wrong(i, "%v", err)
			}
		}
		if c.Width != 1 && c.Width != 2 && c.Width != 4 {
			return c.wrong(i, "a set of elements of %d bytes; 1, 2 and 4 are possible", c.Width)
		}
		if c.Bytes < 0 || c.Bytes%int64(c.Width) != 0 {
			return c.wrong(i, "a set of %d bytes in elements of %d", c.Bytes, c.Width)
		}
		if problem := c.RowProblem(); problem != "" {
			return c.wrong(i, "a set of %s", problem)
		}
	case cudart.RecordEvent, cudart.WaitEvent:
		e, ok := c.Event.(*event)
		if !ok || e.p != p {
			return c.wrong(i, "its event is not one of this platform's")
		}
		if e.closed.Load() {
			return c.wrong(i, "its event is closed")
		}
		c.event = e
		if c.Kind == cudart.RecordEvent && c.stream != nil && c.stream.d != e.d {
			return c.wrong(i, "an event of device %d recorded on a stream of device %d", e.d.number, c.stream.d.number)
		}
	case cudart.Communicate:
		if problem := p.communicationProblem(c.Communication, c.stream); problem != "" {
			return c.wrong(i, "%s", problem)
		}
	case cudart.RunBodies:
		return p.checkConditional(c, i, streams)
	case cudart.RunHost:
		if c.Host == nil {
			return c.wrong(i, "there is no function to run")
		}
	case cudart.Empty, cudart.RangePush, cudart.RangePop:
	default:
		return c.wrong(i, "unknown kind of command %d", c.Kind)
	}
	return nil
}

// checkLaunch finds mistakes in a launch, including those that the driver would not report.
func (p *Platform) checkLaunch(c *checked, i int) error {
	k := c.kernel
	if err := checkArgs(k, c.Args); err != nil {
		return c.wrong(i, "%v", err)
	}
	args, err := p.bindTextures(k.d, c.Args)
	if err != nil {
		return c.wrong(i, "kernel %s: %v", k.entry, err)
	}
	c.Args = args
	info := &k.d.info
	threads := uint64(c.Block[0]) * uint64(c.Block[1]) * uint64(c.Block[2])
	if threads == 0 {
		return c.wrong(i, "kernel %s: a block of %dx%dx%d threads", k.entry, c.Block[0], c.Block[1], c.Block[2])
	}
	if threads > uint64(k.attributes.MaxThreads) {
		return c.wrong(i, "kernel %s: a block of %d threads; the kernel runs with at most %d on device %d (%d registers a thread)",
			k.entry, threads, k.attributes.MaxThreads, k.d.number, k.attributes.Registers)
	}
	for axis, name := range [3]string{"x", "y", "z"} {
		if int64(c.Block[axis]) > int64(info.MaxBlock[axis]) {
			return c.wrong(i, "kernel %s: a block of %d threads in %s; device %d allows %d", k.entry, c.Block[axis], name, k.d.number, info.MaxBlock[axis])
		}
	}
	if err := checkGrid(k, c.Grid); err != nil {
		return c.wrong(i, "%v", err)
	}
	if c.Shared > 0 {
		if err := k.SetMaxShared(c.Shared); err != nil {
			return c.wrong(i, "%v", err)
		}
	}
	if err := p.checkEarly(c, i); err != nil {
		return err
	}
	if err := p.checkCluster(c, i); err != nil {
		return err
	}
	if c.Cooperative {
		if err := k.fitsTogether(c.Grid, uint32(threads), c.Shared); err != nil {
			return c.wrong(i, "%v", err)
		}
	}
	return nil
}

func checkGrid(k *kernel, grid [3]uint32) error {
	for axis, name := range [3]string{"x", "y", "z"} {
		if int64(grid[axis]) > int64(k.d.info.MaxGrid[axis]) {
			return fmt.Errorf("kernel %s: a grid of %d blocks in %s; device %d allows %d", k.entry, grid[axis], name, k.d.number, k.d.info.MaxGrid[axis])
		}
	}
	return nil
}

// checkArgs compares arguments with what the driver knows about the parameters.
func checkArgs(k *kernel, args []cudart.Value) error {
	if problem := cudart.MemberProblem(args); problem != "" {
		return fmt.Errorf("kernel %s: %s", k.entry, problem)
	}
	sizes := k.attributes.ParamSizes
	if sizes == nil {
		return nil
	}
	args = cudart.OwnValues(args)
	if len(args) != len(sizes) {
		return fmt.Errorf("kernel %s takes %d arguments, but %d are given", k.entry, len(sizes), len(args))
	}
	for i, v := range args {
		if size := valueBytes(v); size != sizes[i] {
			return fmt.Errorf("kernel %s: argument %d has %d bytes, but its parameter has %d", k.entry, i, size, sizes[i])
		}
	}
	return nil
}

func valueBytes(v cudart.Value) int {
	if v.Pointer {
		return 8
	}
	if v.Struct != nil {
		return len(v.Struct)
	}
	return int(v.Size)
}

func hasRows(list []checked) bool {
	return slices.ContainsFunc(list, func(c checked) bool { return c.Rows > 1 })
}

// checkConditional checks a conditional and everything in its bodies.
func (p *Platform) checkConditional(c *checked, i int, streams bool) error {
	v := c.Conditional
	if problem := v.Problem(); problem != "" {
		return c.wrong(i, "%s", problem)
	}
	switch {
	case v.Counts == 0:
		return c.wrong(i, "it has no memory for its counts")
	case streams:
		return c.refused(i, "a loop or branch is part of a graph, not of a list")
	case !p.TakesDeciders():
		return c.refused(i, "the driver (CUDA %s) has no conditional graph nodes, which came with CUDA %s", versionText(p.lib.version),
			versionText(conditionalDriver))
	}
	number := int32(0)
	if s, ok := c.Stream.(*stream); ok && s.p == p {
		number = s.d.number
	}
	decider, ok := v.Decider.(*kernel)
	switch {
	case !ok || decider.p != p:
		return c.wrong(i, "the kernel that decides about it is not one of this platform's")
	case decider.closed.Load():
		return c.wrong(i, "the module of kernel %s is closed", decider.entry)
	case decider.d.number != number:
		return c.wrong(i, "kernel %s is loaded on device %d and its stream is on device %d", decider.entry, decider.d.number, number)
	case v.Condition != nil && v.Number == 0:
		return c.wrong(i, "the kernel that decides about it does not know its condition")
	case len(decider.attributes.ParamSizes) < conditions.Parameters+len(v.Operands):
		return c.wrong(i, "kernel %s takes %d arguments, but %d are given", decider.entry, len(decider.attributes.ParamSizes), conditions.Parameters+len(v.Operands))
	}
	c.bodies = &bodies{decider: decider}
	for _, body := range v.Bodies {
		if len(body.Deps) != len(body.Commands) {
			return c.wrong(i, "its body has %d commands, but dependencies for %d", len(body.Commands), len(body.Deps))
		}
		list, err := p.check(body.Commands, false)
		if err != nil {
			return err
		}
		for k := range list {
			if problem := list[k].notInBody(number); problem != "" {
				return list[k].refused(k, "%s, which the body of a conditional graph node cannot", problem)
			}
			list[k].Args = slices.Clone(list[k].Args)
		}
		c.bodies.commands = append(c.bodies.commands, list)
	}
	return nil
}

// TakesDeciders implements [cudart.Platform]: it does if the driver has conditional nodes.
func (p *Platform) TakesDeciders() bool {
	return p.lib.version >= conditionalDriver && p.lib.address[cuGraphConditionalHandleCreate] != 0 && p.lib.address[cuGraphAddNode] != 0
}

// Drivers before conditionalDriver have no conditional nodes that can be relied on, and those before elseDriver none with a second body.
const (
	conditionalDriver = 12040
	elseDriver        = 12080
)
