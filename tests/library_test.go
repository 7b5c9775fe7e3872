// Tests of declarations with the real library: the errors of dag and kernels about wrong launches.

package tests

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
)

const declared = `version: 1
name: t
params: {n: 1000}
buffers:
  x: {place: device, dtype: f32, shape: [n], init: 1}
  h: {place: device, dtype: f16, shape: [n], init: 1}
  k: {place: device, dtype: i64, shape: [n], init: 1}
  s: {place: device, dtype: f32, shape: [1]}
  out: {place: host, dtype: f32, shape: [1]}
nodes:
`

func TestLaunchesOfTheRealLibraryAreChecked(t *testing.T) {
	for _, c := range []struct{ node, want string }{
		{"- {name: sum, kernel: reduce_sum, args: [n, x, s], grid: 4}", `p.yaml:11:58: kernel "reduce_sum" is only correct with its own grid, block and shared memory; leave grid:, block: and shared: out`},
		{"- {name: sum, kernel: reduce_som, args: [n, x, s]}", `p.yaml:11:23: unknown kernel "reduce_som"; did you mean "reduce_sum"?`},
		{"- {name: sum, kernel: reduce_sum, args: [n + 1, x, s]}", `p.yaml:11:49: argument x of kernel "reduce_sum" needs 1001 elements (n), but its slice has only 1000; x is f32 [1000] on line 5`},
		{"- {name: sum, kernel: reduce_sum, args: [n, x]}", `p.yaml:11:41: kernel "reduce_sum": takes 3 arguments (n, x, out), got 2`},
		{"- {name: bad, kernel: add, args: [n, x, h, x]}", `p.yaml:11:34: kernel "add": has no version for x f32, y f16, z f32; there are: f16; bf16; f32; f64; i32; it fits with x as f16 (line 5), or h as f32 (line 6)`},
		{"- {name: bad, kernel: fill, args: [n, 1, k]}", `p.yaml:11:35: kernel "fill": has no version for y i64; there are: f16; bf16; f32; f64; i32; it fits with k as f16 (line 7), or k as bf16 (line 7), or k as f32 (line 7), or k as f64 (line 7), or k as i32 (line 7)`},
		{"- {name: bad, kernel: clamp, args: [-1, 0, 1, x, x]}", `p.yaml:11:37: argument n of kernel "clamp" is -1; it must be at least 0; swap arguments 1 and 2`},
	} {
		source := declared + c.node + "\n- {name: down, memcpy: {from: s, to: out}}\n"
		g, err := file.Parse([]byte(source), file.Options{Name: "p.yaml", Library: kernels.Library()})
		require.Nil(t, g, c.node)
		var wrong *file.ParseError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, c.want, wrong.List[0].Error())
	}
}
