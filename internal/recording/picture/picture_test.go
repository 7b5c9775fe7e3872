// Tests of the picture of a recording: what is on it, that it is XML whatever the recording holds, and that long programs stay legible.

package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

const first, second = 0x100, 0x200 // streams

// program has two streams that do not block, and a kernel that writes the same bytes at each launch.
type program struct{ *recording.Process }

func begin(kernel string) *program {
	p := &program{&recording.Process{Command: []string{"a<b", "\x01&"}, Places: map[uint64][]recording.Frame{}, Accesses: map[uint64]*recording.AccessInfo{},
		Functions: map[uint64][]recording.FunctionInfo{7: {{Handle: 7, Name: kernel}}}}}
	p.call(recording.StreamCreate, first, 1, 0)
	p.call(recording.StreamCreate, second, 1, 0)
	return p
}

func (p *program) call(kind recording.Kind, arguments ...uint64) {
	at := uint64(2*len(p.Calls) + 1)
	p.Calls = append(p.Calls, recording.Call{Record: recording.Record{Kind: kind}, Begin: at, End: at + 1, Context: 1, Args: arguments})
}

func (p *program) launch(stream uint64) { p.launchAt(stream, 4096) }

func (p *program) launchAt(stream, address uint64) {
	number := uint64(len(p.Accesses) + 1)
	p.Accesses[number] = &recording.AccessInfo{Runs: []recording.Run{{Address: address, Bytes: 64, Modes: recording.Write}}}
	p.call(recording.Launch, stream, 0, 7, number, 1, 1, 1, 32, 1, 1, 0, 0, 0)
}

// drawn returns the SVG and its elements by name and class.
func (p *program) drawn(t *testing.T, most int) (string, map[string]int) {
	t.Helper()
	report, err := order.Check(p.Process, order.Options{Strict: true})
	require.NoError(t, err)
	x, err := New(p.Process, report, most)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, x.WriteSVG(&out))
	found := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if a.Name.Local == "class" {
					found[e.Name.Local+" "+a.Value]++
				}
			}
		}
	}
	return out.String(), found
}

func TestMissingWaitIsRed(t *testing.T) {
	p := begin("fill")
	p.launch(first)
	p.launch(second)
	text, found := p.drawn(t, 0)
	require.Equal(t, 2, found["rect racy"])
	require.Equal(t, 1, found["path race"])
	require.Zero(t, found["path wait"])
	require.Contains(t, text, "race: WAW on 64 bytes")
	require.Contains(t, text, "a&lt;b &amp;")
}

func TestWaitIsAnArrow(t *testing.T) {
	p := begin("fill")
	p.launch(first)
	p.call(recording.EventRecord, first, 0, 0x300, 0)
	p.call(recording.StreamWait, second, 0, 0x300, 0)
	p.launch(second)
	p.call(recording.ContextSync)
	p.launch(first)
	text, found := p.drawn(t, 0)
	require.Equal(t, map[string]int{"rect paper": 1, "rect box": 3, "rect event": 2, "rect sync": 1, "path wait": 1, "path tip wait": 1, "path tip idle": 1}, shapes(found))
	require.Contains(t, text, "stream 2 waits for stream 1")
}

// A wait that no conflict needs is grey, with its arrow, and so is a synchronization.
func TestNeedlessWaitsAreGrey(t *testing.T) {
	p := begin("fill")
	p.launch(first)
	p.call(recording.EventRecord, first, 0, 0x300, 0)
	p.call(recording.StreamWait, second, 0, 0x300, 0)
	p.launch(second)
	p.call(recording.EventRecord, first, 0, 0x301, 0)
	p.call(recording.StreamWait, second, 0, 0x301, 0)
	p.call(recording.StreamSync, second)
	for k := range p.Calls {
		p.Calls[k].Place = uint64(k + 1)
	}
	text, found := p.drawn(t, 0)
	require.Equal(t, map[string]int{"rect paper": 1, "rect box": 2, "rect event": 3, "rect grey": 2, "path wait": 1, "path idle": 1, "path tip wait": 1, "path tip idle": 1}, shapes(found))
	require.Contains(t, text, "stream 2 waits for stream 1, and no conflict needs it")
	_, found = p.drawn(t, 3) // drawn as one, a needed wait and another are not grey
	require.Equal(t, 1, found["path wait"])
	require.Zero(t, found["path idle"])
}

// shapes leaves out lines and texts.
func shapes(found map[string]int) map[string]int {
	only := map[string]int{}
	for name, n := range found {
		if strings.HasPrefix(name, "rect ") || strings.HasPrefix(name, "path ") {
			only[name] = n
		}
	}
	return only
}

// Ten thousand launches become few boxes, and what a wait connects stays apart as long as there is room.
func TestLongProgramsStayLegible(t *testing.T) {
	p := begin("fill")
	for k := range 10_000 {
		p.launch(first)
		if k == 5000 {
			p.call(recording.EventRecord, first, 0, 0x300, 0)
			p.call(recording.StreamWait, second, 0, 0x300, 0)
		}
	}
	text, found := p.drawn(t, 100)
	boxes := 0
	for name, n := range shapes(found) {
		if strings.HasPrefix(name, "rect ") {
			boxes += n
		}
	}
	require.LessOrEqual(t, boxes, 101)
	require.Equal(t, 1, found["rect event"])
	require.Equal(t, 1, found["rect grey"])
	require.Equal(t, 1, found["path idle"])
	require.Less(t, len(text), 100_000)
}

// A program of ten thousand launches on eight streams, with a wait after each tenth, every other of them needed, and one race: what is red and grey is still
// there, every label fits into its box, and the picture is a few screens wide.
func TestTenThousandLaunchesOnEightStreams(t *testing.T) {
	p := begin("fill")
	streams := []uint64{first, second, 3, 4, 5, 6, 7, 8}
	p.call(recording.Alloc, 0, 1<<20, 1, 0, 0, 0, 0)
	at := func(stream uint64, address uint64) {
		p.launchAt(stream, address)
		p.Calls[len(p.Calls)-1].Place = stream
	}
	for k := range 10_000 {
		stream := streams[k%len(streams)]
		at(stream, uint64(1+k%len(streams))<<20)
		if k%10 == 0 {
			other := streams[(k+1)%len(streams)]
			p.call(recording.EventRecord, stream, 0, 0x300, 0)
			p.call(recording.StreamWait, other, 0, 0x300, 0)
			p.Calls[len(p.Calls)-1].Place = 100 + uint64(k/10%2)
			if k/10%2 == 0 {
				at(other, uint64(1+k%len(streams))<<20)
				p.call(recording.EventRecord, other, 0, 0x301, 0)
				p.call(recording.StreamWait, stream, 0, 0x301, 0)
				p.Calls[len(p.Calls)-1].Place = 102
			}
		}
	}
	at(second, 1<<20)
	text, found := p.drawn(t, 0)
	boxes := 0
	for name, n := range shapes(found) {
		if strings.HasPrefix(name, "rect ") {
			boxes += n
		}
	}
	require.LessOrEqual(t, boxes, DefaultBoxes+1)
	require.Equal(t, 1, found["path race"])
	require.NotZero(t, found["rect racy"])
	require.NotZero(t, found["path idle"])
	require.NotZero(t, found["path wait"])
	require.Less(t, len(text), 500_000)
	var width float64
	_, err := fmt.Sscanf(text[strings.Index(text, ` width="`):], ` width="%f"`, &width)
	require.NoError(t, err)
	require.Less(t, width, 7000.0)
}
