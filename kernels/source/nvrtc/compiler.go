// The compiler: opening libnvrtc at run time, and compiling.

// Package nvrtc compiles CUDA C for the GPU of this machine with NVIDIA's run-time compiler (libnvrtc), opened without cgo where it is
// installed. Results are cached on disk, so that a source is compiled once per device and compiler.
package nvrtc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/internal/cache"
)

// ErrNoCompiler is what Open returns if there is no usable libnvrtc.
var ErrNoCompiler = errors.New("no CUDA C compiler (libnvrtc)")

// A function is a function of libnvrtc; CUDA 11.2 has all of them.
type function uint8

const (
	nvrtcVersion function = iota
	nvrtcGetErrorString
	nvrtcGetNumSupportedArchs
	nvrtcGetSupportedArchs
	nvrtcCreateProgram
	nvrtcCompileProgram
	nvrtcDestroyProgram
	nvrtcGetPTXSize
	nvrtcGetPTX
	nvrtcGetCUBINSize
	nvrtcGetCUBIN
	nvrtcGetProgramLogSize
	nvrtcGetProgramLog
	nvrtcAddNameExpression
	nvrtcGetLoweredName
	functionCount
)

var names = [functionCount]string{"nvrtcVersion", "nvrtcGetErrorString", "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs",
	"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcDestroyProgram", "nvrtcGetPTXSize", "nvrtcGetPTX", "nvrtcGetCUBINSize",
	"nvrtcGetCUBIN", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "nvrtcAddNameExpression", "nvrtcGetLoweredName"}

// codeCompilation is NVRTC_ERROR_COMPILATION: the source has errors, which the log lists.
const codeCompilation = 6

// Compiler is a libnvrtc.
type Compiler struct {
	address       [functionCount]uintptr
	once          sync.Once
	load          func() (dl.Resolver, error) // of a library that is opened only to compile; else nil
	loadErr       error
	version       [2]int
	architectures []int // ascending: 70 is compute_70
	include       []string
	cache         *cache.Cache
}

// Options say where things are. The zero value suits most callers.
type Options struct {
	// Cache is the folder of compiled code; "" is dagrun/nvrtc in os.UserCacheDir, "off" disables the cache.
	Cache string
	// Toolkit is the CUDA toolkit whose headers sources may include; "" is CUDA_HOME, CUDA_PATH or
	// /usr/local/cuda, and where there is none, what conda or pip has installed.
	Toolkit string
}

// Open finds libnvrtc, first with the dynamic loader's search path, then in the toolkit or among the packages of conda and pip. A library that
// the cache knows is opened when the first source is compiled.
func Open(options Options) (*Compiler, error) {
	where := find(options.Toolkit, "/usr/local/cuda", os.Getenv)
	return choose(where.candidates(), where.include, cache.Open("nvrtc", options.Cache), opener{fileAt, func(names ...string) (dl.Resolver, error) {
		lib, err := dl.Open(names...)
		if err != nil {
			return nil, err
		}
		return lib.Symbol, nil
	}})
}

// opener opens libraries, and says which file an address comes from.
type opener struct {
	file func(address uintptr) string
	open func(names ...string) (dl.Resolver, error)
}

func choose(candidates, include []string, c *cache.Cache, o opener) (*Compiler, error) {
	question := questionOf(candidates, os.Getenv)
	if k, ok := recall(c, question); ok {
		return &Compiler{version: k.Version, architectures: k.Architectures, include: include, cache: c,
			load: func() (dl.Resolver, error) { return o.open(k.Path) }}, nil
	}
	resolve, err := o.open(candidates...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; install the CUDA toolkit (or its libnvrtc), or compile to PTX beforehand", ErrNoCompiler, err)
	}
	made, err := open(resolve, include, c)
	if err != nil {
		return nil, err
	}
	k := known{Path: o.file(made.address[nvrtcVersion]), Version: made.version, Architectures: made.architectures}
	k.remember(c, question)
	return made, nil
}

func open(resolve dl.Resolver, include []string, c *cache.Cache) (*Compiler, error) {
	made := &Compiler{include: include, cache: c}
	if err := made.resolve(resolve); err != nil {
		return nil, err
	}
	numbers := new([2]int32)
	if code := made.call(nvrtcVersion, dl.Pointer(&numbers[0]), dl.Pointer(&numbers[1])); code != 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoCompiler, made.problem(nvrtcVersion, code))
	}
	made.version = [2]int{int(numbers[0]), int(numbers[1])}
	if code := made.call(nvrtcGetNumSupportedArchs, dl.Pointer(&numbers[0])); code != 0 || numbers[0] <= 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoCompiler, made.problem(nvrtcGetNumSupportedArchs, code))
	}
	architectures := make([]int32, numbers[0])
	if code := made.call(nvrtcGetSupportedArchs, dl.Pointer(&architectures[0])); code != 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoCompiler, made.problem(nvrtcGetSupportedArchs, code))
	}
	for _, a := range architectures {
		made.architectures = append(made.architectures, int(a))
	}
	slices.Sort(made.architectures)
	return made, nil
}

func (c *Compiler) resolve(resolve dl.Resolver) error {
	if missing := resolve.Fill(c.address[:], names[:]); missing != "" {
		return fmt.Errorf("%w: the library has no %s; CUDA 11.2 or newer is needed", ErrNoCompiler, missing)
	}
	return nil
}

// ready opens the library, if that has not been done.
func (c *Compiler) ready() error {
	c.once.Do(func() {
		if c.load == nil {
			return
		}
		resolve, err := c.load()
		if err != nil {
			c.loadErr = fmt.Errorf("%w: %w", ErrNoCompiler, err)
			return
		}
		c.loadErr = c.resolve(resolve)
	})
	return c.loadErr
}

func (c *Compiler) call(f function, args ...dl.Argument) uint32 {
	return dl.CallWith(c.address[f], args...)
}

func (c *Compiler) problem(f function, code uint32) string {
	text := dl.Call(c.address[nvrtcGetErrorString], uintptr(code))
	if text == 0 {
		return fmt.Sprintf("%s failed with %d", names[f], code)
	}
	return fmt.Sprintf("%s: %s (%d)", names[f], dl.TextAt(text), code)
}

// Version is the version of the compiler, such as 13.0.
func (c *Compiler) Version() (major, minor int) { return c.version[0], c.version[1] }

// Architectures lists the architectures that the compiler supports, ascending; 90 is sm_90.
func (c *Compiler) Architectures() []int { return slices.Clone(c.architectures) }

// Source is something to compile.
type Source struct {
	Name       string // for messages if Path is empty
	Path       string // the file as the user named it; includes are relative to its folder
	Code       []byte
	Capability [2]int   // of the device
	PTX        bool     // wanted rather than a cubin, also where the compiler knows the device
	Options    []string // further options of the compiler
	Headers    []Header // take the place of files
	// Names are kernels as C++ expressions, such as "ns::scan<256, float>": templates are made of them, and Result.Symbols says where
	// the code has them.
	Names []string
}

// Header is the text that an include of a name gets, even if a file of that name exists.
type Header struct {
	Name string // as sources write it
	Code []byte
}

// Result is compiled code.
type Result struct {
	Code         []byte
	PTX          bool     // true if it was wanted, or for a device newer than the compiler; otherwise Code is a cubin for this device
	Architecture string   // "sm_90", or "compute_90" for PTX
	Log          string   // warnings
	Symbols      []string // of Source.Names
	Cached       bool
}

// architecture chooses the device's own architecture if the compiler supports it, otherwise, or if PTX is wanted, the newest PTX that
// the device runs.
func (c *Compiler) architecture(capability [2]int, wanted bool) (option string, ptx bool, err error) {
	device := capability[0]*10 + capability[1]
	best := 0
	for _, a := range c.architectures {
		if a == device && !wanted {
			return fmt.Sprintf("sm_%d", a), false, nil
		}
		if a <= device {
			best = a
		}
	}
	if best == 0 {
		return "", false, fmt.Errorf("the compiler (CUDA %d.%d) compiles for sm_%d and newer, and the device is sm_%d; use an older toolkit",
			c.version[0], c.version[1], c.architectures[0], device)
	}
	return fmt.Sprintf("compute_%d", best), true, nil
}

// Compile compiles a source, or finds it in the cache. Several compilations may run at once.
func (c *Compiler) Compile(ctx context.Context, source Source) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	architecture, ptx, err := c.architecture(source.Capability, source.PTX)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source.title(), err)
	}
	options := append([]string{"--gpu-architecture=" + architecture}, source.Options...)
	folders := c.folders(source)
	for _, folder := range folders {
		options = append(options, "--include-path="+folder)
	}
	inputs := slices.Clone(options)
	for _, h := range source.Headers {
		inputs = append(inputs, h.Name, string(h.Code))
	}
	inputs = append(inputs, source.Names...)
	key, cacheable := cache.KeyOf(fmt.Sprintf("nvrtc %d.%d", c.version[0], c.version[1]), source.title(), source.Code, inputs,
		append(cache.OptionFolders(source.Options), folders...))
	if cacheable {
		if e, ok := c.cache.Get(key); ok {
			return &Result{Code: e.Code, Log: e.Log, Symbols: e.Symbols, Architecture: architecture, PTX: ptx, Cached: true}, nil
		}
	}
	if err := c.ready(); err != nil {
		return nil, fmt.Errorf("%s: %w", source.title(), err)
	}
	r, err := c.compile(source, options, ptx)
	if err != nil {
		return nil, err
	}
	r.Architecture = architecture
	if cacheable {
		c.cache.Put(key, &cache.Entry{Code: r.Code, Log: r.Log, Symbols: r.Symbols})
	}
	return r, nil
}

func (s *Source) title() string {
	if s.Path != "" {
		return s.Path
	}
	return s.Name
}

// folders lists where includes of the source are searched, in order.
func (c *Compiler) folders(source Source) []string {
	var folders []string
	if source.Path != "" {
		folders = append(folders, filepath.Dir(source.Path))
	}
	return append(folders, c.include...)
}

func (c *Compiler) compile(source Source, options []string, ptx bool) (*Result, error) {
	fail := func(f function, code uint32) error {
		return fmt.Errorf("%s: %s", source.title(), c.problem(f, code))
	}
	code, name := terminated(string(source.Code)), terminated(source.title())
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinned := func(text string) uintptr {
		bytes := terminated(text)
		pinner.Pin(&bytes[0])
		return uintptr(unsafe.Pointer(&bytes[0]))
	}
	headers, headerNames := make([]uintptr, len(source.Headers)+1), make([]uintptr, len(source.Headers)+1)
	for i, h := range source.Headers {
		headers[i], headerNames[i] = pinned(string(h.Code)), pinned(h.Name)
	}
	program := new(uintptr)
	if result := c.call(nvrtcCreateProgram, dl.Pointer(program), dl.Pointer(&code[0]), dl.Pointer(&name[0]), dl.Number(len(source.Headers)),
		dl.Pointer(&headers[0]), dl.Pointer(&headerNames[0])); result != 0 {
		return nil, fail(nvrtcCreateProgram, result)
	}
	defer c.call(nvrtcDestroyProgram, dl.Pointer(program))

	for _, name := range source.Names {
		expression := terminated(name)
		if result := c.call(nvrtcAddNameExpression, dl.Number(*program), dl.Pointer(&expression[0])); result != 0 {
			return nil, fail(nvrtcAddNameExpression, result)
		}
	}
	list := make([]uintptr, len(options))
	for i, option := range options {
		list[i] = pinned(option)
	}
	compiled := c.call(nvrtcCompileProgram, dl.Number(*program), dl.Number(len(list)), dl.Pointer(&list[0]))
	log, result := c.read(*program, nvrtcGetProgramLogSize, nvrtcGetProgramLog)
	if result != 0 {
		return nil, fail(nvrtcGetProgramLog, result)
	}
	text := strings.TrimSpace(strings.TrimRight(string(log), "\x00"))
	switch {
	case compiled == codeCompilation:
		return nil, &launch.CompileError{Name: source.title(), Log: text}
	case compiled != 0:
		if text != "" {
			return nil, fmt.Errorf("%w\n%s", fail(nvrtcCompileProgram, compiled), text)
		}
		return nil, fail(nvrtcCompileProgram, compiled)
	}
	var symbols []string
	for _, name := range source.Names {
		expression, lowered := terminated(name), new(uintptr)
		if result := c.call(nvrtcGetLoweredName, dl.Number(*program), dl.Pointer(&expression[0]), dl.Pointer(lowered)); result != 0 {
			return nil, fail(nvrtcGetLoweredName, result)
		}
		symbols = append(symbols, dl.TextAt(*lowered))
	}
	size, get := nvrtcGetCUBINSize, nvrtcGetCUBIN
	if ptx {
		size, get = nvrtcGetPTXSize, nvrtcGetPTX
	}
	image, result := c.read(*program, size, get)
	if result != 0 {
		return nil, fail(get, result)
	}
	if ptx {
		image = []byte(strings.TrimRight(string(image), "\x00"))
	}
	return &Result{Code: image, PTX: ptx, Log: text, Symbols: symbols}, nil
}

// read asks for the size of one of a program's results and then fetches it.
func (c *Compiler) read(program uintptr, size, get function) ([]byte, uint32) {
	bytes := new(uint64)
	if code := c.call(size, dl.Number(program), dl.Pointer(bytes)); code != 0 {
		return nil, code
	}
	if *bytes == 0 {
		return nil, 0
	}
	buffer := make([]byte, *bytes)
	if code := c.call(get, dl.Number(program), dl.Pointer(&buffer[0])); code != 0 {
		return nil, code
	}
	return buffer, 0
}

func terminated(text string) []byte { return append([]byte(text), 0) }

// Lazy opens a compiler when it is first needed, once.
type Lazy struct {
	Options  Options
	once     sync.Once
	compiler *Compiler
	err      error
}

// Get opens the compiler, or returns the error of the first attempt.
func (l *Lazy) Get() (*Compiler, error) {
	l.once.Do(func() { l.compiler, l.err = Open(l.Options) })
	return l.compiler, l.err
}
