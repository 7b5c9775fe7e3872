// A runnable example of host functions; docs/host-functions.md shows it.

package runtime_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// A pipeline scales four numbers; before each replay has ended, a function of the program gets them.
func ExampleHostFunction() {
	const file = `
version: 1
buffers:
  x: {place: host, dtype: f32, shape: [4], init: {ramp: [1, 1]}}
  d_x: {place: device, dtype: f32, shape: [4]}
  y: {place: host, dtype: f32, shape: [4]}
nodes:
  - {name: up, memcpy: {from: x, to: d_x}}
  - {name: scale, kernel: scale, args: [4, 10, d_x]}
  - {name: down, memcpy: {from: d_x, to: y}}
  - {name: show, host: show, args: [{in: y}]}
`
	functions := map[string]runtime.HostFunction{
		"show": func(ctx context.Context, c *runtime.HostCall) error {
			y := c.Buffer("y")
			fmt.Println("replay", c.Replay, dag.F32.ToFloat(dag.F32.Load(y, 0)), "to", dag.F32.ToFloat(dag.F32.Load(y, 3)))
			return ctx.Err()
		},
	}
	if err := runFile(context.Background(), []byte(file), functions); err != nil {
		log.Fatal(err)
	}
	// Output:
	// replay 0 10 to 40
	// replay 1 10 to 40
}

func runFile(ctx context.Context, source []byte, functions map[string]runtime.HostFunction) error {
	g, err := file.Parse(source, file.Options{Name: "show.yaml", Library: kernels.Library()})
	if err != nil {
		return err
	}
	plan, err := planner.New(ctx, g, planner.Options{})
	if err != nil {
		return err
	}
	platform, err := host.Open(host.Options{}) // or driver.Open
	if err != nil {
		return err
	}
	defer platform.Close()
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: runtime.Captured, Functions: functions})
	if err != nil {
		return err
	}
	defer program.Close()
	return program.Run(ctx, 2)
}
