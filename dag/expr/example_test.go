// Runnable examples of expressions.

package expr_test

import (
	"fmt"

	"github.com/dagrun/dagrun/dag/expr"
)

type params map[string]int64

func (p params) Variable(name string) (expr.Value, bool) { v, ok := p[name]; return expr.Int(v), ok }
func (p params) Shape(string) ([]int64, bool)            { return nil, false }

func Example() {
	e, err := expr.Parse("ceil(n / 256) + 1/3 + 2/3")
	if err != nil {
		panic(err)
	}
	v, err := e.Eval(params{"n": 1000})
	fmt.Println(v, err)
	// Output: 5 <nil>
}

func ExampleExpr_Compile() {
	e, _ := expr.Parse("1/(i+n)")
	bound, err := e.Bind(params{"n": 1}, "i")
	if err != nil {
		panic(err)
	}
	f, err := bound.Compile("i")
	if err != nil {
		panic(err)
	}
	for i := range int64(3) {
		v, _ := f.Float(i)
		fmt.Println(v)
	}
	_, err = f.Float(-1)
	fmt.Println(err)
	// Output:
	// 1
	// 0.5
	// 0.3333333333333333
	// division by zero
}
