// What all commands share: input and output, the values of their flags, and what is known of the pipeline.

package main

import (
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

// app is the state that every command has: its input and output, and the shared flags.
type app struct {
	*flags.Sets
	stdin          io.Reader
	stdout, stderr *sink
	log            *slog.Logger // decisions, for -v
	progress       *progress
	self           func() (string, error)                         // the path of this command
	warnings       []diagnosticDocument                           // of the pipeline file
	inputs         []input                                        // files that were read
	folder         *files.Folder                                  // of the pipeline, with --confined; nil: its files may be anywhere
	inOrder        bool                                           // the nodes are tasks of a program, which keeps their order
	inGraph        bool                                           // the plan is for a program that captures its calls as a CUDA graph
	source         []byte                                         // of the pipeline, in a sweep: all points have the same; nil: it is read when it is needed
	compilers      *kernels.Compilers                             // of modules in CUDA C; nil: nothing is compiled to see what kernels do
	unfinished     func() []string                                // with --debug-progress: the nodes that a hang left
	eachReplay     time.Duration                                  // of the latest replays, or else of those that chose the plan; 0: not known
	running        func() []string                                // while nodes are measured: those that have begun and not ended
	hung           func() (text, node string)                     // while plans are compared: what is known of a hang; nil before that
	sanitize       sanitize                                       // of the command's kernels
	links          *host.Links                                    // of CPU devices; nil: copies take what they take
	printing       sync.Mutex                                     // of what kernels print
	place          world.Place                                    // which rank this is; the zero value is the only one
	joined         func(*world.World)                             // called when the other ranks have been met
	spread         *planner.Spread                                // the pipeline over several devices; nil: it is planned as declared
	spreads        bool                                           // over a number of devices that was asked for
	declared       *dag.Graph                                     // the pipeline before it was spread
	earlier        *replan.Kept                                   // what a program found out about that graph; nil if nothing is known
	network        *replan.Network                                // the captured graph of a recording, if a command works on one
	memoryInfo     func(int32) (int64, int64, error)              // free and all memory of a GPU; nil: none is open
	recalled       *recalled                                      // with --learn=auto: what plan, dot and check plan with
	recalledOf     *dag.Graph                                     // the graph that this is of
	asked          *planner.Machine                               // the device of --backend that plan, dot and check plan for; nil: none has been opened for that
	world          *world.World                                   // the other ranks; nil: there are none
	followed       bool                                           // the device notes how far communication with other ranks is
	reread         func(rank, local int) (*dag.Graph, error)      // the pipeline of another rank
	family         func(n int, local []int) (*file.Family, error) // those of all ranks
	noCache        bool                                           // the cache cannot be used, which has been said
	answered       bool                                           // a JSON document has been written
	signals        atomic.Pointer[func(os.Signal)]                // what a signal is given to while another program runs
	patience       atomic.Int64                                   // how many nanoseconds the command has to end once it is interrupted
}

// recalled is what a command plans with.
type recalled struct {
	options planner.Options
	plan    *planner.Plan // that earlier runs found best; nil if none is known
}

// namedFile is a file and its role in the command: "the pipeline", "--save-plan".
type namedFile struct {
	role   string
	name   string // "" and - do not name a file
	saving bool   // a buffer's contents, which may replace the initial contents of the next run
}

// input is a file that a command reads.
type input struct {
	namedFile
	place   files.Place
	initial bool // initial contents: a buffer may be saved to where the next run starts from
}

// sanitize is the level of checks of kernels, and how it was chosen.
type sanitize struct {
	level  simt.Check
	chosen bool // whether the flag chose it
	any    bool // there are kernels of users, which the CPU device runs from their PTX
}

type diagnosticDocument struct {
	File     string `json:"file"`
	Line     int32  `json:"line,omitempty"`
	Column   int32  `json:"column,omitempty"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}
