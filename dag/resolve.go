// From a kernel or map node as written to its launch: signature, types, extents, scratch. Files and Go calls both use it, so that
// both accept the same.

package dag

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/words"
)

// Launch finds the kernel and makes node.Launch, node.Work and node.Device, and the node's accesses. A kernel that wants
// scratch memory gets a hidden device buffer, which is appended to Buffers. node.Name and node.Peer must be set already.
// With problems the node is left without a launch and the draft unchanged.
func (d *Draft) Launch(library Library, node *Node, spec *LaunchSpec) ([]Access, []LaunchProblem) {
	r := newResolution(&d.Pipeline, node, spec)
	if !r.resolves(library) {
		return nil, r.problems
	}
	return r.finish(), nil
}

// Fits reports whether Launch would find no problem. It changes nothing.
func (d *Draft) Fits(library Library, node Node, spec *LaunchSpec) bool {
	return newResolution(&d.Pipeline, &node, spec).resolves(library)
}

func newResolution(p *Pipeline, node *Node, spec *LaunchSpec) *resolution {
	r := &resolution{pipeline: p, node: node, spec: spec, device: spec.Device}
	switch {
	case spec.Map != nil:
		r.what = "map"
	case spec.Call:
		r.what = fmt.Sprintf("call %q", spec.Label)
	default:
		r.what = fmt.Sprintf("kernel %q", spec.Label)
	}
	return r
}

// resolves does all of Launch that changes nothing outside of r.
func (r *resolution) resolves(library Library) bool {
	if r.spec.Module >= 0 && r.spec.Map == nil {
		library = r.pipeline.Modules[r.spec.Module].Library
	}
	if r.spec.Call {
		library = CallsOf(library)
	}
	r.devices()
	if library == nil {
		r.problem(PartKernel, fmt.Sprintf("%s: there is no library to find it in", r.what), "")
		return false
	}
	if r.find(library) && len(r.problems) == 0 && r.arguments() {
		r.describe()
	}
	return len(r.problems) == 0
}

// devices checks where the buffers live and decides where the node runs.
func (r *resolution) devices() {
	first := int32(-1)
	r.spec.buffers(func(i int, a *ArgumentSpec) {
		b := &r.pipeline.Buffers[a.Range.Buffer]
		if b.Place == Host {
			r.problemOf(i, fmt.Sprintf("%s cannot use %q, which is in host memory", r.what, b.Name), "copy it to a device buffer first")
			return
		}
		if r.pipeline.Roams(a.Range.Buffer) {
			return
		}
		if first < 0 {
			first = b.Device
		}
		switch {
		case r.node.Peer:
		case b.Device != first:
			r.problemOf(i, fmt.Sprintf("%s uses buffers of devices %d and %d (%q)", r.what, first, b.Device, b.Name),
				"peer: true lets a kernel touch the memory of another device")
			first = b.Device
		case r.device >= 0 && b.Device != r.device:
			r.problem(PartDevice, fmt.Sprintf("%s is to run on device %d, but %q is on device %d", r.what, r.device, b.Name, b.Device),
				"peer: true lets a kernel touch the memory of another device")
			r.device = -1
		}
	})
	if r.device < 0 {
		r.device = max(first, 0)
	}
}

// find gets the kernel and matches the arguments with its parameters by number.
func (r *resolution) find(library Library) bool {
	if r.spec.Map != nil {
		return r.findMap(library)
	}
	r.written = r.spec.Args
	if r.spec.Names != nil && !r.byName(library) {
		return false
	}
	elems := make([]DType, len(r.written))
	for i := range r.written {
		if a := &r.written[i]; a.IsBuffer {
			elems[i] = r.pipeline.Buffers[a.Range.Buffer].DType
		}
	}
	kernel, err := library.Kernel(r.spec.Kernel, elems)
	if err != nil {
		r.notFound(library, err)
		return false
	}
	r.take(onTiles(kernel, r.written), r.place)
	return len(r.problems) == 0
}

// onTiles returns the form of a kernel for some arguments.
func onTiles(kernel LaunchKernel, args []ArgumentSpec) LaunchKernel {
	if k, ok := kernel.(TileKernel); ok && slices.ContainsFunc(args, func(a ArgumentSpec) bool { return a.IsBuffer && a.Range.Tile() }) {
		if tiles := k.OnTiles(); tiles != nil {
			return tiles
		}
	}
	return kernel
}

// place is where the argument of a parameter was written: an index into spec.Args.
func (r *resolution) place(given int) int {
	if given < len(r.order) {
		return r.order[given]
	}
	return given
}

// byName puts arguments that are given by name into the order of the parameters.
func (r *resolution) byName(library Library) bool {
	var names []string
	if namer, ok := library.(ParameterNames); ok {
		var err error
		if names, err = namer.ParameterNames(r.spec.Kernel); err != nil {
			r.notFound(library, err)
			return false
		}
	}
	if len(names) == 0 && len(r.spec.Names) > 0 {
		r.problem(PartArgs, fmt.Sprintf("%s has no names for its parameters", r.what), "give its arguments as a list")
		return false
	}
	var missing []string
	r.order, r.written = []int{}, nil
	for _, name := range names {
		if at := slices.Index(r.spec.Names, name); at >= 0 {
			r.order, r.written = append(r.order, at), append(r.written, r.spec.Args[at])
		} else if usual, ok := usualArgument(library, r.spec.Kernel, name); ok {
			r.order, r.written = append(r.order, -1), append(r.written, ArgumentSpec{Value: usual})
		} else {
			missing = append(missing, name)
		}
	}
	for i, name := range r.spec.Names {
		if !slices.Contains(names, name) {
			hint := fmt.Sprintf("it has %s", strings.Join(names, ", "))
			if near := words.Suggest(name, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			r.problemOf(i, fmt.Sprintf("%s has no parameter %q", r.what, name), hint)
		}
	}
	if len(missing) > 0 && len(r.problems) == 0 {
		r.problem(PartArgs, fmt.Sprintf("%s is given no %s", r.what, strings.Join(missing, ", ")), "")
	}
	return len(r.problems) == 0
}

func (r *resolution) notFound(library Library, err error) {
	if errors.Is(err, ErrUnknownKernel) {
		hint := ""
		if name := words.Suggest(r.spec.Kernel, library.Names()); name != "" {
			hint = fmt.Sprintf("did you mean %q?", strings.TrimSuffix(r.spec.Label, r.spec.Kernel)+name)
		} else if r.spec.Call {
			hint = callHint(r.spec.Kernel, library.Names())
		}
		r.problem(PartKernel, "unknown "+r.what, hint)
		return
	}
	r.libraryError(err)
}

// callHint says which calls there are, or which one has the name behind its library's.
func callHint(name string, known []string) string {
	for _, full := range known {
		if strings.HasSuffix(full, "."+name) {
			return fmt.Sprintf("did you mean %q?", full)
		}
	}
	return "there are " + strings.Join(known, ", ") + "; a kernel is called by kernel:"
}

// libraryError reports what a library said, at the argument it is about where it says so.
func (r *resolution) libraryError(err error) {
	var about *ArgumentError
	if errors.As(err, &about) {
		for k := range r.params {
			if r.params[k].Name == about.Param {
				r.argProblem(k, "%s", about.Problem)
				return
			}
		}
		message, at := fmt.Sprintf("argument %s of %s %s", about.Param, r.what, about.Problem), -1
		if about.Index >= 0 && about.Index < len(r.written) && r.spec.Map == nil {
			at = r.place(about.Index)
		}
		if at < 0 { // it was left out, or the library does not say which it is
			r.problem(PartArgs, message, "")
		} else {
			r.problemOf(at, message, "")
		}
		return
	}
	r.problem(PartArgs, fmt.Sprintf("%s: %v", r.what, err), "")
}

// arguments makes the kernel's arguments from the written ones.
func (r *resolution) arguments() bool {
	r.args = make([]Arg, len(r.params))
	next := 0
	for k := range r.params {
		if r.params[k].Scratch {
			r.args[k] = scratchArg()
			continue
		}
		if r.params[k].Status {
			r.args[k] = Arg{IsBuffer: true, Mode: Write, DType: I32, Range: Range{Buffer: -1}}
			continue
		}
		if m := r.params[k].Measured; m.Of > 0 {
			r.measured(k, m)
			continue
		}
		if r.params[k].Within > 0 { // given with its structure
			continue
		}
		if of := r.params[k].LengthOf; of > 0 {
			a := &r.args[of-1]
			r.args[k] = Arg{DType: I64, Bits: uint64(int64(a.Range.Pitch) / a.DType.Size())}
			continue
		}
		if a := &r.written[next]; a.Null {
			r.null(k)
		} else if a.Struct != nil {
			for _, p := range r.structure(k, a.Struct) {
				r.pointer(k, p)
			}
		} else if a.Texture != nil {
			r.texture(k, a)
		} else if a.IsBuffer {
			r.declared[k] = a.Mode
			r.buffer(k, a)
		} else {
			r.number(k, a)
		}
		next++
	}
	r.texturesUnwritten()
	return len(r.problems) == 0
}

// pointer makes the argument of a pointer in the structure that is argument k.
func (r *resolution) pointer(k int, p pointed) {
	at := slices.IndexFunc(r.params, func(m KernelParam) bool { return m.Within == int32(k)+1 && m.Offset == p.offset })
	switch {
	case at < 0:
		r.problem(PartKernel, fmt.Sprintf("the library describes the structure %s of %s without its pointers", r.paramName(k), r.what), "")
	case p.memory.Null:
		r.null(at)
	default:
		r.declared[at] = p.memory.Mode
		r.buffer(at, p.memory)
	}
}

func (r *resolution) buffer(k int, a *ArgumentSpec) {
	param := &r.params[k]
	b := &r.pipeline.Buffers[a.Range.Buffer]
	unknown := !param.Buffer && param.DType == InvalidDType
	switch {
	case param.Struct != nil:
		r.argProblem(k, "must be a structure, got the buffer %q", b.Name)
		r.problems[len(r.problems)-1].Hint = param.Struct.hint()
		return
	case param.Texture || param.Code.Fetch.Seen:
		r.argProblem(k, "must be a texture, got the buffer %q", b.Name)
		r.problems[len(r.problems)-1].Hint = fmt.Sprintf("write {texture: %s}", b.Name)
		return
	case unknown && param.Size != 8:
		r.argProblem(k, "has %s, but a buffer's address has 8", words.Count(int64(param.Size), "byte", "bytes"))
		return
	case !param.Buffer && !unknown:
		r.argProblem(k, "must be a number (%s), got the buffer %q", param.DType, b.Name)
		return
	case param.DType != InvalidDType && param.DType != b.DType && r.spec.Module < 0:
		r.argProblem(k, "has elements of type %s, but %q has %s", param.DType, b.Name, b.DType)
		return
	case param.DType != InvalidDType:
		if problem := r.pipeline.reinterpreted(a, param.DType); problem != "" {
			r.argProblem(k, "%s", problem)
			return
		}
	}
	mode, inferred := param.Mode, false
	switch {
	case a.Mode == 0 && mode == 0 && param.Code.Decided:
		mode, inferred = inferredMode(param.Code.Mode), true
	case a.Mode == 0 && mode == 0:
		why := ""
		if param.Code.Why != "" {
			why = ", which the code does not show: " + param.Code.Why
		}
		r.argProblem(k, "must say how %q is used%s", b.Name, why)
		last := &r.problems[len(r.problems)-1]
		last.Hint = fmt.Sprintf("write {in: %[1]s}, {out: %[1]s} or {inout: %[1]s}", b.Name)
		return
	case a.Mode == 0, a.Mode == mode:
	case a.Mode == Untouched && r.spec.Module >= 0:
		mode = Untouched
	case mode == Read:
		r.argProblem(k, "is read only; %q cannot be given as %s", b.Name, a.Mode)
		return
	case r.spec.Module < 0 && mode != 0:
		// The library knows what its kernels access; accepting a weaker mode would lose a dependency.
		if a.Mode == Read {
			r.argProblem(k, "is written (%s); %q cannot be given as in", mode, b.Name)
		} else {
			r.argProblem(k, "is %s; %q cannot be given as %s", mode, b.Name, a.Mode)
		}
		return
	default:
		mode = a.Mode
	}
	if a.Range.Tile() && !param.Tile && (r.spec.Module < 0 || r.spec.Map != nil) {
		r.argProblem(k, "needs contiguous elements, but %s is a tile", r.pipeline.rangeText(a.Range))
		last := &r.problems[len(r.problems)-1]
		last.Hint = "copy the tile to a buffer of its own"
		return
	}
	if problem := contradiction(param, mode, a.Mode != 0, b.Name); problem != "" {
		r.argProblem(k, "%s", problem)
		return
	}
	size := b.DType.Size()
	switch {
	case a.Start == 0:
	case r.spec.Module < 0:
		r.argProblem(k, "must begin where its slice does; only kernels of modules take at")
		return
	case a.Start < 0 || a.Start > (a.Range.Hi-a.Range.Lo)/size:
		r.argProblem(k, "points to element %d of its slice, which has %d", a.Start, (a.Range.Hi-a.Range.Lo)/size)
		return
	}
	r.args[k] = Arg{IsBuffer: true, Inferred: inferred, Mode: mode, DType: b.DType, Range: a.Range, Within: param.Within, Offset: param.Offset,
		Start: a.Start * size}
}

// Contradiction says how the code of a kernel contradicts what argument k of its launch is used for, as the rest of a sentence about the argument; or "".
// Declared says that the file states the use.
func (p *Pipeline) Contradiction(l *Launch, k int, declared bool) string {
	if l == nil || l.Kernel == nil || k < 0 || k >= len(l.Args) {
		return ""
	}
	params, a := l.Kernel.Params(), &l.Args[k]
	b := p.buffer(a.Range.Buffer)
	if k >= len(params) || b == nil {
		return ""
	}
	param := &params[k]
	if problem := contradiction(param, a.Mode, declared, b.Name); problem != "" && a.Texture == nil {
		return problem
	}
	return a.fetchProblem(param)
}

// contradiction says how code differs from a declaration: the file's, or that of a kernel whose parameter is const.
func contradiction(param *KernelParam, mode Mode, declared bool, buffer string) string {
	switch code := &param.Code; {
	case mode == Read && code.Mode&Write != 0 && declared:
		return fmt.Sprintf("is written (%s), but the file declares {in: %s}", code.Written, buffer)
	case mode == Read && code.Mode&Write != 0:
		return fmt.Sprintf("is written (%s), although its type is a pointer to const", code.Written)
	case mode == Write && code.Decided && code.Mode&Write == 0:
		return fmt.Sprintf("is never written, but the file declares {out: %s}", buffer)
	}
	return ""
}

// inferredMode is how an argument is taken to be used where only the code tells. Code shows what may be written, not that
// all of it is, so what is written keeps its old contents too.
func inferredMode(code Mode) Mode {
	switch {
	case code&Write != 0:
		return ReadWrite
	case code == 0:
		return Untouched
	}
	return Read
}

func (r *resolution) number(k int, a *ArgumentSpec) {
	param := &r.params[k]
	t := a.DType
	switch {
	case param.Buffer:
		r.argProblem(k, "must be a buffer, got the number %v", a.Value.Plain())
		return
	case param.Struct != nil:
		r.argProblem(k, "must be a structure, got the number %v", a.Value.Plain())
		r.problems[len(r.problems)-1].Hint = param.Struct.hint()
		return
	case param.Texture:
		r.argProblem(k, "must be a texture, got the number %v", a.Value.Plain())
		r.problems[len(r.problems)-1].Hint = "write {texture: b} with a buffer b"
		return
	case t == InvalidDType && param.DType == InvalidDType:
		r.argProblem(k, "does not say the type of the number %v", a.Value.Plain())
		last := &r.problems[len(r.problems)-1]
		last.Hint = fmt.Sprintf("write {f32: %[1]s}, {i32: %[1]s} or another type", a.Value.Plain())
		return
	case t == InvalidDType:
		t = param.DType
	case param.DType != InvalidDType && t != param.DType:
		r.argProblem(k, "is of type %s, but the number is given as %s", param.DType, t)
		return
	case param.DType == InvalidDType && int64(param.Size) != t.Size():
		r.argProblem(k, "has %s, %s has %d", words.Count(int64(param.Size), "byte", "bytes"), t, t.Size())
		return
	}
	bits, err := t.Bits(a.Value)
	if err != nil {
		r.argProblem(k, "%v", err)
		return
	}
	r.args[k] = Arg{DType: t, Bits: bits}
}

// null makes argument k a null pointer.
func (r *resolution) null(k int) {
	param := &r.params[k]
	switch {
	case r.spec.Module < 0 || r.spec.Map != nil:
		r.argProblem(k, "must not be null; only kernels of modules take null pointers")
	case param.Struct != nil || param.Texture || param.Code.Fetch.Seen || !param.Buffer && (param.DType != InvalidDType || param.Size != 8):
		r.argProblem(k, "is no pointer, so it cannot be null")
	default:
		r.args[k] = Arg{DType: U64, Within: param.Within, Offset: param.Offset}
	}
}

// describe chooses the form of the kernel and asks it what the launch touches.
func (r *resolution) describe() {
	if k, ok := r.kernel.(ShapedKernel); ok {
		r.inForm(k.Form(r.args))
	}
	info, err := r.kernel.Describe(r.args)
	if err != nil {
		r.libraryError(err)
		return
	}
	r.info = info
	if problem := info.problem(r.params); problem != "" {
		r.problem(PartArgs, fmt.Sprintf("the library describes the launch of %s wrongly: %s", r.what, problem), "")
		return
	}
	for k := range r.args {
		a := &r.args[k]
		if !a.IsBuffer || r.params[k].Scratch || r.params[k].Status || k >= len(info.Extents) || info.Extents[k] < 0 {
			continue
		}
		if have := a.Range.Bytes() / a.DType.Size(); info.Extents[k] > have {
			r.argProblem(k, "touches %d elements, %s has %d", info.Extents[k], r.pipeline.rangeText(a.Range), have)
		}
	}
	if info.Fixed && (r.gridGiven() || r.spec.Block != [3]uint32{} || r.spec.HasShared) {
		r.problem(PartGrid, fmt.Sprintf("%s is only correct with its own grid, block and shared memory", r.what), "leave grid:, block: and shared: out")
	}
	r.symbolsKnown()
	r.clustered()
	if !info.HasHint && !r.gridGiven() {
		r.problem(PartGrid, fmt.Sprintf("%s needs a grid", r.what), "write grid: and the number of blocks")
	}
}

// inForm takes a form of the kernel, which may need scratch that the kernel does not.
func (r *resolution) inForm(form LaunchKernel) {
	r.kernel, r.params = form, form.Params()
	for k := len(r.args); k < len(r.params); k++ {
		r.args = append(r.args, scratchArg())
		r.origin, r.declared = append(r.origin, -1), append(r.declared, 0)
	}
}

// finish fills the node in.
func (r *resolution) finish() []Access {
	launch := &Launch{Module: r.spec.Module, Kernel: r.kernel, Args: r.args, Map: r.spec.Map,
		Grid: r.info.Grid, Block: r.info.Block, Shared: r.info.Shared, Cooperative: r.spec.Cooperative, Cluster: r.spec.Cluster}
	if launch.Map != nil {
		launch.Module = -1
	} else {
		launch.Name = r.spec.Label
	}
	given := r.gridGiven() || r.spec.Block != [3]uint32{} || r.spec.HasShared
	if r.gridGiven() {
		launch.Grid = r.spec.Grid
	}
	if r.spec.Block != [3]uint32{} {
		launch.Block = r.spec.Block
	}
	if r.spec.HasShared {
		launch.Shared = r.spec.Shared
	}
	launch.Grid, launch.Block = WholeSize(launch.Grid), WholeSize(launch.Block)
	work := r.info.Work
	if given || !r.info.HasHint {
		work.Blocks = volume(launch.Grid, math.MaxInt64)
		work.Threads = int32(volume(launch.Block, math.MaxInt32))
		work.Shared = int32(min(launch.Shared, math.MaxInt32))
	}
	r.node.Device, r.node.Work, r.node.Launch = r.device, work, launch
	r.spec.Origin, r.spec.Declared = r.origin, r.declared
	return r.accesses()
}

// volume is the product of three sizes, or the largest number allowed if it is larger.
func volume(size [3]uint32, largest uint64) int64 {
	n := uint64(1)
	for _, d := range size {
		hi, lo := bits.Mul64(n, uint64(d))
		if n = lo; hi != 0 || lo > largest {
			n = largest
		}
	}
	return int64(n)
}

func (r *resolution) gridGiven() bool { return r.spec.HasGrid || r.spec.Grid != [3]uint32{} }

// clustered checks clusters against the grid.
func (r *resolution) clustered() {
	if r.spec.Cluster == [3]uint32{} {
		return
	}
	grid := r.info.Grid
	if r.gridGiven() {
		grid = r.spec.Grid
	}
	problem := ClusterProblem(r.spec.Cluster, WholeSize(grid))
	if problem == "" && r.spec.Module < 0 {
		problem = fmt.Sprintf("cluster belongs to a kernel of a module, and %s is none", r.what)
	}
	if problem != "" {
		r.problem(PartCluster, problem, "")
	}
}

// accesses makes the scratch buffer and returns what the launch touches: of each slice only the elements that the kernel does.
func (r *resolution) accesses() []Access {
	accesses := make([]Access, 0, len(r.args))
	for k := range r.args {
		a := &r.args[k]
		if !a.IsBuffer {
			continue
		}
		touched := a.Range
		if k < len(r.info.Modes) && r.info.Modes[k] != 0 {
			a.Mode = r.info.Modes[k]
		}
		if r.params[k].Scratch {
			a.Range = r.scratch(k)
			touched = a.Range
		} else if r.params[k].Status {
			a.Range = r.status()
			touched = a.Range
		} else if k < len(r.info.Extents) && r.info.Extents[k] >= 0 {
			touched.Hi = touched.Lo + r.info.Extents[k]*a.DType.Size()
		}
		if a.Mode == Untouched { // the memory must be there, but none of its bytes is accessed
			accesses = append(accesses, Access{Range{Buffer: touched.Buffer, Lo: touched.Lo, Hi: touched.Lo}, Read})
			continue
		}
		accesses = append(accesses, Access{touched, a.Mode})
	}
	return r.symbols(accesses)
}

func scratchArg() Arg { return Arg{IsBuffer: true, Mode: Write, DType: U8, Range: Range{Buffer: -1}} }

// scratch declares the hidden buffer of parameter k.
func (r *resolution) scratch(k int) Range {
	name, size, earlier := r.node.Name+"$scratch", r.info.Scratch, 0
	for i := range r.params {
		if r.params[i].Scratch && i != k {
			// With several scratch parameters, each has its own extent, and Scratch is their sum.
			size = r.info.Extents[k]
			if i < k {
				earlier++
			}
		}
	}
	if earlier > 0 {
		name = fmt.Sprintf("%s%d", name, earlier+1)
	}
	p := r.pipeline
	p.Buffers = append(p.Buffers, Buffer{Name: name, Place: Device, DType: U8, Scratch: true, Device: r.device, Shape: []int64{size}, Bytes: size,
		Pos: r.node.Pos})
	return Range{Buffer: BufferID(len(p.Buffers) - 1), Lo: 0, Hi: size}
}
