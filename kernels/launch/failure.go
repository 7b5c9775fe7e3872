// The error for a source that does not compile. All compilers return it.

package launch

import "fmt"

// CompileError is the error for a source that does not compile.
type CompileError struct {
	Name     string // file or module
	Log      string // the compiler's messages, with the user's files and lines
	Compiler string // whose they are; "" where there is only one compiler
	Others   []string
}

func (e *CompileError) Error() string {
	if e == nil {
		return "a source does not compile"
	}
	by := ""
	if e.Compiler != "" {
		by = " (" + e.Compiler + ")"
	}
	text := fmt.Sprintf("%s does not compile%s:\n%s", e.Name, by, e.Log)
	for _, other := range e.Others {
		text += "\n" + other
	}
	return text
}
