// A runnable example of packing buffers.

package pack_test

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/planner/internal/pack"
)

func ExampleFit() {
	// Four buffers, alive at places 0-1, 1-2, 2-3 and 0-3.
	p := pack.Intervals([]int64{4, 2, 4, 1}, []int32{0, 1, 2, 0}, []int32{1, 2, 3, 3})
	fits := pack.Fit(context.Background(), p, 7, 1000)
	fmt.Println(fits.Verdict == pack.Found, fits.Peak)
	tight := pack.Fit(context.Background(), p, 6, 1000)
	fmt.Println(tight.Verdict == pack.Impossible, tight.Bound)
	// Output:
	// true 7
	// true 7
}
