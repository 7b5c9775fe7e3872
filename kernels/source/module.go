// An open file of kernels, and the kernels that pipelines asked it for.

package source

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/internal/ptx/access"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Module is a user's file of kernels. It implements [dag.Library].
type Module struct {
	declaredKernels
	module  *launch.Module
	globals []string
	symbols []dag.Symbol
	units   units

	launches map[string][]Launched // of CUDA C, by the kernel's name without namespaces

	text      *ptx.Module // of PTX
	compilers *Compilers

	mu    sync.Mutex
	known map[string]*userKernel // by the names that were asked for
	asked []string               // variables that are buffers
	sizes map[string]int64       // of variables, by compiled code
}

// Module is the code itself.
func (m *Module) Module() *launch.Module { return m.module }

// WritableGlobals lists the variables that kernels may write. All launches share them, so launches that use them depend on each
// other even if their buffers are disjoint.
func (m *Module) WritableGlobals() []string { return m.globals }

// Names lists the kernels, sorted. Templates are listed without arguments.
func (m *Module) Names() []string {
	var names []string
	for i := range m.found {
		if k := &m.found[i]; k.compiled != nil {
			names = append(names, k.compiled.full())
		} else {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Kernel finds a kernel by name. The element types are ignored. The name may have namespaces, and a template's arguments as in
// scan<256, float>; it may be a symbol of compiled code too.
func (m *Module) Kernel(name string, _ []dag.DType) (dag.LaunchKernel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.find(name)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// ParameterNames implements [dag.ParameterNames]. PTX and cubins have no names to go by.
func (m *Module) ParameterNames(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.find(name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range k.own() {
		if p.Name != "" {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// Map implements [dag.Library]: a user's module makes no kernels from expressions.
func (m *Module) Map(*dag.MapSpec) (dag.LaunchKernel, error) {
	return nil, errors.New("a user's module makes no kernels from expressions")
}

// userKernel is a kernel of a user's module.
type userKernel struct {
	owner        *Module
	declared     *sourceKernel
	name         string // as it was asked for
	entry        string
	params       []dag.KernelParam
	floatAtomics string
	uses         []dag.SymbolUse // variables that its text names; nil: not looked up
	err          error           // why it cannot be launched, as compiled code shows

	code     *ptx.Module // what its accesses are known from; nil: they are not
	id       ptx.FunctionID
	left     map[string]leaving        // by launch
	covered  map[string]access.Covered // by launch and argument
	covering sync.Mutex                // held for covered
}

// Entry is the kernel's symbol. CUDA C that is not extern "C" gets its symbols only when it is compiled: there it is a C++
// expression, which compiled code has a symbol for.
func (k *userKernel) Entry() string { return k.entry }

// Expression is how C++ names the kernel where it has no symbol before it is compiled, otherwise "".
func (k *userKernel) Expression() string {
	if k.declared.symbol != "" {
		return ""
	}
	return k.entry
}

// Params returns the parameters as the source declares them: const T* is read, T* is read and written unless the user declares less. For cubins
// only the sizes are known, and for PTX what the code shows.
func (k *userKernel) Params() []dag.KernelParam { return k.params }

// own are the parameters that the kernel has in its source: those that are not pointers in structures.
func (k *userKernel) own() []dag.KernelParam {
	n := len(k.params)
	for n > 0 && k.params[n-1].Within > 0 {
		n--
	}
	return k.params[:n]
}

// FloatAtomics implements [dag.FloatAtomics]. It is known only for PTX.
func (k *userKernel) FloatAtomics() string { return k.floatAtomics }

// Capability implements [dag.Targeted]. It is known only for PTX.
func (k *userKernel) Capability() int {
	if k.owner.module.Kind != launch.PTX || k.owner.text == nil {
		return 0
	}
	digits, _ := strings.CutPrefix(k.owner.text.Target, "sm_")
	number, _ := strconv.Atoi(strings.TrimRight(digits, "af"))
	return number
}

// Module is the code that the kernel is in.
func (k *userKernel) Module() *launch.Module { return k.owner.module }

// Describe assumes that each buffer's whole slice is accessed. The user must give grid and block.
func (k *userKernel) Describe(args []dag.Arg) (dag.LaunchInfo, error) {
	if len(args) != len(k.params) {
		return dag.LaunchInfo{}, fmt.Errorf("takes %d arguments, got %d", len(k.params), len(args))
	}
	info := dag.LaunchInfo{Extents: make([]int64, len(args))}
	for i, a := range args {
		if a.IsBuffer && a.Mode != dag.Untouched {
			info.Extents[i] = -1
			info.Work.Bytes += a.Range.Bytes()
			if a.Mode == dag.ReadWrite {
				info.Work.Bytes += a.Range.Bytes()
			}
		}
	}
	return info, nil
}

// leaving is the answer of Leaves.
type leaving struct {
	arg     int
	problem string
}

// read takes the code of the kernel.
func (k *userKernel) read(text *ptx.Module, symbol string) {
	for _, id := range text.Entries() {
		if text.Functions[id].Name == symbol && len(text.Functions[id].Params) == len(k.own()) {
			k.code, k.id, k.left, k.covered = text, id, map[string]leaving{}, map[string]access.Covered{}
		}
	}
}

// mostLaunches is how many different launches of a kernel are followed; large pipelines repeat few.
const mostLaunches = 256

// Leaves implements [dag.SliceChecker]: the threads at the corners of the launch are followed as far as their numbers are known.
func (k *userKernel) Leaves(l *dag.Launch) (arg int, problem string) {
	if k.code == nil || len(l.Args) != len(k.params) {
		return -1, ""
	}
	known, bytes, key := k.known(l)
	if seen, ok := k.left[string(key)]; ok {
		return seen.arg, seen.problem
	}
	if len(k.left) >= mostLaunches {
		return -1, ""
	}
	answer := leaving{arg: -1}
	if w, ok := access.Escape(k.code, k.id, known, bytes); ok {
		does := "reads"
		if w.Write {
			does = "writes"
		}
		how := "is exceeded"
		if l.Args[w.Param].Mode == dag.Untouched {
			how = "is used"
		}
		answer = leaving{w.Param, fmt.Sprintf("%s: thread %s of block %s %s bytes %d to %d (%s)", how, place3(w.Thread), place3(w.Block), does, w.Lo, w.Hi-1, w.At)}
	}
	k.left[string(key)] = answer
	return answer.arg, answer.problem
}

// known is what is known of a launch: its numbers, and the sizes of what its pointers point to. Equal launches have equal keys.
func (k *userKernel) known(l *dag.Launch) (access.Launch, map[int]int64, []byte) {
	known := access.Launch{Grid: l.Grid, Block: l.Block, Scalars: map[int]uint64{}, Starts: map[int]int64{}}
	bytes := map[int]int64{}
	key := fmt.Append(nil, l.Grid, l.Block)
	for i := range l.Args {
		a := &l.Args[i]
		if a.Within > 0 { // what depends on pointers in structures is not followed
			continue
		}
		if a.IsBuffer {
			bytes[i] = a.Range.Hi - a.Range.Lo
			if a.Mode == dag.Untouched {
				bytes[i] = 0
			}
			if a.Start > 0 {
				known.Starts[i] = a.Start
			}
			key = fmt.Append(key, " ", bytes[i], a.Mode == dag.Untouched, a.Start)
			continue
		}
		if a.Struct != "" { // what depends on its members is not followed
			continue
		}
		known.Scalars[i] = a.Bits
		key = fmt.Append(key, " ", a.Bits)
	}
	return known, bytes, key
}

// mostFollowed is of how many different launches every thread is followed.
const mostFollowed = 16

// Writes implements [dag.OutputChecker].
func (k *userKernel) Writes(l *dag.Launch, arg int) (whole bool, problem string) {
	if k.code == nil || len(l.Args) != len(k.params) || arg >= len(l.Args) || l.Args[arg].Within > 0 {
		return false, ""
	}
	a := &l.Args[arg]
	alone, tile := true, access.Tile{}
	if a.Range.Tile() {
		_, tile.Row = a.Range.Box()
		tile.Pitch = int64(a.Range.Pitch)
	}
	for i := range l.Args {
		alone = alone && (i == arg || !l.Args[i].IsBuffer || !l.Args[i].Range.Overlaps(a.Range))
	}
	known, bytes, key := k.known(l)
	key = fmt.Append(key, " of ", arg, alone, tile)
	k.covering.Lock()
	defer k.covering.Unlock()
	seen, ok := k.covered[string(key)]
	if !ok {
		if len(k.covered) >= mostFollowed {
			return false, ""
		}
		seen = access.Covers(k.code, k.id, known, bytes, arg, tile, alone)
		k.covered[string(key)] = seen
	}
	if seen.Hi > 0 {
		problem = fmt.Sprintf("is declared out, but no thread writes bytes %d to %d of its slice: declare it inout, or as out only what is written", seen.Lo,
			seen.Hi-1)
	}
	return seen.Whole, problem
}

func place3(at [3]uint32) string { return fmt.Sprintf("(%d, %d, %d)", at[0], at[1], at[2]) }

// find returns the kernel that a name stands for. In CUDA C a template's arguments make a kernel of it.
func (m *Module) find(name string) (*userKernel, error) {
	if k := m.known[name]; k != nil {
		return k, nil
	}
	declared, w, err := m.match(name)
	if err != nil {
		return nil, err
	}
	return m.take(name, declared, w)
}

// take makes a launchable kernel of one that was found.
func (m *Module) take(name string, k *sourceKernel, w written) (*userKernel, error) {
	if k.err != nil {
		return nil, fmt.Errorf("%s: kernel %q %w", m.module.Path, k.name, k.err)
	}
	made := &userKernel{owner: m, name: name, entry: k.symbol, params: k.params, floatAtomics: k.floatAtomics, declared: k}
	if k.compiled == nil {
		means, err := k.bind(w.args)
		if err != nil {
			return nil, err
		}
		params, err := k.parameters(means, m.types, m.structs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.module.Path, err)
		}
		pointers, err := members(params)
		if err != nil {
			return nil, fmt.Errorf("%s: kernel %q: %w", m.module.Path, k.name, err)
		}
		if !k.defined {
			return nil, fmt.Errorf("kernel %q is only declared (%s:%d): name the file that defines it", k.name, k.file, k.line)
		}
		made.params = append(params, pointers...)
		if k.symbol == "" {
			made.entry = m.expression(k, w.args)
		}
	}
	if m.text != nil {
		made.read(m.text, k.symbol)
	}
	m.known[name] = made
	return made, nil
}
