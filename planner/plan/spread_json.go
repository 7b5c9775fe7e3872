// The part of a plan's JSON and text that says over which devices its graph was spread.

package plan

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/jsontext"
	"github.com/dagrun/dagrun/internal/words"
)

var spreadKeys = []string{
	"original",         // a hash of the pipeline as declared
	"devices",          // how many
	"policy",           // the policy that chose the devices
	"requested_policy", // the policy that was asked for
	"copies",           // how many copies between devices were added
	"copied_bytes",     // of those copies
	"one_device_us",    // the predicted time on one device; 0: not compared
	"nodes",            // the device of each node of the original, in declaration order, or none where they run as declared

	// These only where data is spilled.
	"spilled",       // when which bytes are in device memory, where not all of them fit
	"spills",        // how many copies to host memory make room in a replay
	"reloads",       // how many copies bring contents back
	"spilled_bytes", // of both
	"unspilled_us",  // the predicted time on a device with enough memory
	"order",         // the nodes of the graph that was spilled, by their place, in the order in which they come; only where it is not the declared one
}

// spillKeys is how many of the keys are only there where data is spilled.
const spillKeys = 6

var residencyKeys = []string{
	"buffer", // of the graph that was spilled, by its place among the buffers
	"lo",     // its first byte
	"hi",     // the byte behind its last
	"first",  // the node, by its place in the order, before which the bytes come
	"last",   // the node after which they leave
	"offset", // where they can lie
	"stays",  // whether the buffer stays on the device from one replay to the next
}

// spread writes how the graph was spread: enough to make it again from the original.
func (e *planEncoder) spread(s *Spread) {
	if s == nil {
		return
	}
	e.WriteString(",\n  \"spread\": {")
	held := s.held()
	e.values(spreadKeys, held[:7])
	if len(s.Spilled) > 0 {
		e.spilled(s)
	}
	e.WriteString(`, "nodes": [`)
	for i, d := range s.At {
		if i > 0 {
			e.WriteString(", ")
		}
		e.int(int64(d))
	}
	e.WriteString("]}")
}

// spilled writes when which bytes are in device memory.
func (e *planEncoder) spilled(s *Spread) {
	e.WriteString(", ")
	e.values(spreadKeys[9:], s.held()[9:13])
	e.WriteString(`, "spilled": [`)
	for k := range s.Spilled {
		r := &s.Spilled[k]
		if k > 0 {
			e.WriteString(", ")
		}
		e.WriteByte('{')
		e.values(residencyKeys, r.held())
		e.WriteByte('}')
	}
	e.WriteString("]")
	if len(s.Order) == 0 {
		return
	}
	e.WriteString(`, "order": [`)
	for k, i := range s.Order {
		if k > 0 {
			e.WriteString(", ")
		}
		e.int(int64(i))
	}
	e.WriteString("]")
}

// held is where a spread keeps what spreadKeys say, in the order of those; nil for lists.
func (s *Spread) held() []any {
	t := &s.Stats
	return []any{&s.Original, &s.Devices, &s.Policy, &s.Requested, &t.Copies, &t.Bytes, &t.OneUS, nil,
		nil, &t.Spills, &t.Reloads, &t.SpilledBytes, &t.UnspilledUS, nil}
}

// held is where a residency keeps what residencyKeys say, in the order of those.
func (x *Residency) held() []any {
	return []any{&x.Buffer, &x.Lo, &x.Hi, &x.First, &x.Last, &x.Offset, &x.Stays}
}

// readSpread reads what spread writes.
func readSpread(r *jsontext.Reader) *Spread {
	s := &Spread{At: []int32{}}
	held := s.held()
	r.Object(spreadKeys, spillKeys, func(key int) {
		switch spreadKeys[key] {
		case "devices":
			s.Devices = int(r.Int(1, dag.MostDevices))
		case "spilled":
			r.List(func(int) {
				var x Residency
				held := x.held()
				r.Object(residencyKeys, 0, func(key int) { readValue(r, held[key]) })
				s.Spilled = append(s.Spilled, x)
			})
		case "order":
			r.List(func(int) { s.Order = append(s.Order, dag.NodeID(r.Int(0, math.MaxInt32))) })
		case "nodes":
			r.List(func(int) { s.At = append(s.At, int32(r.Int(0, dag.MostDevices-1))) })
		default:
			readValue(r, held[key])
		}
	})
	return s
}

// DecodeSpread reads from the JSON of a plan how its graph was spread over devices. Graph, Nodes and Buffers of the result are not set. It
// returns nil if the plan is of a graph as it was declared.
func DecodeSpread(r io.Reader) (*Spread, error) {
	data, err := jsontext.ReadLimited(r, "plan", maxPlanBytes)
	if err != nil {
		return nil, err
	}
	reader := &jsontext.Reader{Data: data, Kind: ErrPlanShape}
	var s *Spread
	reader.Object(planKeys, 8, func(key int) {
		if planKeys[key] == "spread" {
			s = readSpread(reader)
		} else {
			reader.SkipAll()
		}
	})
	if reader.Err != nil {
		return nil, fmt.Errorf("plan: %w", reader.Err)
	}
	return s, nil
}

// writeSpread says where the nodes run and what is copied between devices.
func (p *Plan) writeSpread(out *bufio.Writer) {
	s := p.Spread
	if s == nil {
		return
	}
	p.writeSpill(out)
	if len(s.At) == 0 {
		return
	}
	var parts []string
	for d := range int32(min(s.Devices, dag.MostDevices)) {
		parts = append(parts, fmt.Sprintf("%d on device %d", s.OnDevice(d), d))
	}
	policy := s.Policy
	if s.Requested != s.Policy && s.Requested != "" {
		policy += " (requested: " + s.Requested + ")"
	}
	fmt.Fprintf(out, "spread over %s by %s: of %s %s", words.Count(s.Devices, "device", "devices"), policy, words.Count(len(s.At), "node", "nodes"),
		strings.Join(parts, ", "))
	if s.Stats.Copies > 0 {
		fmt.Fprintf(out, "; %s between devices, %s", words.Count(s.Stats.Copies, "copy", "copies"), words.Bytes(s.Stats.Bytes))
	}
	if s.Stats.OneUS > 0 {
		fmt.Fprintf(out, "; one device would take %.2f us", s.Stats.OneUS)
	}
	out.WriteByte('\n')
}

// writeSpill says what is copied to host memory and back, and what that costs.
func (p *Plan) writeSpill(out *bufio.Writer) {
	s := p.Spread
	if len(s.Spilled) == 0 {
		return
	}
	if s.Stats.Spills+s.Stats.Reloads == 0 {
		out.WriteString("spilled: nothing has to be copied to host memory, because slices of buffers are in device memory only while they are used")
	} else {
		fmt.Fprintf(out, "spilled: in a replay %s to host memory and %s back move %s", words.Count(s.Stats.Spills, "copy", "copies"),
			words.Count(s.Stats.Reloads, "copy", "copies"), words.Bytes(s.Stats.SpilledBytes))
	}
	if s.Graph != nil {
		if names := s.spilledNames(); len(names) > 0 {
			fmt.Fprintf(out, " of %s", strings.Join(names, ", "))
		}
	}
	if moved := s.moved(); moved > 0 {
		fmt.Fprintf(out, "; %d of %s come in another order than declared", moved, words.Count(len(s.Order), "node", "nodes"))
	}
	if s.Stats.UnspilledUS > 0 {
		fmt.Fprintf(out, "; with enough memory it would take %.2f us", s.Stats.UnspilledUS)
	}
	out.WriteByte('\n')
}

// moved counts the nodes that have to be taken out so that all others come in declared order: the rest is a longest ascending subsequence.
func (s *Spread) moved() int {
	var ends []dag.NodeID // by length: the least last node of an ascending subsequence
	for _, i := range s.Order {
		k, _ := slices.BinarySearch(ends, i)
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	return len(s.Order) - len(ends)
}

// spilledNames lists the buffers that are copied out or back, with the bytes that move, the first few by name.
func (s *Spread) spilledNames() []string {
	const most = 6
	var order []string
	bytes := map[string]int64{}
	for i, from := range s.Nodes {
		if move := s.Graph.Nodes[i].Copy; from == Inserted && move != nil && s.home(move.Src.Buffer) != s.home(move.Dst.Buffer) {
			name := s.original(move.Src.Buffer)
			if bytes[name] == 0 {
				order = append(order, name)
			}
			bytes[name] += move.Src.Bytes()
		}
	}
	var names []string
	for k, name := range order {
		if k == most {
			return append(names, fmt.Sprintf("%d more", len(order)-k))
		}
		names = append(names, fmt.Sprintf("%q (%s)", name, words.Bytes(bytes[name])))
	}
	return names
}

func (s *Spread) home(b dag.BufferID) bool { return s.Graph.Buffers[b].Place == dag.Host }

// original is the name of the buffer that one stands for: the first that stands for the same has it.
func (s *Spread) original(b dag.BufferID) string {
	for k := range s.Buffers {
		if s.Buffers[k].Buffer == s.Buffers[b].Buffer {
			name := s.Graph.Buffers[k].Name
			if end := strings.IndexAny(name, "(@"); end > 0 { // a part of a buffer
				name = name[:end]
			}
			return name
		}
	}
	return s.Graph.Buffers[b].Name
}
