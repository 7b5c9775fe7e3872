// Instances of shops: chunks with kernels of every shape, and random shops, for the tests of orders, bounds and whole plans.

// Package instances makes shop-scheduling instances from plain values: jobs that pass through copy engines and streams.
package instances

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// The machines of one device.
const (
	Upload = iota
	Compute
	Download
	Peer // to the next device
	PerDevice
)

// Instance is a shop: job j takes machine Route[k] for Jobs[j][k] microseconds. Machines with several streams run several jobs at once.
// Machine m belongs to device m/PerDevice.
type Instance struct {
	Name    string
	Streams int
	Devices int
	Route   []int
	Jobs    [][]float64
}

// Routes are the sequences of machines that jobs pass through, by name.
var Routes = map[string][]int{
	"upload-kernel":          {Upload, Compute},
	"kernel-download":        {Compute, Download},
	"upload-kernel-download": {Upload, Compute, Download},
	"two devices":            {Upload, Compute, Peer, PerDevice + Compute, PerDevice + Download},
}

// Random makes a shop whose operations take 10 to 100 us, or that times the number of streams on machines with several streams.
func Random(route string, jobs, streams int, seed uint64) Instance {
	rng := rand.New(rand.NewPCG(seed, 41))
	in := Instance{fmt.Sprintf("%s, %d jobs, %d streams, seed %d", route, jobs, streams, seed), streams, 1, Routes[route], nil}
	if route == "two devices" {
		in.Devices = 2
	}
	for range jobs {
		us := make([]float64, len(in.Route))
		for k, m := range in.Route {
			us[k] = float64(10 + rng.IntN(91))
			if m%PerDevice == Compute {
				us[k] *= float64(streams)
			}
		}
		in.Jobs = append(in.Jobs, us)
	}
	return in
}

// ChunkKinds are the ways in which the kernels of chunks differ.
var ChunkKinds = []string{"even", "alternating", "falling", "rising", "lognormal"}

// Chunks makes chunks of equal copies with kernels that differ.
func Chunks(kind string, count, streams int, seed uint64) Instance {
	rng := rand.New(rand.NewPCG(seed, 43))
	in := Instance{fmt.Sprintf("%s chunks, %d, %d streams, seed %d", kind, count, streams, seed), streams, 1, Routes["upload-kernel-download"], nil}
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
		in.Jobs = append(in.Jobs, []float64{40, kernel * float64(streams), 40})
	}
	return in
}

// Known are the instances whose best known values are on file, in planner/internal/shop/testdata/best.txt.
func Known() []Instance {
	var all []Instance
	for _, route := range []string{"upload-kernel-download", "two devices"} {
		for _, streams := range []int{1, 2, 4} {
			for _, jobs := range []int{8, 10, 12, 16, 20} {
				for seed := uint64(1); seed <= 2; seed++ {
					all = append(all, Random(route, jobs, streams, seed))
				}
			}
		}
	}
	for _, kind := range ChunkKinds {
		for _, streams := range []int{1, 2, 4} {
			for _, count := range []int{12, 24, 64} {
				all = append(all, Chunks(kind, count, streams, 1))
			}
		}
	}
	return all
}
