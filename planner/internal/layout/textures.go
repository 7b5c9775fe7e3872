// Room for buffers that launches read as textures, which must lie more aligned than others.

package layout

import "github.com/dagrun/dagrun/planner/plan"

func alignedTo(at, align int64) int64 { return (at + align - 1) / align * align }

// textureRoom is how many bytes more a buffer is given, so that it can be moved up to where a texture may start.
func textureRoom(textured []bool, buffer int) int64 {
	if textured == nil || !textured[buffer] {
		return 0
	}
	return plan.TextureAlign - plan.ArenaAlign
}
