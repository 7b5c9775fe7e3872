// How a program runs.

package runtime

import (
	"context"
	"log/slog"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// Options says how a program runs. The zero value replays as streams, one replay at a time.
type Options struct {
	Mode     Mode
	Memory   MemoryMode
	Inflight int // replays that may overlap, each with its own buffers; 0: 1
	Threads  int // submit streams from that many threads; 0: 1. The plan needs one event per record (planner.Options.SingleUseEvents)
	// Bind makes host buffers, by name, use the caller's memory without a copy. The memory is pinned while the program lives and keeps its
	// contents, even if the buffer has an init. Not possible with Inflight above 1.
	Bind map[string][]byte
	// Functions are the host functions of the program, by the names that nodes have for them.
	Functions map[string]HostFunction
	Origin    cudart.Stream // a stream of the caller that replays are put into; nil: the program's own
	Unsafe    bool          // run a plan although it leaves hazards unenforced (--allow-races); all else is still verified
	Recorder  Recorder      // CUPTI for Trace (cupti.Prepare, before the driver is opened); nil: events
	Logger    *slog.Logger  // decisions; nil: none
	Progress  func(stage string, done, total int)
	// Overlap lets launches begin before the launch before them has ended, where their own code then waits for that. With OverlapAuto they do not
	// until Learn has measured that it is faster.
	Overlap Overlap
	// Confined refuses files of buffers that are not below the graph's Dir, or that links lead out of it.
	Confined bool
	// HostReserve is host memory, in bytes, that the caller needs in addition. New returns an error if the host does not have enough for both.
	HostReserve int64
	// DebugProgress makes every node write a word when it has finished, so that Unfinished works after a hang. It costs a memset per node.
	DebugProgress bool
	// FollowCommunication makes the device write a word before and after each communication with other ranks, so that Communicating works
	// while the device hangs. It costs two memsets for each communication.
	FollowCommunication bool
	// Agree returns what rank 0 passed to it, on all ranks, so that all do the same number of replays where times decide. nil: there is one
	// rank.
	Agree func(ctx context.Context, own string) (string, error)
	// Exchange returns what all ranks passed to it, by rank. Learn needs it where there are several ranks, all of which must learn with the same
	// options.
	Exchange func(ctx context.Context, own string) ([]string, error)
}

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
