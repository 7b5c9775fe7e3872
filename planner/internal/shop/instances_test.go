// Instances: chunks with kernels of every shape, and random shops, as they stand in the tests of orders and bounds.

package shop

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// The machines of the instances. Each device has its own.
const (
	upload = iota
	compute
	download
	peer
	perDevice
)

// instance is a shop with its name.
type instance struct {
	name string
	work *Work
	jobs int
}

// builder collects operations.
type builder struct{ w Work }

func newBuilder(devices, streams int) *builder {
	b := &builder{Work{Start: []int32{0}}}
	for range devices {
		room := [perDevice]int32{1, 1, 1, 1}
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

var routes = map[string][]int{
	"upload-kernel":          {upload, compute},
	"kernel-download":        {compute, download},
	"upload-kernel-download": {upload, compute, download},
	"two devices":            {upload, compute, peer, perDevice + compute, perDevice + download},
}

// randomShop makes a shop whose operations take 10 to 100 us, those on several streams as much longer as there are streams.
func randomShop(route string, jobs, streams int, seed uint64) instance {
	rng := rand.New(rand.NewPCG(seed, 41))
	machines := routes[route]
	devices := 1
	if route == "two devices" {
		devices = 2
	}
	b := newBuilder(devices, streams)
	for range jobs {
		us := make([]float64, len(machines))
		for k, m := range machines {
			us[k] = float64(10 + rng.IntN(91))
			if m%perDevice == compute {
				us[k] *= float64(streams)
			}
		}
		b.chain(machines, us)
	}
	return instance{fmt.Sprintf("%s, %d jobs, %d streams, seed %d", route, jobs, streams, seed), &b.w, jobs}
}

// chunkKinds are how the kernels of chunks differ.
var chunkKinds = []string{"even", "alternating", "falling", "rising", "lognormal"}

// chunks makes chunks of equal copies with kernels that differ.
func chunks(kind string, count, streams int, seed uint64) instance {
	rng := rand.New(rand.NewPCG(seed, 43))
	b := newBuilder(1, streams)
	for k := range count {
		kernel := 40.0
		switch at := float64(k) / float64(count-1); kind {
		case "alternating":
			kernel = []float64{20, 60}[k%2]
		case "falling":
			kernel = 80 - math.Round(70*at)
		case "rising":
			kernel = 10 + math.Round(70*at)
		case "lognormal":
			kernel = math.Round(40 * math.Exp(0.7*rng.NormFloat64()))
		}
		b.chain(routes["upload-kernel-download"], []float64{40, kernel * float64(streams), 40})
	}
	return instance{fmt.Sprintf("%s chunks, %d, %d streams, seed %d", kind, count, streams, seed), &b.w, count}
}

// declaredOrder is the order in which the operations were added.
func declaredOrder(w *Work) []int32 {
	order := make([]int32, w.Len())
	for i := range order {
		order[i] = int32(i)
	}
	return order
}
