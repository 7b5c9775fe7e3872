// The benchmark of the bar: a million launches on 64 streams with events in 10 s and 1 GB, the recording included.

package order

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/dagrun/dagrun/internal/recording"
)

func BenchmarkMillionLaunchesOn64Streams(b *testing.B) {
	check(b, millionLaunches(1_000_000, 64, 1), Options{})
}

// Threads that wait for their streams now and then: what rests on the time of their calls is looked for in a second pass.
func BenchmarkMillionLaunchesOfEightThreads(b *testing.B) {
	check(b, millionLaunches(1_000_000, 64, 8), Options{})
}

func BenchmarkMillionLaunchesStrictly(b *testing.B) {
	check(b, millionLaunches(1_000_000, 64, 1), Options{Strict: true})
}

func check(b *testing.B, p *recording.Process, options Options) {
	for b.Loop() {
		report, err := Check(p, options)
		if err != nil || len(report.Races) > 0 {
			b.Fatal(err, report.Text(p))
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.Sys)/1e6, "MB")
}

// millionLaunches makes a program that goes around its streams: a kernel writes a part of a buffer of its stream and reads a buffer that all
// share; every eighth launch reads the buffer of another stream, after its event, and that stream waits before it writes the buffer again.
// Each thread has some of the streams, and waits for one of them after some launches.
func millionLaunches(launches, streams, threads int) *recording.Process {
	const bytes = 1 << 20
	r := rand.New(rand.NewPCG(1, 1))
	p := &recording.Process{Measured: true, Accesses: map[uint64]*recording.AccessInfo{}, Functions: map[uint64][]recording.FunctionInfo{}}
	p.Calls = make([]recording.Call, 0, launches*3/2+3*streams) // as a reader that counts them first would
	sequence := uint64(0)
	thread := uint32(0)
	add := func(kind recording.Kind, args ...uint64) {
		p.Calls = append(p.Calls, recording.Call{Record: recording.Record{Kind: kind, Thread: thread}, Begin: sequence + 1, End: sequence + 2, Context: 1, Place: uint64(len(p.Calls)%1000 + 1), Args: args})
		sequence += 2
	}
	handle := func(stream int) uint64 { return uint64(0x1000 + stream) }
	buffer := func(stream int) uint64 { return uint64(1+stream) << 32 }
	for kernel := range uint64(100) {
		p.Functions[kernel] = []recording.FunctionInfo{{Handle: kernel, Name: "kernel" + strconv.Itoa(int(kernel))}}
	}
	for stream := range streams {
		add(recording.StreamCreate, handle(stream), 1, 0)
		add(recording.Alloc, buffer(stream), bytes, 1, 0, 0, 0, 0)
	}
	shared := buffer(streams)
	add(recording.Alloc, shared, bytes, 1, 0, 0, 0, 0)
	for launch := range launches {
		stream := launch % streams
		thread = uint32(stream % threads)
		if launch%1000 == 7 {
			add(recording.StreamSync, handle(stream))
		}
		number := uint64(launch + 1)
		low := uint64(r.IntN(64)) * bytes / 64
		info := &recording.AccessInfo{Runs: []recording.Run{{Address: buffer(stream) + low, Bytes: bytes / 64, Modes: recording.Write}, {Address: shared, Bytes: bytes, Modes: recording.Read}}}
		other := stream
		if launch%8 == 0 {
			other = r.IntN(streams)
			info.Runs[0] = recording.Run{Address: buffer(other), Bytes: bytes, Modes: recording.Read}
			add(recording.EventRecord, handle(other), 0, 1, 0)
			add(recording.StreamWait, handle(stream), 0, 1, 0)
		}
		p.Accesses[number] = info
		add(recording.Launch, handle(stream), 0, r.Uint64N(100), number, 1, 1, 1, 1, 1, 1, 0, 0, 0)
		if other != stream {
			add(recording.EventRecord, handle(stream), 0, 2, 0)
			add(recording.StreamWait, handle(other), 0, 2, 0)
		}
	}
	return p
}
