// Tests of reading the file of one process: whole, cut anywhere, and with numbers that lie.

package recording_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/recordingtest"
)

// everything is a part with a record of every kind that the types have.
func everything() *recordingtest.Part {
	p := &recordingtest.Part{Process: 7, Parent: 6, Measured: true, Ended: true, StartUnix: 5e18, Lost: 0}
	p.Command([]string{"python", "", "-u"}, "driver=13.0", "torch=2.11")
	p.Record(0, recording.Thread, []uint64{0, 700}, []byte("main"))
	p.Record(1, recording.Thread, []uint64{1, 701}, []byte("autograd"))
	p.Record(0, recording.Place, []uint64{11, 1<<56 | 9, 12, 3, 0x7f0000001234}, nil)
	p.Record(1, recording.Image, []uint64{3, 0x7f0000000000, 0x10000}, []byte("/opt/a.so\x00\xab\xcd"))
	p.Record(1, recording.Code, []uint64{9, 40, 3*256 + 12}, []byte("/home/me/train.py\x00step\x00"))
	p.Record(0, recording.Module, []uint64{0x50, 0, 4, 77, 0}, []byte("code"))
	p.Record(0, recording.Module, []uint64{0, 0x60, 4, 77, 12}, nil)
	p.Record(0, recording.Function, []uint64{0x70, 9, 0x50, 3, 32, 1024, 2, 0, 8, 8, 4, 0x60}, []byte("_Z4scalPfi"))
	p.Record(0, recording.Function, []uint64{0x70, 4, 0x51, 0, 8, 0, 0}, []byte("_Z3oldv"))
	p.Record(0, recording.Note, []uint64{recording.NoteAllocator, 0}, []byte("python=3.12"))
	p.Record(0, recording.Note, []uint64{recording.NoteText, 5}, []byte("five"))
	p.Record(0, recording.Access, []uint64{2, 2, 0, 2}, words32(0x1000, 0, 16, 1, 0x1010, 0, 4, 3))
	p.Record(0, recording.Access, []uint64{3, 0, 1, 2}, words32(0x1008, 0, 16, 1, 0x1000, 0, 16, 2))
	p.Record(0, recording.Tensor, []uint64{8, 1, 0x1000, 64, 0x20, 1, 11}, nil)
	p.Record(1, recording.Tensor, []uint64{6, 2, 0x1000, 64, 0x20, 1, 0}, nil)
	p.Record(0, recording.TensorTrace, []uint64{1}, []byte("1 4096 64 32\n"))
	p.Record(0, recording.Contents, []uint64{12, 0x1000, 3, 5}, []byte("abc"))
	p.Record(0, recording.Contents, []uint64{13, 0x2000, 3, 5}, nil)
	body := make([]byte, 80+4)
	binary.LittleEndian.PutUint64(body, 0x70)
	graph := append(words32(0x91, 0, 0, 84, 0, 0, 0x92, 0, 5, 0, 84, 0), words32(0, 1, 1, 0x100)...)
	p.Record(0, recording.Graph, []uint64{20, 0x80, 0x81, 2, 1}, append(graph, body...))
	p.Record(0, 999, []uint64{1, 2, 3}, []byte("later"))
	p.Record(1, 31, nil, nil)
	p.CallWith(1, recording.Launch, recording.Call{Record: recording.Record{Tail: []byte("0123456789ab")}, API: 307, Context: 0xc, Place: 11,
		Args: []uint64{0x20, 0, 0x70, 2, 1, 1, 1, 128, 1, 1, 0, 0, 0}})
	p.CallWith(0, recording.StreamQuery, recording.Call{API: 3, Result: -600, Args: []uint64{0x20, 55}})
	p.Overlapping(0, recording.StreamSync, recording.Call{Begin: 100, End: 103, Time: 9, Args: []uint64{0x21}})
	p.Overlapping(1, recording.EventSync, recording.Call{Begin: 99, End: 104, Time: 8, Args: []uint64{0x30}})
	return p
}

func words32(words ...uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func parse(t *testing.T, b []byte) *recording.Process {
	t.Helper()
	p, err := recording.ParsePart("a.part", b)
	require.NoError(t, err)
	return p
}

func TestPart(t *testing.T) {
	p := parse(t, everything().Bytes(0))
	require.Equal(t, []uint32{7, 6}, []uint32{p.ID, p.Parent})
	require.True(t, p.Measured)
	require.False(t, p.Cut)
	require.Equal(t, uint64(2), p.Unknown)
	require.Equal(t, int64(5e18), p.StartUnix)
	require.Equal(t, int64(1000), p.StartClock)
	require.Equal(t, []string{"python", "", "-u"}, p.Command)
	require.Equal(t, map[string]string{"driver": "13.0", "torch": "2.11", "python": "3.12"}, p.Facts)
	require.Equal(t, []recording.ThreadInfo{{Index: 0, System: 700, Name: "main"}, {Index: 1, System: 701, Name: "autograd"}}, p.Threads)
	require.Len(t, p.Places, 1)
	frames := p.Places[11]
	require.Len(t, frames, 2)
	require.Equal(t, "/home/me/train.py", frames[0].File)
	require.Equal(t, "step", frames[0].Function)
	require.True(t, frames[0].Python)
	require.Equal(t, recording.Frame{File: "/opt/a.so", Offset: 0x1234, BuildID: "abcd"}, frames[1])
	require.Len(t, p.Modules, 2)
	require.Equal(t, []uint64{0, 0x60, 12}, []uint64{p.Modules[1].Handle, p.Modules[1].Library, p.Modules[1].Sequence})
	require.Equal(t, "code", string(p.Modules[1].Code), "the second module has the code of the first")
	plain(p)
	require.Equal(t, []recording.FunctionInfo{
		{Handle: 0x70, Module: 0x51, Sequence: 4, Name: "_Z3oldv", Registers: 8, Parameters: []recording.Parameter{}},
		{Handle: 0x70, Module: 0x50, Library: 0x60, Sequence: 9, Name: "_Z4scalPfi", Opaque: true, Unpatched: true, Registers: 32, Shared: 1024,
			Parameters: []recording.Parameter{{Offset: 0, Bytes: 8}, {Offset: 8, Bytes: 4}}},
	}, p.Functions[0x70])
	require.Equal(t, []recording.NoteInfo{{Code: recording.NoteAllocator, Text: "python=3.12"}, {Code: recording.NoteText, Value: 5, Text: "five"}}, p.Notes)
	require.Equal(t, &recording.AccessInfo{Opaque: true, Runs: []recording.Run{{Address: 0x1000, Bytes: 16, Modes: 1}, {Address: 0x1010, Bytes: 4, Modes: 3}}}, p.Accesses[2])
	require.Equal(t, &recording.AccessInfo{Lost: true, Runs: []recording.Run{{Address: 0x1000, Bytes: 8, Modes: 2}, {Address: 0x1008, Bytes: 8, Modes: 3},
		{Address: 0x1010, Bytes: 8, Modes: 1}}}, p.Accesses[3])
	require.Equal(t, []recording.TensorEvent{
		{Sequence: 6, Address: 0x1000, Bytes: 64, Stream: 0x20, Pool: 1, Action: recording.TensorFreeRequested, Thread: 1},
		{Sequence: 8, Address: 0x1000, Bytes: 64, Stream: 0x20, Pool: 1, Action: recording.TensorAlloc, Place: 11},
	}, p.Tensors)
	require.Equal(t, "1 4096 64 32\n", string(p.Traces[0].Text))
	require.Equal(t, uint64(1), p.Traces[0].Device)
	require.Equal(t, "abc", string(p.Contents[1].Data))
	require.Len(t, p.Graphs, 1)
	g := p.Graphs[0]
	require.Equal(t, []uint64{20, 0x80, 0x81}, []uint64{g.Sequence, g.Graph, g.Execution})
	require.Len(t, g.Nodes[0].Body, 84)
	require.Equal(t, recording.GraphNode{Node: 0x92, Type: 5, Body: []byte{}}, g.Nodes[1])
	require.Equal(t, []recording.GraphEdge{{From: 0, To: 1, Programmatic: true, Ports: 0x100}}, g.Edges)

	var kinds []string
	for _, c := range p.Calls {
		kinds = append(kinds, fmt.Sprint(c.Kind, " ", c.Begin, "-", c.End))
	}
	require.Equal(t, []string{"launch 1-2", "stream query 3-4", "event sync 99-104", "stream sync 100-103"}, kinds)
	launch, query := p.Calls[0], p.Calls[1]
	require.Equal(t, []uint64{0x20, 0, 0x70, 2, 1, 1, 1, 128, 1, 1, 0, 0, 0}, launch.Args)
	require.Equal(t, "0123456789ab", string(launch.Tail))
	require.Equal(t, []any{uint32(307), uint64(0xc), uint64(11), uint32(1)}, []any{launch.API, launch.Context, launch.Place, launch.Thread})
	require.Equal(t, int32(-600), query.Result)
	require.Equal(t, []uint64{0x20, 55}, query.Args, "words of later versions are kept")
}

// A process that is killed leaves a file with room behind the last record. A file system may also keep only its beginning.
func TestPartsThatWereCut(t *testing.T) {
	whole := &recordingtest.Part{Process: 3}
	for k := range 20 {
		whole.Call(uint32(k%2), recording.StreamSync, 0, uint64(k))
	}
	b := whole.Bytes(1 << 20)
	p := parse(t, b)
	require.True(t, p.Cut)
	require.Len(t, p.Calls, 20)

	last := 0
	for n := range len(b) {
		p, err := recording.ParsePart("a.part", b[:n])
		require.NoError(t, err, n)
		require.True(t, p.Cut, n)
		require.GreaterOrEqual(t, len(p.Calls), last, n)
		last = len(p.Calls)
		if n > 3*65536 {
			require.Len(t, p.Calls, 20)
			break
		}
	}

	ended := everything().Bytes(0)
	for n := range len(ended) {
		p, err := recording.ParsePart("a.part", ended[:n])
		require.NoError(t, err, n)
		require.True(t, p.Cut, n)
	}
}

func TestPartsOfProcessesThatWroteLittle(t *testing.T) {
	for _, b := range [][]byte{{}, make([]byte, 10), make([]byte, 200000)} {
		p := parse(t, b)
		require.True(t, p.Cut)
		require.Empty(t, p.Calls)
	}
	b := (&recordingtest.Part{Ended: true, Lost: 4}).Bytes(0)
	require.True(t, parse(t, b).Cut, "records were lost")
	require.Equal(t, uint64(4), parse(t, b).Lost)

	part := recordingtest.Part{Ended: true}
	part.Record(0, recording.Note, []uint64{recording.NoteCut, 0}, []byte("the limit"))
	require.True(t, parse(t, part.Bytes(0)).Cut)
}

// A thread was given a block and was killed before it wrote its header.
func TestBlocksThatWereNeverBegun(t *testing.T) {
	part := recordingtest.Part{}
	part.Call(0, recording.StreamSync, 0, 1)
	part.Call(1, recording.StreamSync, 0, 2)
	part.Call(2, recording.StreamSync, 0, 3)
	b := part.Bytes(0)
	clear(b[2*65536 : 3*65536])
	p := parse(t, b)
	require.True(t, p.Cut)
	require.Len(t, p.Calls, 2)
}

func TestPartsLargerThanABlock(t *testing.T) {
	part := recordingtest.Part{Ended: true}
	part.Call(0, recording.StreamSync, 0, 1)
	large := bytes.Repeat([]byte("x"), 200_000)
	part.Record(0, recording.Module, []uint64{1, 0, 200_000, 9, 0}, large)
	part.Call(0, recording.StreamSync, 0, 2)
	p := parse(t, part.Bytes(0))
	require.Equal(t, large, p.Modules[0].Code)
	require.Len(t, p.Calls, 2)
	require.False(t, p.Cut)
}

func TestHostileParts(t *testing.T) {
	one := func(kind recording.Kind, words []uint64, tail []byte) []byte {
		part := recordingtest.Part{Ended: true}
		part.Record(0, kind, words, tail)
		return part.Bytes(0)
	}
	with := func(b []byte, at int, value uint32) []byte {
		binary.LittleEndian.PutUint32(b[at:], value)
		return b
	}
	call := make([]uint64, 19)
	note := func() []byte { return one(recording.Note, []uint64{1, 2}, []byte("text")) }
	const block, record = 65536, 65536 + 24
	for want, b := range map[string][]byte{
		"byte 0: this is not a recording of a process: it does not begin with KAGRECE1":                    []byte("PK\x03\x04 and more"),
		"byte 8: version 3 of the format; this dagrun reads versions 1 and 2":                              with(note(), 8, 3),
		"byte 40: 65537 bytes are said to be used, which are no whole blocks of 65536":                     with(note(), 40, 65537),
		"byte 40: 0 bytes are said to be used, which are no whole blocks of 65536":                         with(note(), 40, 0),
		`byte 65536: a block begins with "\x01\x00\x00\x00" instead of "BLOK"`:                             with(note(), block, 1),
		"byte 65544: a run of 0 blocks, where 1 are left":                                                  with(note(), block+8, 0),
		"byte 65544: a run of 4294967295 blocks, where 1 are left":                                         with(note(), block+8, 1<<32-1),
		"byte 65552: 23 bytes are said to be complete in a run of 65536":                                   with(note(), block+16, 23),
		"byte 65552: 65537 bytes are said to be complete in a run of 65536":                                with(note(), block+16, 65537),
		"byte 65560: 8 bytes are left, and a record has at least 16":                                       with(note(), block+16, 32),
		"byte 65560: a record (note) of 0 bytes, whose 2 words and 4 more bytes make 40":                   with(note(), record, 0),
		"byte 65560: a record (note) of 4294967288 bytes, whose 2 words and 4 more bytes make 40":          with(note(), record, 1<<32-8),
		"byte 65560: a record (note) of 40 bytes, whose 2 words and 4294967295 more bytes make 4294967328": with(note(), record+8, 1<<32-1),
		"byte 65560: a record (note) of 40 bytes, where 32 are left":                                       with(note(), block+16, 24+32),
		"byte 65560: a record (launch) with 18 words, where at least 19 belong":                            one(recording.Launch, call[:18], nil),
		"byte 65560: a record (note) with 1 words, where at least 2 belong":                                one(recording.Note, call[:1], nil),
		"byte 65560: a place with 4 words: each frame has two":                                             one(recording.Place, call[:4], nil),
		"byte 65560: a tensor map of rank 9 in 19 words":                                                   one(recording.TensorMap, append(call[:8:8], append([]uint64{9}, call[:10]...)...), nil),
		"byte 65560: a tensor map of rank 9223372036854775808 in 19 words":                                 one(recording.TensorMap, append(call[:8:8], append([]uint64{1 << 63}, call[:10]...)...), nil),
		"byte 65560: a function with 9223372036854775807 parameters in 9 words":                            one(recording.Function, []uint64{1, 2, 3, 4, 5, 6, 1<<63 - 1, 0, 0}, nil),
		"byte 65560: a graph of 768614336404564651 nodes and 0 edges in 48 bytes":                          one(recording.Graph, []uint64{1, 2, 3, 1<<64/24 + 1, 0}, make([]byte, 48)),
		"byte 65560: a graph of 1 nodes and 1152921504606846976 edges in 48 bytes":                         one(recording.Graph, []uint64{1, 2, 3, 1, 1 << 60}, make([]byte, 48)),
		"byte 65560: node 0 has bytes 4 to 12 of 8":                                                        one(recording.Graph, []uint64{1, 2, 3, 1, 0}, words32(0, 0, 5, 8, 4, 0, 0, 0)),
		"byte 65560: node 0 has bytes 18446744073709551608 to 0 of 8":                                      one(recording.Graph, []uint64{1, 2, 3, 1, 0}, words32(0, 0, 5, 8, 1<<32-8, 1<<32-1, 0, 0)),
		"byte 65560: node 0, of type 0, has 8 bytes, where at least 80 belong":                             one(recording.Graph, []uint64{1, 2, 3, 1, 0}, words32(0, 0, 0, 8, 0, 0, 0, 0)),
		"byte 65560: edge 0 leads from node 0 to node 4294967295 of 1":                                     one(recording.Graph, []uint64{1, 2, 3, 1, 1}, words32(0, 0, 5, 0, 0, 0, 0, 1<<32-1, 0, 0)),
		"byte 65560: 1152921504606846976 runs in 16 bytes":                                                 one(recording.Access, []uint64{1, 0, 0, 1 << 60}, make([]byte, 16)),
		"byte 65560: run 0, of 16 bytes, begins at 0xfffffffffffffff8":                                     one(recording.Access, []uint64{1, 0, 0, 1}, words32(1<<32-8, 1<<32-1, 16, 1)),
	} {
		_, err := recording.ParsePart("a.part", b)
		require.EqualError(t, err, "a.part: "+want)
		var at *recording.Error
		require.ErrorAs(t, err, &at)
	}
}

// Memory grows with what is in the file, whatever its numbers say.
func TestMemoryGrowsWithTheFile(t *testing.T) {
	part := recordingtest.Part{Ended: true}
	for range 1000 {
		part.Record(0, recording.Access, []uint64{5, 0, 0, 1}, words32(0x1000, 0, 1<<32-1, 1))
		part.Record(0, recording.Function, []uint64{1, 2, 3, 4, 5, 6, 0}, nil)
		part.Record(0, recording.Place, []uint64{1, 1, 2}, nil)
	}
	b := part.Bytes(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parse(t, b)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20*len(b)))
}

// The shapes of records are those of format.h.
func TestShapesAreThoseOfTheFormat(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "..", "cudart", "recorder", "library", "format.h"))
	require.NoError(t, err)
	list := string(source)[strings.Index(string(source), "RECORD_THREAD = 1,"):]
	list = list[:strings.Index(list, "};")]
	number, seen := 0, 0
	for line := range strings.SplitSeq(list, "\n") {
		m := regexp.MustCompile(`^\s*(?:RECORD|CALL)_([A-Z_]+)(?: = (\d+))?,\s*// ?(.*)$`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number++
		if m[2] != "" {
			_, err := fmt.Sscan(m[2], &number)
			require.NoError(t, err)
		}
		name := strings.ToLower(strings.ReplaceAll(m[1], "_", " "))
		require.Equal(t, name, recording.Kind(number).String())
		seen++
		require.Equal(t, wordsListed(m[1], m[3]), recording.LeastWords(recording.Kind(number)), "%s: %s", name, m[3])
	}
	require.Equal(t, recording.KnownKinds(), seen)
}

// wordsListed counts the words that a comment of format.h lists.
func wordsListed(kind, comment string) int {
	if kind == "UNCOVERED" {
		return 0
	}
	comment = regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(comment, "")
	comment, _, _ = strings.Cut(comment, "tail:")
	comment, _, _ = strings.Cut(comment, "then ")
	comment = comment[strings.LastIndex(comment, ": ")+1:]
	n := 0
	for item := range strings.FieldsFuncSeq(comment, func(r rune) bool { return r == ',' || r == ';' }) {
		if strings.TrimSpace(item) != "" {
			n++
		}
	}
	return n
}

// The fuzzer changes the beginnings of the header and of a block, and the records; the zeros between them would only slow it down.
func FuzzPart(f *testing.F) {
	whole := everything().Bytes(0)
	f.Add(whole[:72], whole[65536:65536+24], whole[65536+24:65536+24+1600])
	f.Add(whole[:72], whole[65536:65536+24], whole[2*65536+24:2*65536+24+600])
	f.Fuzz(func(t *testing.T, header, block, records []byte) {
		file := append(bytes.Clone(header), make([]byte, max(0, 65536-len(header)))...)
		file = append(append(file, block...), records...)
		p, err := recording.ParsePart("a.part", file)
		if err != nil {
			require.Nil(t, p)
			return
		}
		for _, a := range p.Accesses {
			end := uint64(0)
			for _, r := range a.Runs {
				require.GreaterOrEqual(t, r.Address, end)
				end = r.Address + uint64(r.Bytes)
			}
		}
	})
}

// Reading a million launches, with what README and the checker are measured by: 22 words and 100 bytes each.
func BenchmarkPart(b *testing.B) {
	file := launches(1_000_000)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		p, err := recording.ParsePart("a.part", file)
		require.NoError(b, err)
		require.Len(b, p.Calls, 1_000_000)
	}
}

func launches(n int) []byte {
	part := recordingtest.Part{Ended: true}
	words, tail := make([]uint64, 16), make([]byte, 100)
	for k := range n {
		for w := range words {
			words[w] = uint64((k % 50) << 8 * w)
		}
		for at := 0; at < 96; at += 8 {
			binary.LittleEndian.PutUint64(tail[at:], 0x7f0000000000+uint64(k%1000)*512*uint64(at))
		}
		part.CallWith(uint32(k/1000%8), recording.Launch, recording.Call{Record: recording.Record{Tail: tail}, Args: words, Place: uint64(k % 300), API: 307,
			Time: int64(k)*5000 + int64(k*k%997)})
	}
	return part.Bytes(0)
}

// Launches of one node of a graph that were measured together have all their runs in the first record, and each thread that reads a table writes such a row.
func TestLaunchesThatWereMeasuredTogether(t *testing.T) {
	const together = 1 // ACCESS_LOST, with nothing that did not fit
	p := &recordingtest.Part{Ended: true}
	record := func(thread uint32, launch, flags, missing uint64, runs ...uint32) {
		p.Record(thread, recording.Access, []uint64{launch, flags, missing, uint64(len(runs) / 4)}, words32(runs...))
	}
	record(0, 1, together, 0, 0x1000, 0, 8, 1)
	record(1, 11, together, 0, 0x2000, 0, 8, 2)
	record(0, 3, together, 0)
	record(0, 5, together, 0)
	record(1, 13, together, 0)
	record(0, 2, together, 0, 0x3000, 0, 8, 1)
	record(0, 4, together, 0)
	record(0, 6, 0, 0, 0x4000, 0, 8, 1)
	record(0, 7, together, 0) // the first of launches that touched nothing
	record(0, 8, together, 9, 0x5000, 0, 8, 1)
	record(0, 9, together, 9)
	first, second, other := []recording.Run{{Address: 0x1000, Bytes: 8, Modes: 1}}, []recording.Run{{Address: 0x3000, Bytes: 8, Modes: 1}}, []recording.Run{{Address: 0x2000, Bytes: 8, Modes: 2}}
	require.Equal(t, map[uint64]*recording.AccessInfo{
		1: {Together: true, Runs: first}, 3: {Together: true, Again: true, Runs: first}, 5: {Together: true, Again: true, Runs: first},
		2: {Together: true, Runs: second}, 4: {Together: true, Again: true, Runs: second},
		11: {Together: true, Runs: other}, 13: {Together: true, Again: true, Runs: other},
		6: {Runs: []recording.Run{{Address: 0x4000, Bytes: 8, Modes: 1}}}, 7: {Together: true},
		8: {Lost: true, Runs: []recording.Run{{Address: 0x5000, Bytes: 8, Modes: 1}}}, 9: {Lost: true},
	}, parse(t, p.Bytes(0)).Accesses)
}

// A kernel node of an executable graph that gets other parameters makes a new state of the graph, from that call on.
func TestKernelNodesThatAreChanged(t *testing.T) {
	part := recordingtest.Part{Ended: true}
	body := make([]byte, 88)
	body[80] = 1
	node := make([]byte, 24)
	binary.LittleEndian.PutUint64(node, 7)
	binary.LittleEndian.PutUint32(node[12:], 88)
	other := slices.Clone(body)
	other[80] = 2
	end := part.Call(0, recording.Instantiate, 0, 50, 40)
	part.Record(0, recording.Graph, []uint64{end, 40, 50, 1, 0}, append(node, body...))
	part.CallWith(0, recording.Update, recording.Call{Record: recording.Record{Tail: other}, Args: []uint64{50, 0, 7}})
	part.CallWith(0, recording.Update, recording.Call{Record: recording.Record{Tail: other}, Args: []uint64{51, 0, 7}}) // of a graph that is not known
	part.CallWith(0, recording.Update, recording.Call{Record: recording.Record{Tail: other[:40]}, Args: []uint64{50, 0, 7}})
	p := parse(t, part.Bytes(0))
	require.Len(t, p.Graphs, 2)
	require.Equal(t, body, p.Graphs[0].Nodes[0].Body)
	require.Equal(t, other, p.Graphs[1].Nodes[0].Body)
	require.Equal(t, p.Calls[1].End, p.Graphs[1].Sequence)
	require.EqualValues(t, 50, p.Graphs[1].Execution)
}
