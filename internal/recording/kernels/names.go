// Names: what a person calls a kernel.

package kernels

import "github.com/ianlancetaylor/demangle"

const (
	longestMangled   = 1 << 14 // a longer name is left as it is
	longestDemangled = 14      // as a power of two
)

// Demangled is a kernel's name as C++ writes it, without its parameters. A name that is not mangled, or not in a known way, stays as it is.
func Demangled(mangled string) string {
	if len(mangled) > longestMangled {
		return mangled
	}
	name, err := demangle.ToString(mangled, demangle.NoParams, demangle.NoClones, demangle.MaxLength(longestDemangled))
	if err != nil {
		return mangled
	}
	return name
}
