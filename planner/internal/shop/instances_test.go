// Turns instances into work for tests, and builds work by hand.

package shop

import "github.com/dagrun/dagrun/planner/internal/plantest/instances"

// The machines of work made by hand.
const (
	upload   = instances.Upload
	compute  = instances.Compute
	download = instances.Download
)

// builder collects operations of work made by hand.
type builder struct{ w Work }

func newBuilder(devices, streams int) *builder {
	b := &builder{Work{Start: []int32{0}}}
	for range devices {
		room := [instances.PerDevice]int32{1, 1, 1, 1}
		room[compute] = int32(streams)
		b.w.Room = append(b.w.Room, room[:]...)
	}
	return b
}

// add appends an operation.
func (b *builder) add(us float64, machine int, preds ...int32) int32 {
	b.w.US = append(b.w.US, us)
	b.w.Machine = append(b.w.Machine, int32(machine))
	b.w.Pred = append(b.w.Pred, preds...)
	b.w.Start = append(b.w.Start, int32(len(b.w.Pred)))
	return int32(len(b.w.US) - 1)
}

// chain appends operations that follow each other on these machines.
func (b *builder) chain(machines []int, us []float64) {
	var preds []int32
	for k, m := range machines {
		preds = []int32{b.add(us[k], m, preds...)}
	}
}

// workOf returns an instance as work.
func workOf(in instances.Instance) *Work {
	b := newBuilder(in.Devices, in.Streams)
	for _, us := range in.Jobs {
		b.chain(in.Route, us)
	}
	return &b.w
}

// declaredOrder is the order in which the operations were added.
func declaredOrder(w *Work) []int32 {
	order := make([]int32, w.Len())
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

// solve returns the least makespan of work without lag, and whether that is proved; see [instances.Least].
func solve(w *Work, start float64, states int) (float64, bool) {
	preds := make([][]int32, w.Len())
	for i := range preds {
		preds[i] = w.preds(int32(i))
	}
	return instances.Least(&instances.Work{US: w.US, Machine: w.Machine, Room: w.Room, Preds: preds}, start, states)
}
