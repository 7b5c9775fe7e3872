package ranks_test

import (
	"fmt"

	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/planner/proof/ranks"
)

// Two ranks that both send first wait for each other forever.
func ExampleProve() {
	family, err := file.ParseFamily([]byte(`version: 1
buffers: {x: {place: device, dtype: f32, shape: [8], init: 0}, y: {place: device, dtype: f32, shape: [8]}}
nodes:
  - {name: give, send: x, rank: 1 - rank}
  - {name: take, recv: y, rank: 1 - rank}
`), file.Options{}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := ranks.Prove(family)
	fmt.Println(found, err)
	// Output:
	// [ranks wait for each other forever: rank 0 waits in "give" (line 4) for rank 1, rank 1 waits in "give" (line 4) for rank 0] <nil>
}
