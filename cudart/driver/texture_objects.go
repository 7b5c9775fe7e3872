// The texture objects that a platform has made, and what its devices demand of textures.

package driver

import (
	"sync"

	"github.com/dagrun/dagrun/cudart"
)

// textures are the texture objects of a platform.
type textures struct {
	mu    sync.Mutex
	known map[textureKey]textureObject
	rules map[*device]textureRules
}

// textureKey is memory on a device, and how it is read.
type textureKey struct {
	d       *device
	ptr     cudart.Ptr
	texture cudart.Texture
}

// textureObject is a CUtexObject. owner is the start of the allocation that it reads, 0 if that is somebody else's.
type textureObject struct {
	handle uint64
	owner  cudart.Ptr
}

// textureRules are what a device demands of textures.
type textureRules struct{ align, pitchAlign uint64 }
