// The arenas of a plan: how buffers lie in them.

package planner

// arenaAlign is what a device's allocator guarantees, and more than any vector load needs.
const arenaAlign = 256

// alignUp rounds bytes up to what a buffer takes of an arena.
func alignUp(bytes int64) int64 { return (bytes + arenaAlign - 1) &^ (arenaAlign - 1) }
