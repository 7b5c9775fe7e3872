package happens_test

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/happens"
)

// A lane writes eight bytes, and another reads half of them without waiting.
func Example() {
	c := happens.New(func(p happens.Pair) {
		fmt.Printf("steps %d and %d, bytes %d to %d\n", p.First, p.Second, p.Low, p.High)
	}, nil)
	one, other := c.Lane(), c.Lane()
	c.Step(one, []happens.Access{{Low: 0, High: 8, Mode: happens.Write}})
	c.Step(other, []happens.Access{{Low: 4, High: 8, Mode: happens.Read}})
	c.After(other, c.Now(one))
	c.Step(other, []happens.Access{{Low: 0, High: 8, Mode: happens.Read}})
	// Output: steps 0 and 1, bytes 4 to 8
}
