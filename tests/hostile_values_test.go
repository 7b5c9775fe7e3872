// Hostile values: arguments of any type that a careless or malicious caller could pass, from a seed.

package tests

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
)

// hostile makes values. Values of a known type come from its pool half of the time, so that calls get past the first check.
type hostile struct {
	*rand.Rand
	pool map[reflect.Type][]reflect.Value
}

func newHostile(seed uint64) *hostile {
	h := &hostile{rand.New(rand.NewPCG(seed, 1)), map[reflect.Type][]reflect.Value{}}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	h.add(reflect.ValueOf(canceled))
	h.add(reflect.ValueOf(errors.New("an error")))
	h.add(reflect.ValueOf(io.Discard))
	h.add(reflect.ValueOf(brokenWriter{}))
	h.add(reflect.ValueOf(strings.NewReader("{}")))
	return h
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func (h *hostile) add(v reflect.Value) { h.pool[v.Type()] = append(h.pool[v.Type()], v) }

var (
	hostileInts   = []int64{0, 0, 0, 1, 1, 2, 3, 4, 7, 8, 16, 64, 99, 1000, -1, -2, -99, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, 1 << 40, 1 << 62, 255, 256}
	hostileFloats = []float64{0, 1, -1, 0.5, 1e6, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324, 1 << 63, math.Copysign(0, -1)}
	hostileTexts  = []string{"", "a", "b", "x", "d_x", "a.b", "f32", "saxpy", "scale", "list", "y = x", "y = x/0", "x(0..2)", "$i", "$", "${", "1/0", "\x00", "\xff\xfe", "日本語", "a\u202eb", "e\u0301", "\ufeff", "a\nb", "\x1b[31m", strings.Repeat("n", 300), strings.Repeat("(", 500)}
)

// value makes a value of a type. Depth bounds values within values.
func (h *hostile) value(t reflect.Type, depth int) reflect.Value {
	if known := h.known(t); len(known) > 0 && h.IntN(2) == 0 {
		return known[h.IntN(len(known))]
	}
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(h.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(hostileInts[h.IntN(len(hostileInts))]) // truncated to the type
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(hostileInts[h.IntN(len(hostileInts))]))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(hostileFloats[h.IntN(len(hostileFloats))])
	case reflect.String:
		v.SetString(hostileTexts[h.IntN(len(hostileTexts))])
	case reflect.Slice:
		if n := h.IntN(5) - 1; n >= 0 && depth > 0 {
			v.Set(reflect.MakeSlice(t, n, n))
			for i := range n {
				v.Index(i).Set(h.value(t.Elem(), depth-1))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).Set(h.value(t.Elem(), depth-1))
		}
	case reflect.Map:
		if n := h.IntN(4) - 1; n >= 0 && depth > 0 {
			v.Set(reflect.MakeMap(t))
			for range n {
				v.SetMapIndex(h.value(t.Key(), depth-1), h.value(t.Elem(), depth-1))
			}
		}
	case reflect.Pointer:
		if depth > 0 && h.IntN(4) > 0 {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(h.value(t.Elem(), depth-1))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				v.Field(i).Set(h.value(t.Field(i).Type, depth-1))
			}
		}
	case reflect.Func:
		if h.IntN(4) > 0 {
			v.Set(reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value {
				results := make([]reflect.Value, t.NumOut())
				for i := range results {
					results[i] = h.value(t.Out(i), 1)
				}
				return results
			}))
		}
	case reflect.Interface:
		if t.NumMethod() == 0 && h.IntN(4) > 0 {
			basic := []any{1, -1, 2.5, math.NaN(), "x", true, []int{1}, uint64(math.MaxUint64), struct{}{}}
			v.Set(reflect.ValueOf(basic[h.IntN(len(basic))]))
		}
	}
	return v
}

// known are the pool's values that can be passed as a type, in the order in which they were added.
func (h *hostile) known(t reflect.Type) []reflect.Value {
	if t.Kind() != reflect.Interface {
		return h.pool[t]
	}
	if t.NumMethod() == 0 {
		return nil
	}
	if found, done := h.pool[t]; done {
		return found
	}
	var found []reflect.Value
	for of, values := range h.pool {
		if of.Kind() != reflect.Interface && of.Implements(t) {
			found = append(found, values...)
		}
	}
	sort.SliceStable(found, func(a, b int) bool { return found[a].Type().String() < found[b].Type().String() })
	h.pool[t] = found
	return found
}
