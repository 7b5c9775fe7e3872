// What all commands share: input and output, the values of their flags, and what is known of the pipeline.

package main

import (
	"sync"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
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
	*cli.Console
	warnings   []cli.DiagnosticDocument                       // of the pipeline file
	folder     *files.Folder                                  // of the pipeline, with --confined; nil: its files may be anywhere
	inOrder    bool                                           // the nodes are tasks of a program, which keeps their order
	inGraph    bool                                           // the plan is for a program that captures its calls as a CUDA graph
	source     []byte                                         // of the pipeline, in a sweep: all points have the same; nil: it is read when it is needed
	compilers  *kernels.Compilers                             // of modules in CUDA C; nil: nothing is compiled to see what kernels do
	eachReplay time.Duration                                  // of the latest replays, or else of those that chose the plan; 0: not known
	sanitize   sanitize                                       // of the command's kernels
	links      *host.Links                                    // of CPU devices; nil: copies take what they take
	printing   sync.Mutex                                     // of what kernels print
	joined     func(*world.World)                             // called when the other ranks have been met
	spread     *planner.Spread                                // the pipeline over several devices; nil: it is planned as declared
	spreads    bool                                           // over a number of devices that was asked for
	declared   *dag.Graph                                     // the pipeline before it was spread
	earlier    *replan.Kept                                   // what a program found out about that graph; nil if nothing is known
	network    *replan.Network                                // the captured graph of a recording, if a command works on one
	memoryInfo func(int32) (int64, int64, error)              // free and all memory of a GPU; nil: none is open
	recalled   *recalled                                      // with --learn=auto: what plan, dot and check plan with
	recalledOf *dag.Graph                                     // the graph that this is of
	asked      *planner.Machine                               // the device of --backend that plan, dot and check plan for; nil: none has been opened for that
	world      *world.World                                   // the other ranks; nil: there are none
	followed   bool                                           // the device notes how far communication with other ranks is
	reread     func(rank, local int) (*dag.Graph, error)      // the pipeline of another rank
	family     func(n int, local []int) (*file.Family, error) // those of all ranks
	noCache    bool                                           // the cache cannot be used, which has been said
}

// recalled is what a command plans with.
type recalled struct {
	options planner.Options
	plan    *planner.Plan // that earlier runs found best; nil if none is known
}

// sanitize is the level of checks of kernels, and how it was chosen.
type sanitize struct {
	level  simt.Check
	chosen bool // whether the flag chose it
	any    bool // there are kernels of users, which the CPU device runs from their PTX
}
