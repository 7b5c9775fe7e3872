// How a program runs.

package runtime

import (
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// Options says how a program runs. The zero value replays as streams, one replay at a time.
type Options = engine.Options

// Mode says how a replay reaches the device.
type Mode = engine.Mode

const (
	Streams  = engine.Streams  // commands are handed to their streams at each replay
	Captured = engine.Captured // one graph, captured from the streams
	Built    = engine.Built    // one graph, built node by node; single nodes can be updated
	Auto     = engine.Auto     // whichever of Streams and Captured replays faster, measured briefly
)

// MemoryMode says how device buffers get their bytes.
type MemoryMode = engine.MemoryMode

const (
	// Arena puts all buffers of a device into one allocation, as planned. Buffers that are never alive together share bytes.
	Arena = engine.Arena
	// Separate gives every buffer its own allocation, so that memory checkers see where each buffer ends.
	Separate = engine.Separate
)

// Overlap says whether launches may begin before the launches before them have ended, to wait in their own code.
type Overlap = engine.Overlap

const (
	OverlapOff  = engine.OverlapOff
	OverlapOn   = engine.OverlapOn   // wherever that is proved to keep the order
	OverlapAuto = engine.OverlapAuto // where Learn measures that it is faster
)

// CanOverlap returns nil if launches on all devices of a platform can overlap, and otherwise why not.
func CanOverlap(platform cudart.Platform) error { return engine.CanOverlap(platform) }

// Recorder records when kernels, copies and sets ran, and on which streams. *cupti.Library implements it.
type Recorder = engine.Recorder

// HostFunction is a function of the program that a node runs in every replay, those of warm-up and measurements included. It runs on a
// goroutine of its own while what comes after the node waits. It must not use the [Program] or wait for another host function, because
// host functions may run one after the other.
//
// The context is that of the call that started the replay, and ends with the program too. If the function returns an error or panics, the
// nodes left in that replay still run, no later replay starts, and the error of the program is a [*HostError].
type HostFunction = engine.HostFunction

// HostCall is one run of a host function. Its memory is valid until the function returns.
type HostCall = engine.HostCall

// HostError is returned if a host function failed. The program can then only be closed.
type HostError = engine.HostError

// StageNode is the prefix of the stages that RunAlone reports to Options.Progress. The name of the running node follows.
const StageNode = engine.StageNode

// StageLearn is the stage of Options.Progress during the replays of learning.
const StageLearn = engine.StageLearn
