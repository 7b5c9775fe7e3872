// The part of a plan's JSON and text that says over which devices its graph was spread.

package plan

import (
	"bufio"
	"fmt"
	"io"
	"math"
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
	"nodes",            // the device of each node of the original, in declaration order; with it, --plan makes the same graph again
}

// spread writes how the graph was spread: enough to make it again from the original.
func (e *planEncoder) spread(s *Spread) {
	if s == nil {
		return
	}
	e.WriteString(",\n  \"spread\": {\"original\": ")
	e.string(s.Original)
	e.WriteString(`, "devices": `)
	e.int(int64(s.Devices))
	e.WriteString(`, "policy": `)
	e.string(s.Policy)
	e.WriteString(`, "requested_policy": `)
	e.string(s.Requested)
	e.WriteString(`, "copies": `)
	e.int(int64(s.Stats.Copies))
	e.WriteString(`, "copied_bytes": `)
	e.int(s.Stats.Bytes)
	e.WriteString(`, "one_device_us": `)
	e.scratch = jsontext.AppendFloat(e.scratch[:0], s.Stats.OneUS)
	e.Write(e.scratch)
	e.WriteString(`, "nodes": [`)
	for i, d := range s.At {
		if i > 0 {
			e.WriteString(", ")
		}
		e.int(int64(d))
	}
	e.WriteString("]}")
}

// readSpread reads what spread writes.
func readSpread(r *jsontext.Reader) *Spread {
	s := &Spread{At: []int32{}}
	r.Object(spreadKeys, 0, func(key int) {
		switch spreadKeys[key] {
		case "original":
			s.Original = r.Label()
		case "devices":
			s.Devices = int(r.Int(1, dag.MostDevices))
		case "policy":
			s.Policy = r.Label()
		case "requested_policy":
			s.Requested = r.Label()
		case "copies":
			s.Stats.Copies = int(r.Int(0, math.MaxInt32))
		case "copied_bytes":
			s.Stats.Bytes = r.Int(0, math.MaxInt64)
		case "one_device_us":
			s.Stats.OneUS = r.Float(math.MaxFloat64)
		case "nodes":
			r.List(func(int) { s.At = append(s.At, int32(r.Int(0, dag.MostDevices-1))) })
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
	var parts []string
	for d := range int32(min(s.Devices, dag.MostDevices)) {
		parts = append(parts, fmt.Sprintf("%d on device %d", s.OnDevice(d), d))
	}
	policy := s.Policy
	if s.Requested != s.Policy && s.Requested != "" {
		policy += " (requested: " + s.Requested + ")"
	}
	fmt.Fprintf(out, "spread over %s by %s: of %s %s", words.Count(s.Devices, "device", "devices"), policy, words.Count(len(s.At), "node", "nodes"), strings.Join(parts, ", "))
	if s.Stats.Copies > 0 {
		fmt.Fprintf(out, "; %s between devices, %s", words.Count(s.Stats.Copies, "copy", "copies"), words.Bytes(s.Stats.Bytes))
	}
	if s.Stats.OneUS > 0 {
		fmt.Fprintf(out, "; one device would take %.2f us", s.Stats.OneUS)
	}
	out.WriteByte('\n')
}
