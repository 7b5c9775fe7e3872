// What earlier runs left in the cache: what they learned, what loops did, and the figures of machines.

package runtime

import (
	"context"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/learn"
)

// Recalled is what earlier runs learned about a graph.
type Recalled = learn.Recalled

// Recall looks up what was learned. o are the options that the graph will be learned with, o.Replays being how many replays there will be,
// and memory how its buffers will be allocated. A nil folder holds nothing. Plans that come from the cache have been proved.
func Recall(g *dag.Graph, platform cudart.Platform, folder *cache.Folder, o LearnOptions, memory MemoryMode) *Recalled {
	return learn.Recall(g, platform, folder, o, memory)
}

// KnownPasses returns a profile with the passes that the loops of a graph made in earlier runs, or nil if none are known. The
// warnings say which files of the cache were ignored, and why.
func KnownPasses(g *dag.Graph, folder *cache.Folder) (known *planner.Profile, warnings []string) {
	return learn.KnownPasses(g, folder)
}

// KeepPasses keeps what the loops of a graph did in the last replay, for KnownPasses.
func KeepPasses(ctx context.Context, g *dag.Graph, folder *cache.Folder, loops []Loop) error {
	return learn.KeepPasses(ctx, g, folder, loops)
}

// KeepMachine keeps the machine that MeasureMachine returned for a platform, so that KeptMachine finds it. A nil folder keeps nothing.
func KeepMachine(ctx context.Context, platform cudart.Platform, folder *cache.Folder, m *planner.Machine) error {
	return learn.KeepMachine(ctx, platform, folder, m)
}

// KeptMachine returns the machine kept for a platform's first device, nil if there is none. The error says why a kept one is ignored.
func KeptMachine(platform cudart.Platform, folder *cache.Folder) (*planner.Machine, error) {
	return learn.KeptMachine(platform, folder)
}

// Fingerprints returns one for each node: of its kernel's code and how that is compiled, its scalar arguments, grid, block and shared
// memory, and the bytes of its buffers; of a loop or branch, of the nodes in it. Two nodes of one fingerprint take equally long on one
// device. Names and the places of buffers do not count, so that an edit of a pipeline leaves the fingerprints of all other nodes as they are.
func Fingerprints(g *dag.Graph) []string { return learn.Fingerprints(g) }

// DeviceKey identifies the devices of a platform, for people and for a cache: durations that were measured on one are used on no other.
func DeviceKey(platform cudart.Platform) string { return learn.DeviceKey(platform) }
