// Compiling users' CUDA C with whatever is there: NVRTC, nvcc or clang. Which kernels are wanted is told to the compiler, and their
// symbols are told back.

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/clang"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
)

// Compilers are those that may be installed; each is looked for when it is first needed. The zero value looks everywhere.
type Compilers struct {
	NVRTC nvrtc.Lazy
	NVCC  NVCC
	Clang clang.Lazy
	// Capability is what code is made for where no device is named; zero stands for sm_90.
	Capability [2]int
	// Confined compiles only in processes that read no files but those below the folder of the pipeline and the system's, and that have no
	// network. NVRTC, which runs in this process, is not used.
	Confined bool
}

// newestPTX is the architecture that sources are compiled for where the device is the CPU.
var newestPTX = [2]int{9, 0}

// mostAttempts is how often a source is compiled with more and more of its host code left out.
const mostAttempts = 12

// Compile compiles a module's source with the compiler that its Build asks for, or the first that manages. Several compilations may
// run at once.
func (c *Compilers) Compile(ctx context.Context, m *launch.Module, target launch.Target) (*launch.Compiled, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := readable(m.Code, mostSource); err != nil {
		return nil, fmt.Errorf("%s %w", m.Name, err)
	}
	if err := checkBuild(&m.Build); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	var folder *files.Folder
	var confined []string
	if c.Confined {
		var err error
		if folder, confined, err = confinement(m); err != nil {
			return nil, err
		}
		defer folder.Close()
	}
	read := func(path string) ([]byte, error) { return folder.Regular(ctx, path, mostSource) }
	if m.Path == "" {
		read = nil
	}
	p := preprocess(m.Path, string(m.Code), m.Build.Define, newSearch(m.Build.Include, nvrtc.HeaderFolders(c.NVRTC.Options.Toolkit), m.Folder, read))
	if p.err != nil {
		return nil, p.err
	}
	if target.Capability == [2]int{} {
		target.Capability, target.PTX = newestPTX, true
		if c.Capability != [2]int{} {
			target.Capability = c.Capability
		}
	}
	wanted := m.Build.Compiler
	var failed *launch.CompileError
	var skipped, notes []string
	installed := false
	for _, name := range compilers[1:] {
		if wanted != "" && wanted != "auto" && wanted != name {
			continue
		}
		p.search.device = name == "nvrtc"
		j := newJob(m, target, p)
		j.confined = confined
		r, err := c.with(ctx, name, j)
		switch {
		case err == nil:
			r.Skipped, r.Log = skipped, j.shown(r.Log)
			return r, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		installed = installed || !errors.Is(err, errNotInstalled)
		if wrong := (*launch.CompileError)(nil); errors.As(err, &wrong) {
			if failed == nil {
				failed = wrong
				failed.Log = j.shown(failed.Log)
			}
			if name == "clang" {
				notes = j.absent()
			}
			skipped = append(skipped, wrong.Compiler+" does not compile it")
			continue
		}
		skipped = append(skipped, j.shown(err.Error()))
	}
	switch {
	case failed != nil:
		failed.Others = slices.DeleteFunc(skipped, func(s string) bool { return strings.HasPrefix(s, failed.Compiler) })
		failed.Others = append(failed.Others, notes...)
		if by := includedBy(m.Path, m.Code, read); by != "" {
			failed.Others = append(failed.Others, fmt.Sprintf("%s is a part of %s, which includes it: name that file instead", m.Name, by))
		}
		return nil, failed
	case installed:
		return nil, fmt.Errorf("%s: %s", m.Name, strings.Join(skipped, "; "))
	case wanted != "" && wanted != "auto":
		return nil, fmt.Errorf("%s is CUDA C, its compiler is to be %s, and %w: %s", m.Name, wanted, launch.ErrNoCompiler, strings.Join(skipped, "; "))
	}
	return nil, fmt.Errorf("%s is CUDA C, and %w: install the package clang (version 14 or newer) or NVIDIA's libnvrtc, or register Go implementations of its kernels",
		m.Name, launch.ErrNoCompiler)
}

// with compiles with one compiler. Host code that it trips over is left out, and it tries again.
func (c *Compilers) with(ctx context.Context, name string, j *job) (*launch.Compiled, error) {
	switch name {
	case "nvrtc":
		if j.confined != nil {
			return nil, errors.New("nvrtc is not used with --confined, because it runs within dagrun")
		}
		r, err := retrying(ctx, j, c.nvrtcAndPrelude)
		if wrong := (*launch.CompileError)(nil); errors.As(err, &wrong) && ctx.Err() == nil && j.mayHaveLongs() {
			j.longs = true
			if r, err := retrying(ctx, j, c.nvrtcAndPrelude); err == nil {
				return r, nil
			}
		}
		return r, err
	case "clang":
		return retrying(ctx, j, c.clang)
	}
	return c.NVCC.compile(ctx, j)
}

func retrying(ctx context.Context, j *job, compile func(context.Context, *job) (*launch.Compiled, error)) (*launch.Compiled, error) {
	for attempt := 1; ; attempt++ {
		r, err := compile(ctx, j)
		var wrong *launch.CompileError
		if !errors.As(err, &wrong) || attempt == mostAttempts || !j.hide(wrong.Log) {
			return r, err
		}
	}
}

// failedBy says which compiler failed.
func failedBy(compiler string, err error) error {
	if wrong := (*launch.CompileError)(nil); errors.As(err, &wrong) {
		wrong.Compiler = compiler
		return wrong
	}
	return fmt.Errorf("%s: %w", compiler, err)
}

// nvrtcAndPrelude compiles a source as it is, or else with what nvcc includes in every file.
func (c *Compilers) nvrtcAndPrelude(ctx context.Context, j *job) (*launch.Compiled, error) {
	r, err := c.nvrtc(ctx, j)
	if wrong := (*launch.CompileError)(nil); errors.As(err, &wrong) && !j.prelude {
		j.prelude = true
		return c.nvrtc(ctx, j)
	}
	return r, err
}

func (c *Compilers) nvrtc(ctx context.Context, j *job) (*launch.Compiled, error) {
	library, err := c.NVRTC.Get()
	if err != nil {
		return nil, fmt.Errorf("nvrtc is %w", errNotInstalled)
	}
	major, minor := library.Version()
	name := fmt.Sprintf("nvrtc %d.%d", major, minor)
	source := nvrtc.Source{Name: j.module.Name, Path: j.module.Path, Code: j.main.text, Capability: j.target.Capability, PTX: j.target.PTX,
		Names: j.module.Build.Names}
	source.Options = append(j.definitions(), "--device-as-default-execution-space", "--generate-line-info")
	source.Options = append(source.Options, j.implied()...)
	if !j.hasStandard() && !slices.Contains(source.Options, "--std=c++20") {
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
	if j.prelude {
		source.Code = withLambdas(source.Code)
	}
	r, err := library.Compile(ctx, source)
	if err != nil {
		return nil, failedBy(name, err)
	}
	kind := launch.Cubin
	if r.PTX {
		kind = launch.PTX
	}
	return j.result(&launch.Compiled{Kind: kind, Code: r.Code, Compiler: name, Architecture: r.Architecture, Log: r.Log, Cached: r.Cached}, r.Symbols), nil
}

func (c *Compilers) clang(ctx context.Context, j *job) (*launch.Compiled, error) {
	program, err := c.Clang.Get()
	if err != nil {
		return nil, fmt.Errorf("clang is %w", errNotInstalled)
	}
	name := "clang " + program.Version()
	source := clang.Source{Name: j.module.Name, Path: j.module.Path, Code: append(slices.Clone(escaped(j.main.text)), namesTable(j.module.Build.Names)...),
		Capability: j.target.Capability, Confined: j.confined}
	for _, d := range j.module.Build.Define {
		source.Define = append(source.Define, d.Name+" "+d.Value)
	}
	source.Options = []string{"-ferror-limit=200"}
	if j.libraries {
		source.Options = append(source.Options, "-include", libraryTypes)
	}
	if j.thrust && len(j.search.system) > 0 {
		source.Options = append(source.Options, "-include", "dagrun_thrust.h")
	}
	for _, option := range j.module.Build.Options {
		source.Options = append(source.Options, clangOptions(option)...)
	}
	for _, folder := range j.search.folders {
		source.Options = append(source.Options, "-I"+folder)
	}
	source.NVIDIA = j.search.system
	for _, f := range j.files {
		if code := escaped(f.text); f.changed || len(code) > len(f.text) {
			source.Overlay = append(source.Overlay, clang.Overlaid{Path: f.path, Code: code})
		}
	}
	r, err := program.Compile(ctx, source)
	if err != nil {
		return nil, failedBy(name, err)
	}
	text, symbols := takeNames(r.PTX)
	return j.result(&launch.Compiled{Kind: launch.PTX, Code: text, Compiler: name, Architecture: r.Architecture, Log: r.Log, Cached: r.Cached}, symbols), nil
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

// escaped returns source text in which inline assembly is as clang wants it: registers such as %laneid, which nvcc and NVRTC take with one
// percent sign, get two. Lines stay.
func escaped(text []byte) []byte {
	if !bytes.Contains(text, []byte("asm")) {
		return text
	}
	var out []byte
	done, in := 0, tokens(string(text), 0)
	for i := 0; i < len(in); i++ {
		if in[i].text != "asm" && in[i].text != "__asm__" && in[i].text != "__asm" {
			continue
		}
		for i++; i < len(in) && (in[i].text == "volatile" || in[i].text == "__volatile__" || in[i].text == "__volatile" || in[i].text == "("); i++ {
		}
		for ; i < len(in) && in[i].text[0] == '"'; i++ {
			for k := 0; k+1 < len(in[i].text); k++ {
				if in[i].text[k] != '%' {
					continue
				}
				if next := in[i].text[k+1]; next == '%' {
					k++
				} else if next >= 'a' && next <= 'z' || next >= 'A' && next <= 'Z' || next == '_' {
					at := int(in[i].at) + k
					out, done = append(append(out, text[done:at]...), '%'), at
				}
			}
		}
		i--
	}
	return append(out, text[done:]...)
}
