// The compiler: finding clang, and compiling. The headers are in headers.go.

// Package clang compiles CUDA C to PTX with clang, on machines without a CUDA toolkit. It brings small device headers of its own, so
// that clang alone is enough: the CPU device runs the PTX, and so does any GPU. Results are cached on disk.
package clang

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/internal/cache"
	"github.com/dagrun/dagrun/kernels/source/internal/child"
)

// ErrNoCompiler is what Open returns if there is no clang that compiles CUDA C to PTX.
var ErrNoCompiler = errors.New("no CUDA C compiler (clang)")

const (
	oldest = 14 // the first version that is known to compile what kernels contain
	newest = 30 // the last that is looked for by name
)

// Compiler is an installed clang.
type Compiler struct {
	path    string
	version string // as it says itself, such as "14.0.6"
	major   int
	cache   *cache.Cache
}

// Options say where things are. The zero value suits most callers.
type Options struct {
	// Path is the compiler; "" is the one that DAGRUN_CLANG names, else clang, clang-30 to clang-14 on the search path.
	Path string
	// Cache is the folder of compiled code; "" is dagrun/clang in os.UserCacheDir, "off" disables the cache.
	Cache string
}

// Open finds the compiler.
func Open(options Options) (*Compiler, error) {
	var refused []string
	for _, name := range candidates(options.Path) {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		c := &Compiler{path: path, cache: cache.Open("clang", options.Cache)}
		if err := c.identify(); err != nil {
			refused = append(refused, err.Error())
			continue
		}
		return c, nil
	}
	if len(refused) > 0 {
		return nil, fmt.Errorf("%w: %s; install clang %d or newer", ErrNoCompiler, strings.Join(refused, ", "), oldest)
	}
	return nil, fmt.Errorf("%w: install the package clang (version %d or newer)", ErrNoCompiler, oldest)
}

func candidates(given string) []string {
	if given == "" {
		given = os.Getenv("DAGRUN_CLANG")
	}
	if given != "" {
		return []string{given}
	}
	names := []string{"clang"}
	for v := newest; v >= oldest; v-- {
		names = append(names, fmt.Sprintf("clang-%d", v))
	}
	return names
}

var versionPattern = regexp.MustCompile(`clang version ((\d+)\.\S+)`)

// says is what the compiler says of itself. Starting it takes longer than reading a result from the cache, so that this is cached too,
// for as long as the file stays as it is.
func (c *Compiler) says() ([]byte, error) {
	var key cache.Key
	path, err := filepath.EvalSymlinks(c.path)
	info, statErr := os.Stat(path)
	cacheable := err == nil && statErr == nil
	if cacheable {
		key, _ = cache.KeyOf("clang itself", path, nil, []string{fmt.Sprint(info.Size()), info.ModTime().String()}, nil)
		if e, ok := c.cache.Get(key); ok {
			return []byte(e.Log), nil
		}
	}
	out, err := child.Ask(c.path, "--version", "--print-targets")
	if err != nil {
		if out, err = child.Ask(c.path, "--version"); err != nil {
			return nil, fmt.Errorf("%s --version: %w", c.path, err)
		}
	}
	if cacheable {
		c.cache.Put(key, &cache.Entry{Log: string(out)})
	}
	return out, nil
}

// identify asks the compiler for its version and whether it makes PTX. Apple's clang cannot.
func (c *Compiler) identify() error {
	out, err := c.says()
	if err != nil {
		return err
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return fmt.Errorf("%s is not clang", c.path)
	}
	c.version = string(m[1])
	c.major, _ = strconv.Atoi(string(m[2]))
	if c.major < oldest || bytes.HasPrefix(out, []byte("Apple")) {
		return fmt.Errorf("%s is version %s", c.path, c.version)
	}
	if bytes.Contains(out, []byte("Registered Targets")) && !bytes.Contains(out, []byte("nvptx64")) {
		return fmt.Errorf("%s makes no PTX", c.path)
	}
	return nil
}

// Path is the compiler's file.
func (c *Compiler) Path() string { return c.path }

// Version is the version of the compiler, such as "14.0.6".
func (c *Compiler) Version() string { return c.version }

// Source is something to compile.
type Source struct {
	Name string // for messages if Path is empty
	Path string // the file as the user named it; includes in quotes are relative to its folder
	Code []byte
	// Define are macros as #define says them, such as "N 3". They are defined after the device headers, which use names like N too.
	Define []string
	// Capability is that of the device. The zero value stands for the CPU device: the newest that the compiler knows, up to 9.0.
	Capability [2]int
	// DefaultDevice makes functions without __host__ or __device__ both, as NVRTC's --default-device does.
	DefaultDevice bool
	// Options are further options of clang, such as -Ifolder and -std=c++17. Nothing is checked.
	Options []string
	// NVIDIA are folders that have CUB, Thrust or libcu++, as of a toolkit or of CCCL. What dagrun's own headers lack is looked for there.
	NVIDIA []string
	// Overlay replaces the text of files that the source includes.
	Overlay []Overlaid
	// Confined are the only folders that the source may include files from, apart from the system's; see child.Command. nil: there is no limit.
	// What is compiled so is not cached.
	Confined []string
}

// Result is compiled code.
type Result struct {
	PTX          []byte
	Architecture string // "sm_86"
	Log          string // warnings
	Cached       bool
}

// target is an architecture with the version of PTX that has its instructions.
type target struct{ architecture, ptx int }

// targets are what versions of clang compile for; an entry is for this version and later ones. The version of PTX is one that the
// drivers of the architecture's first toolkit load.
var targets = []struct {
	major int
	target
}{{14, target{50, 60}}, {14, target{52, 60}}, {14, target{53, 60}}, {14, target{60, 60}}, {14, target{61, 60}}, {14, target{62, 60}},
	{14, target{70, 63}}, {14, target{72, 63}}, {14, target{75, 63}}, {14, target{80, 71}}, {14, target{86, 72}},
	{16, target{87, 74}}, {16, target{89, 78}}, {16, target{90, 78}}}

// target chooses the newest architecture that both the device and the compiler know.
func (c *Compiler) target(capability [2]int) (target, error) {
	device := capability[0]*10 + capability[1]
	if device == 0 {
		device = 90
	}
	var best target
	for _, t := range targets {
		if t.major <= c.major && t.architecture <= device {
			best = t.target
		}
	}
	if best.architecture == 0 {
		return best, fmt.Errorf("clang %s compiles for sm_50 and newer, and the device is sm_%d", c.version, device)
	}
	return best, nil
}

func (s *Source) title() string {
	if s.Path != "" {
		return s.Path
	}
	return s.Name
}

// options is the command line without the folder of the headers.
func (c *Compiler) options(source Source, t target) []string {
	options := []string{"-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-nostdinc", "-nostdinc++",
		fmt.Sprintf("--cuda-gpu-arch=sm_%d", t.architecture), "-Xclang", "-target-feature", "-Xclang", fmt.Sprintf("+ptx%d", t.ptx),
		"-S", "-O3", "-std=c++17", "-fno-exceptions", "-fno-rtti", "-gline-tables-only", "-fdebug-compilation-dir=.",
		"-fno-color-diagnostics", "-fno-caret-diagnostics", "-Wno-unknown-cuda-version", "-Wno-unknown-pragmas", "-Wno-register",
		"-Wno-reserved-user-defined-literal", "-Wno-unused-command-line-argument",
		"-Wno-pass-failed"} // a loop that is not unrolled, in whatever kernel, is no mistake
	if source.Path != "" {
		options = append(options, "-iquote", filepath.Dir(source.Path))
	}
	options = append(options, source.Options...)
	if len(source.NVIDIA) > 0 {
		options = append(options, "-D_CCCL_ENABLE_FREESTANDING", "-Xclang", "-fcuda-allow-variadic-functions")
	}
	for _, folder := range source.NVIDIA {
		options = append(options, "-idirafter", folder)
	}
	return options
}

// Compile compiles a source, or finds it in the cache. Several compilations may run at once.
func (c *Compiler) Compile(ctx context.Context, source Source) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	t, err := c.target(source.Capability)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source.title(), err)
	}
	architecture := fmt.Sprintf("sm_%d", t.architecture)
	options := c.options(source, t)
	text := source.text()
	inputs := slices.Clone(options)
	for _, o := range source.Overlay {
		inputs = append(inputs, o.Path, string(o.Code))
	}
	for _, folder := range source.NVIDIA { // whose files are too many to be read
		for _, name := range []string{"cub/version.cuh", "thrust/version.h", "cuda/std/__cccl/version.h"} {
			if info, err := os.Stat(filepath.Join(folder, name)); err == nil {
				inputs = append(inputs, name, info.ModTime().String(), fmt.Sprint(info.Size()))
			}
		}
	}
	var key cache.Key
	cacheable := source.Confined == nil // the key depends on files that a confined compiler does not read
	if cacheable {
		key, cacheable = cache.KeyOf("clang "+c.version+" "+headersHash(), source.title(), text, inputs, cache.OptionFolders(options))
	}
	if cacheable {
		if e, ok := c.cache.Get(key); ok {
			return &Result{PTX: e.Code, Log: e.Log, Architecture: architecture, Cached: true}, nil
		}
	}
	r, err := c.compile(ctx, source, text, options)
	if err != nil {
		return nil, err
	}
	r.Architecture = architecture
	if cacheable {
		c.cache.Put(key, &cache.Entry{Code: r.PTX, Log: r.Log})
	}
	return r, nil
}

// text is the source as the compiler reads it: lines are those of the user's file.
func (s *Source) text() []byte {
	var text bytes.Buffer
	if s.DefaultDevice {
		text.WriteString("#pragma clang force_cuda_host_device begin\n")
	}
	for i, d := range s.Define {
		if i == 0 {
			text.WriteString("# 1 \"<definitions>\"\n")
		}
		fmt.Fprintf(&text, "#define %s\n", d)
	}
	fmt.Fprintf(&text, "# 1 %q\n", filepath.ToSlash(s.title()))
	text.Write(s.Code)
	if s.DefaultDevice {
		text.WriteString("\n#pragma clang force_cuda_host_device end\n")
	}
	return text.Bytes()
}

func (c *Compiler) compile(ctx context.Context, source Source, text []byte, options []string) (*Result, error) {
	folder, remove, err := child.NewFolder()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source.title(), err)
	}
	defer remove()
	if err := writeHeaders(folder); err != nil {
		return nil, fmt.Errorf("%s: %w", source.title(), err)
	}
	if len(source.Overlay) > 0 {
		file, err := writeOverlay(folder, source.Overlay)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source.title(), err)
		}
		options = append(slices.Clone(options), "-ivfsoverlay", file)
	}
	args := append([]string{"-fdebug-prefix-map=" + folder + "=dagrun", "-isystem", folder, "-include", filepath.Join(folder, "dagrun_device.h")}, options...)
	if len(source.NVIDIA) > 0 {
		args = append(args, "-isystem", filepath.Join(folder, "dagrun_cccl"))
	}
	command := child.Command{Path: c.path, Args: append(args, "-o", "-", "-"), Env: environment(), Stdin: text, Folder: folder, Confined: source.Confined}
	output, err := command.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case output == nil:
		return nil, fmt.Errorf("%s: %s: %w", source.title(), c.path, err)
	}
	said := strings.TrimSpace(strings.ReplaceAll(string(output.Log), folder+string(filepath.Separator), "dagrun/"))
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && said != "":
		return nil, &launch.CompileError{Name: source.title(), Log: said}
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %w", source.title(), c.path, err)
	}
	return &Result{PTX: output.Out, Log: said}, nil
}

// environment is the process's environment without the variables that change the compiler's options.
func environment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		switch name, _, _ := strings.Cut(variable, "="); name {
		case "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS", "LC_ALL":
		default:
			kept = append(kept, variable)
		}
	}
	return append(kept, "LC_ALL=C")
}

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
