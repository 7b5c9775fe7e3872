//go:build linux

// Recordings of random programs on several streams: the verdict is whether brute force finds two conflicting accesses that nothing orders. And
// recordings with damage, of these programs and of real ones.

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/recordingtest"
)

// work is what a program puts on a stream.
type work struct {
	after  map[int]bool // other work that is known to be over when it begins
	writes bool
	low    int
	high   int
}

// program is what a random program did: calls of one thread.
type program struct {
	*trial
	part    *recordingtest.Part
	works   []work
	streams []map[int]bool // by stream: the work that what comes next follows
	host    map[int]bool   // the work that the host has waited for
	events  []map[int]bool
	places  int
}

const (
	memoryStart = 0x7f0000000000
	memoryBytes = 64
	kernel      = 0x70
	onDevice    = 2
	onHost      = 1
)

func handle(stream int) uint64 { return uint64(0x20 + 16*stream) }

func join(into map[int]bool, from map[int]bool) {
	for k := range from {
		into[k] = true
	}
}

// place is a line of the program.
func (p *program) place() uint64 {
	p.places++
	id := uint64(p.places)
	p.part.Record(0, recording.Code, []uint64{id, id, 3*256 + 12}, []byte("a.py\x00step\x00"))
	p.part.Record(0, recording.Place, []uint64{id, 1<<56 | id, 0}, nil)
	return id
}

// put puts work on a stream, which follows what is before it there and what the host has waited for.
func (p *program) put(stream, low, high int, writes bool) {
	after := map[int]bool{}
	join(after, p.host)
	join(after, p.streams[stream])
	p.works = append(p.works, work{after, writes, low, high})
}

// done makes all work since the first of a call part of what its stream has done.
func (p *program) done(stream, first int) {
	for k := first; k < len(p.works); k++ {
		join(p.streams[stream], p.works[k].after)
	}
	for k := first; k < len(p.works); k++ {
		p.streams[stream][k] = true
	}
}

// step makes one call.
func (p *program) step() {
	stream, first := p.IntN(len(p.streams)), len(p.works)
	low := p.IntN(memoryBytes)
	length := 1 + p.IntN(min(16, memoryBytes-low))
	address := uint64(memoryStart + low)
	call := func(kind recording.Kind, args ...uint64) { p.part.Call(0, kind, p.place(), args...) }
	switch p.IntN(9) {
	case 0, 1, 2:
		number := uint64(first + 1)
		mode := pick(p.trial, recording.Read, recording.Write)
		run := binary.LittleEndian.AppendUint64(nil, address)
		run = binary.LittleEndian.AppendUint32(run, uint32(length))
		run = binary.LittleEndian.AppendUint32(run, uint32(mode))
		p.part.Record(0, recording.Access, []uint64{number, 0, 0, 1}, run)
		call(recording.Launch, handle(stream), 0, kernel, number, 1, 1, 1, 32, 1, 1, 0, 0, 0)
		p.put(stream, low, low+length, mode == recording.Write)
		p.done(stream, first)
	case 3:
		call(recording.Set, handle(stream), 0, 0, address, uint64(length), 1, 0, 0, 1)
		p.put(stream, low, low+length, true)
		p.done(stream, first)
	case 4: // to the host, which waits for it
		call(recording.Copy, handle(stream), 0, 1, 0x10, address, uint64(length), 1, 1, 0, 0, 0, 0, onHost, onDevice, 0, 0)
		p.put(stream, low, low+length, false)
		p.done(stream, first)
		join(p.host, p.streams[stream])
	case 5, 6:
		event := p.IntN(len(p.events))
		call(recording.EventRecord, handle(stream), 0, uint64(0x1000+event), 0)
		p.events[event] = map[int]bool{}
		join(p.events[event], p.streams[stream])
		join(p.events[event], p.host)
	case 7:
		event := p.IntN(len(p.events))
		call(recording.StreamWait, handle(stream), 0, uint64(0x1000+event), 0)
		join(p.streams[stream], p.events[event])
	case 8:
		if p.chance(2) {
			call(recording.StreamSync, handle(stream))
			join(p.host, p.streams[stream])
			break
		}
		event := p.IntN(len(p.events))
		call(recording.EventSync, uint64(0x1000+event))
		join(p.host, p.events[event])
	}
}

// races reports whether two conflicting accesses are in no order.
func (p *program) races() bool {
	for i, a := range p.works {
		for j, b := range p.works[:i] {
			if (a.writes || b.writes) && a.low < b.high && b.low < a.high && !a.after[j] {
				return true
			}
		}
	}
	return false
}

func (t *trial) program(calls int) *program {
	p := &program{trial: t, part: &recordingtest.Part{Process: 7, Parent: 6, Measured: true, Ended: true, StartUnix: 5e18}, host: map[int]bool{}}
	p.part.Command([]string{"python", "a.py"}, "driver=13.0")
	p.part.Record(0, recording.Thread, []uint64{0, 700}, []byte("main"))
	p.part.Record(0, recording.Function, []uint64{kernel, 0, 0, 0, 8, 0, 0}, []byte("kernel"))
	for stream := range 1 + t.IntN(4) {
		p.part.Call(0, recording.StreamCreate, 0, handle(stream), 1, 0)
		p.streams = append(p.streams, map[int]bool{})
	}
	for range 1 + t.IntN(3) {
		p.events = append(p.events, map[int]bool{})
	}
	p.part.Call(0, recording.Alloc, 0, memoryStart, memoryBytes, 1, 0, 0, 0, 0)
	for range calls {
		p.step()
	}
	return p
}

// recordings is the recording of a random program, then with damage; or a real one with damage.
func (t *trial) recordings() {
	p := t.program(1 + t.IntN(30))
	part := p.part.Bytes(t.IntN(2) * 4096)
	var whole bytes.Buffer
	t.must(recording.PackTo(&whole, recording.Meta{Command: []string{"python", "a.py"}}, recording.Part{Name: "7.part", Bytes: part}))
	t.write("a.rec", whole.Bytes())
	o := t.run("check", "a.rec")
	want := 0
	if p.races() {
		want = 1
	}
	if o.status != want {
		t.wrong("check ended with %d, and brute force says %d:\n%s", o.status, want, shortened(o.text()))
	}
	t.count(fmt.Sprint("verdicts ", want))
	t.run("dot", "a.rec")

	t.write("b.rec.parts/7.part", t.damage(part))
	t.verdict(t.run("check", "b.rec", "--strict"))
	samples, err := filepath.Glob(filepath.Join(samples, "*.rec"))
	t.must(err)
	real, err := os.ReadFile(samples[t.IntN(len(samples))])
	t.must(err)
	t.write("c.rec", t.damage(real))
	t.verdict(t.run("check", "c.rec"))
	if t.chance(4) {
		t.run("dot", "c.rec")
	}
}

// samples is the folder of recordings of real programs.
var samples = filepath.Join("internal", "recording", "order", "testdata", "recordings")

func (t *trial) verdict(o outcome) {
	t.count(fmt.Sprint("damaged ", o.status))
}

// damage changes bytes of a file: single bits, numbers, pieces left out or doubled, or its end.
func (t *trial) damage(file []byte) []byte {
	file = append([]byte{}, file...)
	for range 1 + t.IntN(4) {
		if len(file) < 16 {
			return file
		}
		at := t.IntN(len(file) - 8)
		if t.chance(2) { // most of a file of blocks is zeros
			for tries := 0; file[at] == 0 && tries < 1000; tries++ {
				at = t.IntN(len(file) - 8)
			}
		}
		length := 1 + t.IntN(min(64, len(file)-at))
		switch t.IntN(6) {
		case 0:
			file[at] ^= 1 << t.IntN(8)
		case 1:
			binary.LittleEndian.PutUint64(file[at:], pick(t, 0, 1, 1<<31, 1<<32-1, 1<<63, ^uint64(0), t.Uint64()))
		case 2:
			file = append(file[:at:at], file[at+length:]...)
		case 3:
			file = append(file[:at+length:at+length], file[at:]...)
		case 4:
			file = file[:at]
		case 5:
			file[at] = byte(t.IntN(256))
		}
	}
	return file
}
