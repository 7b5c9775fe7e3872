// The proof that a file's edges order all accesses that conflict, by the checker of recordings: it shares nothing with what planned the graph.

package graphfile

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
)

// Race is two nodes that access the same bytes, at least one of them to write, and that no path of edges orders.
type Race struct {
	First  Accessor `json:"first"`
	Second Accessor `json:"second"`
	Bytes  uint64   `json:"bytes"`
}

// Accessor is a node, and the buffer by which it comes to the bytes.
type Accessor struct {
	Node   string `json:"node"`
	Buffer string `json:"buffer"`
	Writes bool   `json:"writes"`
}

// mostRows is how many rows of accesses are gone through.
const mostRows = 1 << 24

// Check returns the races of the graph. Every buffer is where the file says: buffers that lie on the same bytes of the device conflict too.
func (f *File) Check() ([]Race, error) {
	shape, err := happens.NewShape(len(f.Nodes), f.Edges)
	if err != nil {
		return nil, err
	}
	accesses := make([][]happens.Access, len(f.Nodes))
	rows := int64(0)
	for k := range f.Nodes {
		for _, u := range f.Nodes[k].Uses {
			if rows += u.Rows; rows > mostRows {
				return nil, fmt.Errorf("the nodes of %q access more than %d rows of bytes, which is too much to check", f.Name, mostRows)
			}
			low := f.Buffers[u.Buffer].Address + uint64(u.At)
			for row := range u.Rows {
				at := low + uint64(row*u.Pitch)
				accesses[k] = append(accesses[k], happens.Access{Low: at, High: at + uint64(u.Width), Mode: modeOf(u.Modes)})
			}
		}
	}
	var races []Race
	checker := happens.New(func(p happens.Pair) {
		races = append(races, Race{f.accessor(p.FirstNode, p.Low, p.FirstMode), f.accessor(p.SecondNode, p.Low, p.SecondMode), p.High - p.Low})
	}, nil)
	checker.Unit(checker.Lane(), shape, accesses)
	return races, nil
}

func (f *File) accessor(node int32, at uint64, mode happens.Mode) Accessor {
	a := Accessor{Node: f.Nodes[node].Name, Writes: mode&happens.Write != 0}
	for _, u := range f.Nodes[node].Uses {
		if low := f.Buffers[u.Buffer].Address + uint64(u.At); at >= low && at < f.Buffers[u.Buffer].Address+uint64(u.end()) {
			a.Buffer = f.Buffers[u.Buffer].Name
		}
	}
	return a
}

func modeOf(modes uint32) happens.Mode {
	mode := happens.Mode(0)
	if modes&recording.Read != 0 {
		mode |= happens.Read
	}
	if modes&recording.Write != 0 {
		mode |= happens.Write
	}
	return mode
}
