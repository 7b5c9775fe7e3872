// Structures by value: the addresses that are members of them.

package cudart

import "fmt"

// OwnValues are the values that a kernel has parameters for: all but members of structures, which come last.
func OwnValues(args []Value) []Value {
	for len(args) > 0 && args[len(args)-1].Within != 0 {
		args = args[:len(args)-1]
	}
	return args
}

// MemberProblem says which value is a member of a structure that it cannot be a member of, "" if none is.
func MemberProblem(args []Value) string {
	own := OwnValues(args)
	for i := range args {
		v := &args[i]
		switch {
		case v.Within == 0 && i >= len(own):
			return fmt.Sprintf("argument %d comes after members of structures", i)
		case v.Within == 0:
		case v.Within < 0 || int(v.Within) > len(own) || v.Offset < 0 || int(v.Offset) > len(own[v.Within-1].Struct)-8 || v.Texture != nil || v.Struct != nil:
			return fmt.Sprintf("value %d is no address in a structure among the arguments", i)
		}
	}
	return ""
}
