// Kernels declared by Go calls: their arguments and options. resolve.go finds the kernel and checks the launch.

package dag

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

// Args are the arguments of a kernel, in the kernel's own order and without scratch. A Range (b.Whole(x), b.Part(x, i, k)) is used
// as the signature says; an Access (b.In(x), b.Whole(x).Unused()) says it where the signature cannot; Go's integers, floats and bools and Scalar are
// numbers; nil is a null pointer, for kernels of modules.
type Args []any

// LaunchOption is how a kernel is launched; see Grid, Block, Shared, Cooperative, Cluster, RunOn and WithPeers.
type LaunchOption func(*LaunchSpec, *Node) error

// Grid sets the number of blocks in one to three dimensions. With zero in one of them nothing is launched.
func Grid(blocks ...int) LaunchOption {
	return func(s *LaunchSpec, _ *Node) error {
		s.HasGrid = true
		err := dimensions("grid", &s.Grid, 0, blocks)
		if slices.Contains(blocks, 0) {
			s.Grid[0] = 0
		}
		return err
	}
}

// Block sets the number of threads of a block in one to three dimensions.
func Block(threads ...int) LaunchOption {
	return func(s *LaunchSpec, _ *Node) error { return dimensions("block", &s.Block, 1, threads) }
}

// Cluster makes clusters of blocks, in one to three dimensions, which run together and reach each other's shared memory. The grid must
// be a multiple of it. Devices have clusters from compute capability 9.0 on.
func Cluster(blocks ...int) LaunchOption {
	return func(s *LaunchSpec, _ *Node) error {
		if err := dimensions("cluster", &s.Cluster, 1, blocks); err != nil {
			return err
		}
		s.Cluster = WholeSize(s.Cluster)
		return nil
	}
}

func dimensions(what string, to *[3]uint32, least int, sizes []int) error {
	if len(sizes) < 1 || len(sizes) > 3 {
		return fmt.Errorf("a %s has one to three dimensions, not %d", what, len(sizes))
	}
	for i, n := range sizes {
		if n < least || n > math.MaxInt32 {
			return fmt.Errorf("%s: %d is not a size", what, n)
		}
		to[i] = uint32(n)
	}
	return nil
}

// Shared sets the bytes of dynamic shared memory of a block.
func Shared(bytes int) LaunchOption {
	return func(s *LaunchSpec, _ *Node) error {
		if bytes < 0 || bytes > math.MaxInt32 {
			return fmt.Errorf("shared: %d is not a size", bytes)
		}
		s.Shared, s.HasShared = uint32(bytes), true
		return nil
	}
}

// Cooperative makes all blocks run at once, so that the kernel can wait for its whole grid. The grid must fit on the device.
func Cooperative() LaunchOption {
	return func(s *LaunchSpec, _ *Node) error {
		s.Cooperative = true
		return nil
	}
}

// RunOn sets the device that the kernel runs on. Without it that is where its buffers are.
func RunOn(device int) LaunchOption {
	return func(s *LaunchSpec, n *Node) error {
		if device < 0 || device > math.MaxInt32 {
			return fmt.Errorf("device %d; it must not be negative", device)
		}
		s.Device, n.Fixed = int32(device), true
		return nil
	}
}

// WithPeers lets the kernel touch buffers of other devices.
func WithPeers() LaunchOption {
	return func(_ *LaunchSpec, n *Node) error {
		n.Peer = true
		return nil
	}
}

// Values are the members of a structure in a Go call, in their order: numbers, and Values for members that are structures, vectors or arrays.
type Values []any

// TextureArgument is an argument in a Go call that a kernel reads through a texture object.
type TextureArgument struct {
	Range   Range
	Texture Texture
}

// Through is the range as an argument that a kernel reads through a texture object.
func (r Range) Through(t Texture) TextureArgument { return TextureArgument{r, t} }

// PlacedArgument is an argument in a Go call whose pointer points into its slice.
type PlacedArgument struct {
	Access  Access
	Element int64 // of the slice
}

// At is the access as an argument, for kernels of modules, whose pointer points to an element of the slice: negative indexes from there are in it.
func (a Access) At(element int64) PlacedArgument { return PlacedArgument{a, element} }

// Scalar is a number of a stated type. Numbers without one get the type that the kernel's signature says.
type Scalar struct {
	DType DType
	Value any // any integer or float, or a bool
}

// Kernel declares a launch of a library's kernel, or as MODULE.KERNEL of one of a module.
func (b *Builder) Kernel(name, kernel string, args Args, options ...LaunchOption) NodeID {
	node := Node{Name: name, Kind: Kernel}
	spec := &LaunchSpec{Label: kernel, Kernel: kernel, Module: -1, Device: -1}
	ok := true
	for i, arg := range args {
		a, err := b.argument(arg)
		if err != nil {
			b.wrong("node", name, fmt.Sprintf("argument %d of kernel %q: %v", i+1, kernel, err), "")
			ok = false
		}
		spec.Args = append(spec.Args, a)
	}
	for _, option := range options {
		ok = b.option(name, option, spec, &node) && ok
	}
	if module, kernel, dotted := strings.Cut(kernel, "."); dotted {
		spec.Kernel = kernel
		spec.Module = int32(slices.IndexFunc(b.pipeline.Modules, func(m Module) bool { return m.Name == module }))
		if spec.Module < 0 {
			var names []string
			for _, m := range b.pipeline.Modules {
				names = append(names, m.Name)
			}
			b.wrong("node", name, fmt.Sprintf("unknown module %q", module), words.DidYouMean(module, names))
			ok = false
		}
	}
	if !ok {
		return b.Node(node)
	}
	return b.launch(node, spec)
}

// Map declares an elementwise computation such as "y = a*x + b". With says what its names stand for: a Range or a number.
// Names that are not in it are those of buffers.
func (b *Builder) Map(name, text string, with map[string]any, options ...LaunchOption) NodeID {
	node := Node{Name: name, Kind: Map}
	used := map[string]bool{}
	ok := true
	lookup := func(symbol string, _ int) (ArgumentSpec, bool) {
		used[symbol] = true
		if arg, given := with[symbol]; given {
			a, err := b.argument(arg)
			if err != nil {
				b.wrong("node", name, fmt.Sprintf("map: %s: %v", symbol, err), "")
			}
			return a, err == nil
		}
		id := b.bufferNamed(symbol)
		if id < 0 {
			names := make([]string, 0, len(with)+len(b.pipeline.Buffers))
			for known := range with {
				names = append(names, known)
			}
			slices.Sort(names)
			for i := range b.pipeline.Buffers {
				names = append(names, b.pipeline.Buffers[i].Name)
			}
			b.wrong("node", name, fmt.Sprintf("map: unknown name %q", symbol), words.DidYouMean(symbol, names))
			return ArgumentSpec{}, false
		}
		return ArgumentSpec{IsBuffer: true, Range: b.Whole(id)}, true
	}
	spec, err := MapLaunch(text, builderScope{b}, lookup)
	if err != nil {
		b.wrong("node", name, "map: "+err.Error(), "")
	}
	if spec == nil {
		return b.Node(node)
	}
	var unused []string
	for symbol := range with {
		if !used[symbol] {
			unused = append(unused, symbol)
		}
	}
	slices.SortFunc(unused, cmp.Compare[string])
	for _, symbol := range unused {
		b.wrong("node", name, fmt.Sprintf("map: %q does not appear in %q", symbol, text), "")
		ok = false
	}
	for _, option := range options {
		ok = b.option(name, option, spec, &node) && ok
	}
	if !ok {
		return b.Node(node)
	}
	return b.launch(node, spec)
}

func (b *Builder) option(name string, option LaunchOption, spec *LaunchSpec, node *Node) bool {
	err := errors.New("a launch option is nil")
	if option != nil {
		err = option(spec, node)
	}
	if err != nil {
		b.wrong("node", name, err.Error(), "")
	}
	return err == nil
}

// argument turns a Go value into an argument.
func (b *Builder) argument(arg any) (ArgumentSpec, error) {
	switch a := arg.(type) {
	case nil:
		return ArgumentSpec{Null: true}, nil
	case Range:
		return ArgumentSpec{IsBuffer: true, Range: a}, b.pipeline.rangeProblem(a)
	case Access:
		if a.Mode < Read || a.Mode > Untouched {
			return ArgumentSpec{}, fmt.Errorf("an access must be in, out, inout or unused")
		}
		return ArgumentSpec{IsBuffer: true, Range: a.Range, Mode: a.Mode}, b.pipeline.rangeProblem(a.Range)
	case PlacedArgument:
		placed, err := b.argument(a.Access)
		placed.Start = a.Element
		return placed, err
	case TextureArgument:
		return ArgumentSpec{IsBuffer: true, Range: a.Range, Mode: Read, Texture: &a.Texture}, b.pipeline.rangeProblem(a.Range)
	case BufferID:
		return ArgumentSpec{}, errors.New("the id of a buffer is not an argument; write Whole, In, Out or InOut of it")
	case NodeID:
		return ArgumentSpec{}, errors.New("the id of a node is not an argument")
	case Scalar:
		v, ok := numberOf(a.Value)
		if !ok || !a.DType.isNumber() {
			return ArgumentSpec{}, fmt.Errorf("a %T is not a number of a known type", a.Value)
		}
		return ArgumentSpec{Value: v, DType: a.DType}, nil
	}
	if values, ok := arg.(Values); ok {
		v, err := b.structuresOf(values, 0)
		return ArgumentSpec{Struct: &v}, err
	}
	v, ok := numberOf(arg)
	if !ok {
		return ArgumentSpec{}, fmt.Errorf("a %T is neither a Range or Access nor a number", arg)
	}
	return ArgumentSpec{Value: v}, nil
}

// structuresOf turns Go values into a structure as written.
func (b *Builder) structuresOf(values Values, depth int) (StructureSpec, error) {
	v := StructureSpec{Whole: true}
	for _, value := range values {
		switch value := value.(type) {
		case Values:
			if depth == MostNested {
				return v, fmt.Errorf("structures are nested more than %d deep", MostNested)
			}
			inner, err := b.structuresOf(value, depth+1)
			if err != nil {
				return v, err
			}
			v.List = append(v.List, inner)
		case Scalar:
			n, ok := numberOf(value.Value)
			if !ok || !value.DType.isNumber() {
				return v, fmt.Errorf("a %T is not a number of a known type", value.Value)
			}
			v.List = append(v.List, StructureSpec{Number: n, DType: value.DType})
		case nil, Range, Access:
			memory, err := b.argument(value)
			if err != nil {
				return v, err
			}
			v.List = append(v.List, StructureSpec{Memory: &memory})
		default:
			n, ok := numberOf(value)
			if !ok {
				return v, fmt.Errorf("a %T is neither a Range or Access nor a number nor Values", value)
			}
			v.List = append(v.List, StructureSpec{Number: n})
		}
	}
	return v, nil
}

func (b *Builder) launch(node Node, spec *LaunchSpec) NodeID {
	accesses, problems := b.pipeline.Launch(b.library, &node, spec)
	for _, p := range problems {
		b.wrong("node", node.Name, p.Message, p.Hint)
	}
	return b.Node(node, accesses...)
}

// bufferNamed returns the id of the buffer of that name, or -1.
func (b *Builder) bufferNamed(name string) BufferID {
	if b.byName == nil {
		b.byName = map[string]BufferID{}
	}
	for ; b.named < len(b.pipeline.Buffers); b.named++ {
		buffer := &b.pipeline.Buffers[b.named]
		if _, taken := b.byName[buffer.Name]; !taken && !buffer.Scratch {
			b.byName[buffer.Name] = BufferID(b.named)
		}
	}
	if id, ok := b.byName[name]; ok {
		return id
	}
	return -1
}

// builderScope gives the shapes of buffers to len in map expressions.
type builderScope struct{ *Builder }

// Variable finds nothing: numbers come through with.
func (builderScope) Variable(string) (expr.Value, bool) { return expr.Value{}, false }

// Shape is that of a buffer.
func (s builderScope) Shape(buffer string) ([]int64, bool) {
	id := s.bufferNamed(buffer)
	if id < 0 {
		return nil, false
	}
	return s.pipeline.Buffers[id].Shape, true
}

// Call declares a call of a function of a vendor's library, such as "cublas.gemm". What it reads and writes follows from its arguments.
func (b *Builder) Call(name, call string, args CallArgs, options ...LaunchOption) NodeID {
	node := Node{Name: name, Kind: Call}
	spec := &LaunchSpec{Label: call, Kernel: call, Module: -1, Device: -1, Call: true, Names: []string{}}
	for given := range args {
		spec.Names = append(spec.Names, given)
	}
	slices.Sort(spec.Names)
	ok := true
	for _, given := range spec.Names {
		value := args[given]
		if text, isWord := value.(string); isWord {
			list := WordsOf(b.library, call, given)
			at := slices.Index(list, text)
			if at < 0 {
				problem := "is a number or a buffer, not a word"
				if list != nil {
					problem = fmt.Sprintf("must be %s, not %s", words.List(list, "or"), text)
				}
				b.wrong("node", name, fmt.Sprintf("argument %s of call %q %s", given, call, problem), "")
				ok = false
			}
			value = at
		}
		a, err := b.argument(value)
		if err != nil {
			b.wrong("node", name, fmt.Sprintf("argument %s of call %q: %v", given, call, err), "")
			ok = false
		}
		spec.Args = append(spec.Args, a)
	}
	for _, option := range options {
		ok = b.option(name, option, spec, &node) && ok
	}
	if ok && (spec.HasGrid || spec.Block != [3]uint32{} || spec.HasShared || spec.Cooperative || spec.Cluster != [3]uint32{} || node.Peer) {
		b.wrong("node", name, fmt.Sprintf("call %q takes no option but RunOn", call), "")
		ok = false
	}
	if !ok {
		return b.Node(node)
	}
	return b.launch(node, spec)
}
