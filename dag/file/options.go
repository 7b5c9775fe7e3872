// What a caller says about reading a pipeline file.

package file

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// Override is a param given on the command line: -p n=4096.
type Override struct {
	Name  string
	Value string // an expression without variables
}

// Options says how a file is read.
type Options struct {
	Name    string      // of the file, for messages; also the pipeline's name where the file gives none
	Dir     string      // what relative file names start from; becomes Pipeline.Dir
	Params  []Override  // the last of a name counts
	Load    []Binding   // replace a host buffer's init
	Save    []Binding   // replace a host buffer's save
	Library dag.Library // the kernels that come with dagrun; nil: none
	// OpenModule loads a user's kernels as the file declares them; Library and Pos are not set. nil: a file with modules is refused.
	OpenModule func(m dag.Module) (dag.Library, error)
	MaxEdges   int // becomes Pipeline.MaxEdges
	// MaxRepeated is how many nodes and buffers foreach may make; 0 or more than MaxNodes: MaxNodes.
	MaxRepeated int64
	// ReadFile reads a file that the pipeline file uses, by its path from the working directory. nil: a file with use: is refused.
	ReadFile func(name string) ([]byte, error)
	// Outside reports whether such a file is outside of the pipeline's folder: mistakes in it are named with their places, but nothing of it is
	// quoted. nil: all files are quoted.
	Outside func(name string) bool
	// Rank is the rank that the pipeline is for, of Ranks that run the file; LocalRank counts those of one machine. 0 ranks is one.
	Rank, Ranks, LocalRank int
	// LocalRanks are those of all ranks, by rank, for ParseFamily. nil: all ranks are on one machine.
	LocalRanks []int
	// Devices, if not 0, takes the place of the file's devices: how many the work may be spread over, or AllDevices.
	Devices int
}

// Binding binds a file to a host buffer, in place of the init or save that the pipeline file declares: --load x=input.npy.
type Binding struct {
	Buffer string
	File   string // .npy or .bin; from the working directory, not from Options.Dir
}

func (o *Options) mostRepeated() int64 {
	if o.MaxRepeated <= 0 || o.MaxRepeated > dag.MaxNodes {
		return dag.MaxNodes
	}
	return o.MaxRepeated
}

// problem says what is wrong with the ranks of the options, or nil.
func (o *Options) problem() error {
	if err := dag.CheckRank(o.Rank, o.LocalRank, o.Ranks); err != nil {
		return err
	}
	if ranks := max(o.Ranks, 1); o.LocalRanks != nil && len(o.LocalRanks) != ranks {
		return fmt.Errorf("there are %d local ranks for %d ranks", len(o.LocalRanks), ranks)
	}
	for rank, local := range o.LocalRanks {
		if err := dag.CheckRank(rank, local, o.Ranks); err != nil {
			return err
		}
	}
	return nil
}

// Version is the version of the file format that this package reads and writes.
const Version = 1
