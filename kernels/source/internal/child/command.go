// A command: what is run, and what it may use.

package child

import (
	"slices"
	"strings"
)

// Command is one run of a compiler.
type Command struct {
	Path   string
	Args   []string
	Env    []string
	Stdin  []byte
	Folder string // temporary, see NewFolder; "": it needs none
	// Confined are the folders that it may read beside its own, the system's and the temporary one. It may write only the last, and has no network.
	// nil: there are no such limits.
	Confined []string
	// Parent says that it starts processes of its own.
	Parent bool
}

// Output is what a compiler wrote to its standard output and its standard error.
type Output struct{ Out, Log []byte }

// inherited are the variables that a confined compiler gets.
var inherited = []string{"PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "LC_ALL"}

// environment sends temporary files to the folder that is removed.
func (c *Command) environment() []string {
	if c.Folder == "" {
		return c.Env
	}
	list := slices.DeleteFunc(slices.Clone(c.Env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return name == "TMPDIR" || c.Confined != nil && !slices.Contains(inherited, name)
	})
	return append(list, "TMPDIR="+c.Folder)
}
