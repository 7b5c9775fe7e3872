// Numbers as users write them, as Go values, and as the bits of an element.

package dag

import (
	"fmt"
	"math"
	"reflect"

	"github.com/dagrun/dagrun/dag/expr"
)

// numberOf turns a Go number or bool into a value. An unsigned number beyond int64 is not one, and neither is an id.
func numberOf(v any) (expr.Value, bool) {
	switch v.(type) {
	case NodeID, BufferID:
		return expr.Value{}, false
	}
	switch v := reflect.ValueOf(v); {
	case !v.IsValid():
	case v.CanInt():
		return expr.Int(v.Int()), true
	case v.CanUint():
		return expr.Int(int64(v.Uint())), v.Uint() <= math.MaxInt64
	case v.CanFloat():
		return expr.FloatValue(v.Float()), true
	case v.Kind() == reflect.Bool:
		if v.Bool() {
			return expr.Int(1), true
		}
		return expr.Int(0), true
	}
	return expr.Value{}, false
}

// Bits converts a value to an element of the type. The error, if the type cannot hold it, is the rest of a sentence: "is 300, which does not fit in u8".
func (t DType) Bits(v expr.Value) (uint64, error) {
	if !t.isNumber() {
		return 0, fmt.Errorf("is the number %s, but an element of type %s has %d", v.Plain(), t, t.Components())
	}
	if t.Float() {
		bits := t.FromFloat(v.Float())
		if math.IsInf(t.ToFloat(bits), 0) {
			return 0, fmt.Errorf("is %s, which does not fit in %s", v.Plain(), t)
		}
		return bits, nil
	}
	n, ok := v.Int()
	if v.Kind() == expr.Bool {
		n, ok = int64(v.Float()), true
	}
	if !ok {
		return 0, fmt.Errorf("must be an integer (%s), got %s", t, v.Plain())
	}
	bits, ok := t.fromInt(n)
	if !ok {
		return 0, fmt.Errorf("is %d, which does not fit in %s", n, t)
	}
	return bits, nil
}
