// Compiling users' CUDA C with whatever is there: NVRTC, nvcc or clang. Which kernels are wanted is told to the compiler, and their
// symbols are told back.

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/source/clang"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
)

// ErrNoCompiler is the error where nothing that compiles CUDA C is installed.
var ErrNoCompiler = errors.New("there is no compiler for CUDA C")

// CompileError is the error for a source that does not compile.
type CompileError struct {
	Name     string
	Log      string // the compiler's messages, with the user's files and lines
	Compiler string // whose they are
	Others   []string
}

func (e *CompileError) Error() string {
	text := fmt.Sprintf("%s does not compile (%s):\n%s", e.Name, e.Compiler, e.Log)
	for _, other := range e.Others {
		text += "\n" + other
	}
	return text
}

// Target says what code is wanted for.
type Target struct {
	Capability [2]int // of the device; zero stands for the CPU device
	PTX        bool   // PTX is wanted, also where a compiler makes code for the device itself
}

// Compiled is a source's code.
type Compiled struct {
	Kind         launch.Kind // PTX or Cubin
	Code         []byte
	Symbols      map[string]string // of the kernels in Build.Names
	Compiler     string            // such as "clang 14.0.6"
	Architecture string
	Log          string   // warnings
	Skipped      []string // why compilers that come first were not used
	Cached       bool
}

// Origin says in a line how the code came about.
func (c *Compiled) Origin() string {
	text := "compiled for " + c.Architecture + " by " + c.Compiler
	if c.Cached {
		text += " earlier, from the cache"
	}
	if len(c.Skipped) > 0 {
		text += " (" + strings.Join(c.Skipped, "; ") + ")"
	}
	return text
}

// Compilers are those that may be installed; each is looked for when it is first needed. The zero value looks everywhere.
type Compilers struct {
	NVRTC nvrtc.Lazy
	NVCC  NVCC
	Clang clang.Lazy
}

// newestPTX is the architecture that sources are compiled for where the device is the CPU.
var newestPTX = [2]int{9, 0}

// mostAttempts is how often a source is compiled with more and more of its host code left out.
const mostAttempts = 12

// job is one source on its way through the compilers.
type job struct {
	*Compilers
	module *launch.Module
	target Target
	main   *file
	files  []*file // that it includes, of the user's
	found  []foundHeader
}

func newJob(c *Compilers, m *launch.Module, target Target, p *preprocessor) *job {
	j := &job{Compilers: c, module: m, target: target, main: withoutHostCode(m.Name, m.Code, p.macros), found: p.found}
	seen := map[string]bool{}
	for _, h := range p.found {
		if !seen[h.path] {
			seen[h.path] = true
			j.files = append(j.files, withoutHostCode(h.path, p.texts[h.path], p.macros))
		}
	}
	return j
}

// Compile compiles a module's source with the compiler that its Build asks for, or the first that manages. Several compilations may
// run at once.
func (c *Compilers) Compile(ctx context.Context, m *launch.Module, target Target) (*Compiled, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := readable(m.Code, mostSource); err != nil {
		return nil, fmt.Errorf("%s %w", m.Name, err)
	}
	if err := checkBuild(&m.Build); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	read := os.ReadFile
	if m.Path == "" {
		read = nil
	}
	p := preprocess(m.Path, string(m.Code), m.Build.Define, search{m.Build.Include, read})
	if p.err != nil {
		return nil, p.err
	}
	if target.Capability == [2]int{} {
		target.Capability, target.PTX = newestPTX, true
	}
	wanted := m.Build.Compiler
	var failed *CompileError
	var skipped []string
	installed := false
	for _, name := range compilers[1:] {
		if wanted != "" && wanted != "auto" && wanted != name {
			continue
		}
		j := newJob(c, m, target, p)
		r, err := j.with(ctx, name)
		switch {
		case err == nil:
			r.Skipped = skipped
			return r, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		installed = installed || !errors.Is(err, errNotInstalled)
		if wrong := (*CompileError)(nil); errors.As(err, &wrong) {
			if failed == nil {
				failed = wrong
			}
			skipped = append(skipped, wrong.Compiler+" does not compile it")
			continue
		}
		skipped = append(skipped, err.Error())
	}
	switch {
	case failed != nil:
		failed.Others = slices.DeleteFunc(skipped, func(s string) bool { return strings.HasPrefix(s, failed.Compiler) })
		return nil, failed
	case installed:
		return nil, fmt.Errorf("%s: %s", m.Name, strings.Join(skipped, "; "))
	case wanted != "" && wanted != "auto":
		return nil, fmt.Errorf("%s is CUDA C, its compiler is to be %s, and %w: %s", m.Name, wanted, ErrNoCompiler, strings.Join(skipped, "; "))
	}
	return nil, fmt.Errorf("%s is CUDA C, and %w: install the package clang (version 14 or newer) or NVIDIA's libnvrtc, or register Go implementations of its kernels",
		m.Name, ErrNoCompiler)
}

// errNotInstalled is the error of a compiler that is not there.
var errNotInstalled = errors.New("not installed")

// with compiles with one compiler. Host code that it trips over is left out, and it tries again.
func (j *job) with(ctx context.Context, name string) (*Compiled, error) {
	switch name {
	case "nvrtc":
		return j.retrying(ctx, j.nvrtc)
	case "clang":
		return j.retrying(ctx, j.clang)
	}
	return j.nvcc(ctx)
}

func (j *job) retrying(ctx context.Context, compile func(context.Context) (*Compiled, error)) (*Compiled, error) {
	for attempt := 1; ; attempt++ {
		r, err := compile(ctx)
		var wrong *CompileError
		if !errors.As(err, &wrong) || attempt == mostAttempts || !j.hide(wrong.Log) {
			return r, err
		}
	}
}

// errorPlace is where compilers say that an error is: file(3): error, or file:3:7: error.
var errorPlace = regexp.MustCompile(`(?m)^(.+?)(?:\((\d+)\)|:(\d+):\d+): (?:catastrophic |fatal )?error`)

// hide leaves out the host code that errors are in; false where there is none.
func (j *job) hide(log string) bool {
	hidden := false
	for _, m := range errorPlace.FindAllStringSubmatch(log, -1) {
		line, err := strconv.ParseInt(m[2]+m[3], 10, 32)
		if err != nil {
			continue
		}
		path := m[1]
		for _, h := range j.found {
			if h.name == path {
				path = h.path
				break
			}
		}
		for _, f := range append([]*file{j.main}, j.files...) {
			if filepath.Clean(f.path) == filepath.Clean(path) && f.hideAt(int32(line)) {
				hidden = true
			}
		}
	}
	return hidden
}

// result is what a compiler gave, with the symbols in the order of the names.
func (j *job) result(compiled *Compiled, symbols []string) *Compiled {
	compiled.Symbols = map[string]string{}
	for i, name := range j.module.Build.Names {
		if i < len(symbols) {
			compiled.Symbols[name] = symbols[i]
		}
	}
	return compiled
}

// definitions are the options that define macros.
func (j *job) definitions() []string {
	var list []string
	for _, d := range j.module.Build.Define {
		list = append(list, "-D"+d.Name+"="+d.Value)
	}
	return list
}

func (j *job) nvrtc(ctx context.Context) (*Compiled, error) {
	c, err := j.NVRTC.Get()
	if err != nil {
		return nil, fmt.Errorf("nvrtc is %w", errNotInstalled)
	}
	major, minor := c.Version()
	name := fmt.Sprintf("nvrtc %d.%d", major, minor)
	source := nvrtc.Source{Name: j.module.Name, Path: j.module.Path, Code: j.main.text, Capability: j.target.Capability, PTX: j.target.PTX, Names: j.module.Build.Names}
	source.Options = append(j.definitions(), "--device-as-default-execution-space", "--generate-line-info")
	if !slices.ContainsFunc(j.module.Build.Options, func(o string) bool { return strings.Contains(o, "std=") }) {
		source.Options = append(source.Options, "--std=c++17")
	}
	for _, option := range j.module.Build.Options {
		switch option {
		case "--expt-relaxed-constexpr", "-expt-relaxed-constexpr", "--extended-lambda", "-extended-lambda", "--generate-line-info", "-lineinfo":
		default:
			source.Options = append(source.Options, option)
		}
	}
	for _, folder := range j.module.Build.Include {
		source.Options = append(source.Options, "--include-path="+folder)
	}
	source.Headers = j.headers()
	r, err := c.Compile(ctx, source)
	var wrong *nvrtc.CompileError
	switch {
	case errors.As(err, &wrong):
		return nil, &CompileError{Name: wrong.Name, Log: wrong.Log, Compiler: name}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	kind := launch.Cubin
	if r.PTX {
		kind = launch.PTX
	}
	return j.result(&Compiled{Kind: kind, Code: r.Code, Compiler: name, Architecture: r.Architecture, Log: r.Log, Cached: r.Cached}, r.Symbols), nil
}

// headers are what NVRTC gets in the place of files: headers that it lacks, and those of the user's that have host code.
func (j *job) headers() []nvrtc.Header {
	var list []nvrtc.Header
	given := map[string]bool{}
	if slices.ContainsFunc(j.files, func(f *file) bool { return f.changed }) {
		for _, h := range j.found {
			for _, f := range j.files {
				if f.path == h.path && !given[h.name] {
					given[h.name] = true
					list = append(list, nvrtc.Header{Name: h.name, Code: f.text})
				}
			}
		}
	}
	for _, h := range standardHeaders {
		if !given[h.Name] {
			list = append(list, h)
		}
	}
	return list
}

func (j *job) clang(ctx context.Context) (*Compiled, error) {
	c, err := j.Clang.Get()
	if err != nil {
		return nil, fmt.Errorf("clang is %w", errNotInstalled)
	}
	name := "clang " + c.Version()
	source := clang.Source{Name: j.module.Name, Path: j.module.Path, Code: append(slices.Clone(j.main.text), namesTable(j.module.Build.Names)...),
		Capability: j.target.Capability}
	source.Options = append(j.definitions(), "-ferror-limit=200")
	for _, option := range j.module.Build.Options {
		source.Options = append(source.Options, clangOptions(option)...)
	}
	for _, folder := range j.module.Build.Include {
		source.Options = append(source.Options, "-I"+folder)
	}
	for _, f := range j.files {
		if f.changed {
			source.Overlay = append(source.Overlay, clang.Overlaid{Path: f.path, Code: f.text})
		}
	}
	r, err := c.Compile(ctx, source)
	var wrong *clang.CompileError
	switch {
	case errors.As(err, &wrong):
		return nil, &CompileError{Name: wrong.Name, Log: wrong.Log, Compiler: name}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, symbols := takeNames(r.PTX)
	return j.result(&Compiled{Kind: launch.PTX, Code: text, Compiler: name, Architecture: r.Architecture, Log: r.Log, Cached: r.Cached}, symbols), nil
}

// clangOptions says an allowed option in clang's words. Precision that clang cannot lower stays higher.
func clangOptions(option string) []string {
	name, value, _ := strings.Cut(strings.TrimLeft(option, "-"), "=")
	switch {
	case name == "std":
		return []string{"-std=" + value}
	case name == "use_fast_math":
		return []string{"-ffp-contract=fast", "-fcuda-flush-denormals-to-zero", "-fcuda-approx-transcendentals"}
	case name == "fmad" && value == "false":
		return []string{"-ffp-contract=off"}
	case name == "ftz" && value == "true":
		return []string{"-fcuda-flush-denormals-to-zero"}
	case name == "w" || name == "disable-warnings":
		return []string{"-w"}
	}
	return nil
}

// namesTable is what clang reads behind a source: a table of the wanted kernels, by which templates are made and symbols are found.
// Each line has the place of its kernel's name, for messages.
func namesTable(names []string) []byte {
	if len(names) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\n__attribute__((device)) extern void *const dagrun_names[] = {\n")
	for _, name := range names {
		fmt.Fprintf(&b, "# 1 %q\n(void *)(%s),\n", "kernel "+name, name)
	}
	b.WriteString("};\n")
	return []byte(b.String())
}

var (
	tableLine = regexp.MustCompile(`(?m)^[^\n]*\bdagrun_names\[\d+\] = \{([^}]*)\};\n`)
	// entryDeclared is an entry that is only declared, as the table makes clang do.
	entryDeclared = regexp.MustCompile(`(?m)^(?:\.visible |\.weak |\.extern )?\.entry [^\n{]*\n\((?:[^(){};]*)\)\n;\n`)
)

// takeNames takes the table of kernels out of PTX.
func takeNames(text []byte) (rest []byte, symbols []string) {
	m := tableLine.FindSubmatch(text)
	if m == nil {
		return text, nil
	}
	for _, symbol := range strings.Split(string(m[1]), ",") {
		symbol = strings.TrimSpace(symbol)
		if variable, ok := strings.CutPrefix(symbol, "generic("); ok {
			symbol = strings.TrimSuffix(variable, ")")
		}
		symbols = append(symbols, symbol)
	}
	return entryDeclared.ReplaceAll(tableLine.ReplaceAll(text, nil), nil), symbols
}
