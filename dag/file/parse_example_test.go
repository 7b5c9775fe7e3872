// Runnable examples of reading files.

package file_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
)

func ExampleParse() {
	source := `version: 1
buffers:
  x:   {place: host, dtype: f32, shape: [n], init: zeros}
  d_x: {place: device, dtype: f32, shape: [n]}
  out: {place: host, dtype: f32, shape: [n]}
params: {n: 1024}
nodes:
  - {name: up, memcpy: {from: x, to: d_x}}
  - {name: down, memcpy: {from: d_x, to: out}}
`
	g, err := file.Parse([]byte(source), file.Options{Name: "copy.yaml", Params: []file.Override{{Name: "n", Value: "4096"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range g.Edges() {
		fmt.Println(g.Nodes[e.From].Name, "->", g.Nodes[e.To].Name, e.Why, g.RangeText(dag.Range{Buffer: e.Buffer, Lo: e.Lo, Hi: e.Hi}))
	}
	// Output: up -> down RAW d_x
}

func ExampleDiagnostics_Print() {
	source := `version: 1
buffers:
  x: {place: host, dtype: f23, shape: [8]}
nodes:
  - {name: up, memcpy: {from: x, too: y}}
`
	_, err := file.Parse([]byte(source), file.Options{Name: "bad.yaml"})
	var wrong *file.ParseError
	if errors.As(err, &wrong) {
		_ = wrong.Print(os.Stdout)
	}
	// Output:
	// bad.yaml:3:27: unknown dtype "f23"; did you mean "f32"?
	//     x: {place: host, dtype: f23, shape: [8]}
	//                             ^
	// bad.yaml:5:34: unknown key "too" in memcpy; did you mean "to"?
	//     - {name: up, memcpy: {from: x, too: y}}
	//                                    ^
	// bad.yaml:5:39: unknown buffer "y"
	//     - {name: up, memcpy: {from: x, too: y}}
	//                                         ^
}

func ExampleFormat() {
	source := "nodes:\n- memset: {value: 0, to: x}   # why\n  name: 'clear'\nversion: 1\n"
	out, err := file.Format([]byte(source), "p.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(out))
	// Output:
	// version: 1
	//
	// nodes:
	//   - {name: clear, memset: {to: x, value: 0}}  # why
}

func ExampleWrite() {
	b := dag.New("clear")
	d, out := b.Device("d", dag.F32, 256), b.Host("out", dag.F32, 256)
	set := b.Memset("set", b.Whole(d), 1.5)
	b.Priority(set, dag.High)
	b.Copy("down", b.Slice(out, 0, 16), b.Slice(d, 0, 16))
	g, err := b.Graph()
	if err == nil {
		err = file.Write(os.Stdout, g.Pipeline)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// version: 1
	// name: clear
	// buffers:
	//   d: {place: device, dtype: f32, shape: [256]}
	//   out: {place: host, dtype: f32, shape: [256]}
	// nodes:
	//   - {name: set, memset: {to: d, value: 1.5}, priority: high}
	//   - {name: down, memcpy: {from: d(0..16), to: out(0..16)}}
}
