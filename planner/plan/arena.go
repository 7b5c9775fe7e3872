// The arenas of a plan: how buffers lie in them.

package plan

// ArenaAlign is what a device's allocator guarantees, and more than any vector load needs.
const ArenaAlign = 256

// AlignUp rounds bytes up to what a buffer takes of an arena.
func AlignUp(bytes int64) int64 { return (bytes + ArenaAlign - 1) &^ (ArenaAlign - 1) }
