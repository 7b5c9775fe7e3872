// Alignment in the arenas of a plan.

package plan

import "github.com/dagrun/dagrun/dag"

// ArenaAlign is the alignment of buffers in bytes: device allocators guarantee it, and it is more than any vector load needs.
const ArenaAlign = 256

// TextureAlign is the alignment of buffers that launches read as textures.
const TextureAlign = dag.TextureAlign

// AlignUp rounds the size of a buffer up to the space that it takes in an arena.
func AlignUp(bytes int64) int64 { return (bytes + ArenaAlign - 1) &^ (ArenaAlign - 1) }
