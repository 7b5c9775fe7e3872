// Package session is what the commands on a pipeline share: its file, its devices, its ranks and its plan.
package session

import (
	"sync"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner/plan"
)

// Session is a command that works on one pipeline: what its file says, and what it is planned for.
type Session struct {
	*cli.Console

	Warnings   []cli.DiagnosticDocument                       // of the pipeline file
	folder     *files.Folder                                  // of the pipeline, with --confined; nil: its files may be anywhere
	inOrder    bool                                           // the nodes are tasks of a program, which keeps their order
	InGraph    bool                                           // the plan is for a program that captures its calls as a CUDA graph
	Source     []byte                                         // of the pipeline, in a sweep: all points have the same; nil: it is read when it is needed
	Compilers  *kernels.Compilers                             // of modules in CUDA C; nil: nothing is compiled to see what kernels do
	Sanitize   Sanitize                                       // of the command's kernels
	printing   sync.Mutex                                     // of what kernels print
	Spread     *plan.Spread                                   // the pipeline over several devices; nil: it is planned as declared
	spreads    bool                                           // over a number of devices that was asked for
	Declared   *dag.Graph                                     // the pipeline before it was spread
	Captured   *replan.CapturedGraph                          // the captured graph of a recording, if a command works on one
	MemoryInfo func(int32) (int64, int64, error)              // free and all memory of a GPU; nil: none is open
	Reread     func(rank, local int) (*dag.Graph, error)      // the pipeline of another rank
	family     func(n int, local []int) (*file.Family, error) // those of all ranks
	NoCache    bool                                           // the cache cannot be used, which has been said
}

// Ranks is a command whose pipeline several ranks may run together.
type Ranks struct {
	*Session

	joined   func(*world.World) // called when the other ranks have been met
	World    *world.World       // the other ranks; nil: there are none
	Followed bool               // the device notes how far communication with other ranks is
}

// Sanitize is the level of checks of kernels, and how it was chosen.
type Sanitize struct {
	level  simt.Check
	Chosen bool // whether the flag chose it
	Any    bool // there are kernels of users, which the CPU device runs from their PTX
}
