// What a plan was made for, where that is another graph: the difference is found from the names in the plan.

package plan

import (
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/internal/jsontext"
)

// otherGraph reads a plan once more, for names only, and returns an error if it was made for another graph than g.
func otherGraph(data []byte, g *dag.Graph, hash string) *jsontext.FileError {
	r := &jsontext.Reader{Data: data, Kind: ErrPlanShape}
	o := &outline.Graph{Nodes: []string{}, Edges: []outline.Edge{}}
	theirs, at := "", 0
	r.Object(planKeys, 8, func(key int) {
		switch planKeys[key] {
		case "graph":
			at = r.At
			theirs = r.Text()
		case "streams":
			r.List(func(int) {
				r.Object(streamKeys, 0, func(key int) {
					if streamKeys[key] != "ops" {
						r.Skip()
						return
					}
					r.List(func(int) {
						kind, node := "", ""
						r.Object(opKeys, 2, func(key int) {
							switch opKeys[key] {
							case "op":
								kind = r.Text()
							case "node":
								node = r.Text()
							default:
								r.Skip()
							}
						})
						if kind == "launch" {
							o.Nodes = append(o.Nodes, node)
						}
					})
				})
			})
		case "edges":
			r.List(func(int) {
				var e outline.Edge
				r.Object(edgeKeys, 2, func(key int) {
					switch edgeKeys[key] {
					case "from":
						e.From = outlineEnd(r)
					case "to":
						e.To = outlineEnd(r)
					case "why":
						e.Why = r.Text()
					case "box":
						r.SkipAll()
					default:
						r.List(func(k int) {
							if v := r.Int(0, math.MaxInt64); k == 0 {
								e.Lo = v
							} else {
								e.Hi = v
							}
						})
					}
				})
				o.Edges = append(o.Edges, e)
			})
		case "memory":
			o.Buffers = []outline.Buffer{}
			r.List(func(int) {
				var b outline.Buffer
				r.Object(memoryKeys, 0, func(key int) {
					switch memoryKeys[key] {
					case "buffer":
						b.Name = r.Text()
					case "device":
						b.Device = int32(r.Int(0, math.MaxInt32))
					case "bytes":
						b.Bytes = r.Int(0, math.MaxInt64)
					default:
						r.Skip()
					}
				})
				o.Buffers = append(o.Buffers, b)
			})
		case "stats":
			r.Object(statsKeys, 0, func(key int) {
				if statsKeys[key] != "fork_join" {
					r.Skip()
					return
				}
				r.Object(forkKeys, 0, func(int) { r.Skip() })
			})
		case "order", "kept", "modules":
			r.List(func(int) { r.Skip() })
		case "costs":
			r.List(func(int) { r.Object(costKeys, 2, func(int) { r.Skip() }) })
		case "works":
			r.List(func(int) { r.List(func(int) { r.Skip() }) })
		case "bodies", "spread":
			r.SkipAll()
		default:
			r.Skip()
		}
	})
	if r.Err != nil {
		return r.Err
	}
	if theirs == hash {
		return nil
	}
	difference := outline.DifferenceFrom(g, o)
	if difference == "" {
		difference = "something that a plan does not show differs, such as sync:, a stream:, a priority: or a host buffer"
	}
	r.Path = []jsontext.Step{{Key: "graph"}}
	r.FailAt(at, ErrOtherGraph, "the plan was made for another graph: %s", difference)
	return r.Err
}

// outlineEnd reads one end of an edge, as [dag.Graph.NameOf] calls it.
func outlineEnd(r *jsontext.Reader) string {
	if isJoin(r) {
		return dag.JoinName(int(r.Int(0, math.MaxInt32)))
	}
	return r.Text()
}

// isJoin reports whether the next value is an edge end that is a join.
func isJoin(r *jsontext.Reader) bool {
	c := r.Peek()
	return c >= '0' && c <= '9'
}
