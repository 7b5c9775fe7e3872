// Package describe holds what all kinds of kernels use when they describe a launch: checks of its arguments, and numbers of blocks and threads.
package describe

import (
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// CheckKinds compares arguments with parameters: their number, buffer or number, type.
func CheckKinds(params []dag.KernelParam, args []dag.Arg) error {
	if len(args) != len(params) {
		return fmt.Errorf("takes %s, got %d", CountArguments(params), len(args))
	}
	for i, p := range params {
		a := args[i]
		switch {
		case p.Buffer && !a.IsBuffer:
			return Wrong(p.Name, "must be a buffer, got a number")
		case !p.Buffer && a.IsBuffer:
			return Wrong(p.Name, "must be a number, got a buffer")
		case p.Scratch || p.DType == dag.InvalidDType:
		case a.DType != p.DType:
			return Wrong(p.Name, "must be of type %s, got %s", p.DType, a.DType)
		}
	}
	return nil
}

// CountArguments names the parameters in a message: "2 arguments (n, x)".
func CountArguments(given []dag.KernelParam) string {
	var names []string
	for _, p := range given {
		names = append(names, p.Name)
	}
	switch len(names) {
	case 0:
		return "no arguments"
	case 1:
		return "1 argument (" + names[0] + ")"
	}
	return fmt.Sprintf("%d arguments (%s)", len(names), strings.Join(names, ", "))
}

// Wrong returns the error for one argument. The text continues the sentence "argument x ...".
func Wrong(param, format string, a ...any) error {
	return &dag.ArgumentError{Param: param, Index: -1, Problem: fmt.Sprintf(format, a...)}
}

// CountElements is "1 element" or "n elements".
func CountElements(n int64) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

// IntegerValue is an integer argument's value; 0 for a float.
func IntegerValue(a dag.Arg) int64 {
	switch a.DType {
	case dag.I8:
		return int64(int8(a.Bits))
	case dag.I16:
		return int64(int16(a.Bits))
	case dag.I32:
		return int64(int32(a.Bits))
	case dag.U8, dag.Bool:
		return int64(uint8(a.Bits))
	case dag.U16:
		return int64(uint16(a.Bits))
	case dag.U32:
		return int64(uint32(a.Bits))
	case dag.I64, dag.U64:
		return int64(a.Bits)
	}
	return 0
}

// FloatValue is a float argument's value; 0 for an integer.
func FloatValue(a dag.Arg) float64 {
	switch a.DType {
	case dag.F32:
		return float64(math.Float32frombits(uint32(a.Bits)))
	case dag.F64:
		return math.Float64frombits(a.Bits)
	}
	return 0
}
