// The limits of a compiler.

package child

import "time"

// Limits of a compiler. Large libraries of templates take a few minutes and some gigabytes.
var (
	mostTime   = 20 * time.Minute // by the clock, and of a processor
	mostMemory = int64(16 << 30)  // bytes of address space
)
