// Package recordingtest builds the files that a recorder writes, for tests.
package recordingtest

import (
	"encoding/binary"
	"strings"

	"github.com/dagrun/dagrun/internal/recording"
)

// Part is the file of a process, record by record. The zero value is one that has not ended.
type Part struct {
	Process, Parent uint32
	Measured, Ended bool
	StartUnix       int64
	Lost            uint64

	sequence uint64
	blocks   []block
	open     map[uint32]int // the block to which a thread writes, by thread
}

type block struct {
	thread uint32
	bytes  []byte // without header
	room   int
}

const (
	blockBytes  = 65536
	blockHeader = 24
)

// Record appends a record as it is written by a thread.
func (p *Part) Record(thread uint32, kind recording.Kind, words []uint64, tail []byte) {
	r := recording.Record{Kind: kind, Thread: thread, Words: words, Tail: tail}
	encoded := r.Encode()
	if p.open == nil {
		p.open = map[uint32]int{}
	}
	at, ok := p.open[thread]
	if !ok || len(p.blocks[at].bytes)+len(encoded) > p.blocks[at].room {
		run := (len(encoded) + blockHeader + blockBytes - 1) / blockBytes * blockBytes
		at = len(p.blocks)
		p.blocks = append(p.blocks, block{thread: thread, room: run - blockHeader})
		p.open[thread] = at
	}
	p.blocks[at].bytes = append(p.blocks[at].bytes, encoded...)
}

// Call appends a call of a thread that begins after all before it have ended, with the words that format.h lists for its kind. It returns the
// number of its beginning.
func (p *Part) Call(thread uint32, kind recording.Kind, place uint64, arguments ...uint64) uint64 {
	return p.CallWith(thread, kind, recording.Call{Place: place, Args: arguments})
}

// CallWith is Call with all that a call has: Tail, API, Result, Context and Place are taken from c, and Time if it is not 0.
func (p *Part) CallWith(thread uint32, kind recording.Kind, c recording.Call) uint64 {
	begin := p.Sequence()
	c.Begin, c.End = begin, p.Sequence()
	if c.Time == 0 {
		c.Time = int64(begin) * 1000
	}
	p.Overlapping(thread, kind, c)
	return begin
}

// Overlapping is CallWith with Begin, End and Time as c has them.
func (p *Part) Overlapping(thread uint32, kind recording.Kind, c recording.Call) {
	p.sequence = max(p.sequence, c.Begin, c.End)
	words := append([]uint64{c.Begin, c.End, uint64(c.Time), uint64(c.API) | uint64(uint32(c.Result))<<32, c.Context, c.Place}, c.Args...)
	p.Record(thread, kind, words, c.Tail)
}

// Sequence takes the next number.
func (p *Part) Sequence() uint64 {
	p.sequence++
	return p.sequence
}

// Command appends the record of the process itself.
func (p *Part) Command(command []string, facts ...string) {
	text := strings.Join(command, "\x00") + "\x00\x00"
	for _, fact := range facts {
		text += fact + "\x00"
	}
	p.Record(0, recording.ProcessInfo, nil, []byte(text))
}

// Bytes is the file. Behind what is used it has room for room more bytes, as the file of a process that was killed.
func (p *Part) Bytes(room int) []byte {
	reserved := blockBytes
	for _, b := range p.blocks {
		reserved += b.room + blockHeader
	}
	file := make([]byte, blockBytes, reserved+room)
	copy(file, "KAGRECE1")
	put := binary.LittleEndian.PutUint32
	put(file[8:], 2)
	put(file[12:], p.Process)
	put(file[16:], p.Parent)
	if p.Measured {
		put(file[20:], 1)
	}
	ended := uint64(0)
	if p.Ended {
		ended = 1
	}
	for k, value := range []uint64{uint64(p.StartUnix), 1000, uint64(reserved), p.Lost, ended, p.sequence} {
		binary.LittleEndian.PutUint64(file[24+8*k:], value)
	}
	for _, b := range p.blocks {
		file = append(file, "BLOK"...)
		file = binary.LittleEndian.AppendUint32(file, b.thread)
		file = binary.LittleEndian.AppendUint32(file, uint32((b.room+blockHeader)/blockBytes))
		file = binary.LittleEndian.AppendUint32(file, 0)
		file = binary.LittleEndian.AppendUint64(file, uint64(len(b.bytes)+blockHeader))
		file = append(file, b.bytes...)
		file = append(file, make([]byte, b.room-len(b.bytes))...)
	}
	return append(file, make([]byte, room)...)
}
