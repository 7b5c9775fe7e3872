// Effort: how hard the planner searches.

// Package effort says how hard the planner searches. A search turns it into a number of steps, never into a time, so that the
// same graph and options give the same plan on every machine.
package effort

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Effort is how hard to search.
type Effort uint8

const (
	Quick    Effort = iota // about the time that planning takes anyway
	Normal                 // tens of milliseconds more for a few hundred nodes
	Thorough               // seconds; for plans that are saved and used often
)

var names = [...]string{"quick", "normal", "thorough"}

// ErrEffort is matched by the error for an unknown effort.
var ErrEffort = errors.New("unknown effort")

// Names lists the names that Parse accepts, from the least effort to the most.
func Names() []string { return slices.Clone(names[:]) }

// Parse returns the effort with this name; "" is quick.
func Parse(name string) (Effort, error) {
	if name == "" {
		return Quick, nil
	}
	for i, n := range names {
		if n == name {
			return Effort(i), nil
		}
	}
	return Quick, fmt.Errorf("%w %q: the efforts are %s", ErrEffort, name, strings.Join(names[:], ", "))
}

// Valid reports whether e is one of the efforts.
func (e Effort) Valid() bool { return int(e) < len(names) }

// String is the effort's name.
func (e Effort) String() string {
	if !e.Valid() {
		return fmt.Sprintf("effort %d", uint8(e))
	}
	return names[e]
}
