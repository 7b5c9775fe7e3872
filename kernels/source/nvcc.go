// Compiling with nvcc, where a CUDA toolkit and a host compiler are installed. It needs no help with host code.

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/internal/cache"
	"github.com/dagrun/dagrun/kernels/source/internal/child"
)

// NVCC is the compiler of the CUDA toolkit, looked for when it is first needed.
type NVCC struct {
	Path  string // "" is nvcc on the search path, or in CUDA_HOME, CUDA_PATH or /usr/local/cuda
	Cache string // the folder of compiled code; "" is dagrun/nvcc in os.UserCacheDir, "off" disables the cache

	once    sync.Once
	found   string
	version string
	cache   *cache.Cache
}

var nvccVersion = regexp.MustCompile(`release (\d+\.\d+)`)

// get finds the compiler and asks for its version.
func (n *NVCC) get() bool {
	n.once.Do(func() {
		names := []string{n.Path}
		if n.Path == "" {
			names = []string{"nvcc"}
			for _, folder := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
				if folder != "" {
					names = append(names, filepath.Join(folder, "bin", "nvcc"))
				}
			}
		}
		for _, name := range names {
			path, err := exec.LookPath(name)
			if err != nil {
				continue
			}
			out, err := child.Ask(path, "--version")
			if m := nvccVersion.FindSubmatch(out); err == nil && m != nil {
				n.found, n.version, n.cache = path, string(m[1]), cache.Open("nvcc", n.Cache)
				return
			}
		}
	})
	return n.found != ""
}

func (n *NVCC) compile(ctx context.Context, j *job) (*launch.Compiled, error) {
	if !n.get() {
		return nil, fmt.Errorf("nvcc is %w", errNotInstalled)
	}
	name := "nvcc " + n.version
	architecture := fmt.Sprintf("compute_%d%d", j.target.Capability[0], j.target.Capability[1])
	options := append(j.definitions(), "-ptx", "-arch="+architecture, "-lineinfo")
	if j.module.Path != "" {
		options = append(options, "-I"+filepath.Dir(j.module.Path))
	}
	for _, folder := range j.module.Build.Include {
		options = append(options, "-I"+folder)
	}
	standard := "-std=c++17"
	for _, option := range j.module.Build.Options {
		if strings.Contains(option, "std=") {
			standard = ""
		}
		if option != "-lineinfo" && option != "--generate-line-info" {
			options = append(options, option)
		}
	}
	if standard != "" {
		options = append(options, standard)
	}
	code := fmt.Appendf(nil, "#line 1 %q\n%s%s", filepath.ToSlash(j.module.Name), j.module.Code, hostTable(j.module.Build.Names))
	var key cache.Key
	cacheable := j.confined == nil // the key depends on files that a confined compiler does not read
	if cacheable {
		key, cacheable = cache.KeyOf(name, j.module.Name, code, options, cache.OptionFolders(options))
	}
	compiled := &launch.Compiled{Kind: launch.PTX, Compiler: name, Architecture: architecture}
	if e, ok := n.cache.Get(key); cacheable && ok {
		compiled.Code, compiled.Log, compiled.Cached = e.Code, e.Log, true
	} else {
		text, log, err := n.run(ctx, j.module.Name, name, code, options, j.confined)
		if err != nil {
			return nil, err
		}
		compiled.Code, compiled.Log = text, log
		if cacheable {
			n.cache.Put(key, &cache.Entry{Code: text, Log: log})
		}
	}
	symbols, err := symbolsOf(string(compiled.Code), j.module.Build.Names)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return j.result(compiled, symbols), nil
}

func (n *NVCC) run(ctx context.Context, title, name string, code []byte, options, confined []string) (text []byte, log string, err error) {
	folder, remove, err := child.NewFolder()
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	defer remove()
	in, out := filepath.Join(folder, "in.cu"), filepath.Join(folder, "out.ptx")
	if err := os.WriteFile(in, code, 0o600); err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	command := child.Command{Path: n.found, Args: append(options, "-o", out, in), Folder: folder, Confined: confined, Parent: true}
	for _, variable := range os.Environ() { // these would add options
		switch key, _, _ := strings.Cut(variable, "="); key {
		case "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH":
		default:
			command.Env = append(command.Env, variable)
		}
	}
	output, err := command.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case output == nil:
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	log = strings.TrimSpace(string(output.Out) + string(output.Log))
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && log != "":
		return nil, "", &launch.CompileError{Name: title, Log: log, Compiler: name}
	case err != nil:
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	text, err = os.ReadFile(out)
	return text, log, err
}

// hostTable is what nvcc reads behind a source: host code that names the wanted kernels, so that templates are made.
func hostTable(names []string) string {
	if len(names) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nvoid *dagrun_names[] = {\n")
	for _, name := range names {
		fmt.Fprintf(&b, "#line 1 %q\n(void *)(%s),\n", "kernel "+name, name)
	}
	b.WriteString("};\n")
	return b.String()
}

var (
	entryName  = regexp.MustCompile(`(?m)^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([A-Za-z_$][\w$]*)`)
	overloaded = regexp.MustCompile(`^\(void \(\*\)\((.*)\)\)(.+)$`)
)

// symbolsOf finds the symbols of kernels among the entries of PTX.
func symbolsOf(text string, names []string) ([]string, error) {
	var entries declaredKernels
	for _, found := range entryName.FindAllStringSubmatch(text, -1) {
		entries.found = append(entries.found, compiledKernel(sourceKernel{name: found[1]}))
	}
	var symbols []string
	for _, name := range names {
		if variable, ok := strings.CutPrefix(name, "&"); ok {
			symbols = append(symbols, variableIn(text, variable))
			continue
		}
		if cast := overloaded.FindStringSubmatch(name); cast != nil {
			name = cast[2] + "(" + cast[1] + ")"
		}
		k, _, err := entries.match(name)
		if err != nil {
			return nil, err
		}
		symbols = append(symbols, k.symbol)
	}
	return symbols, nil
}

var globalName = regexp.MustCompile(`(?m)^\s*(?:\.visible\s+|\.weak\s+)?\.(?:const|global)\s[^;={]*?([A-Za-z_$][\w$]*)(?:\[\d*\])?\s*(?:=|;)`)

// variableIn is the symbol of a variable in PTX; the name itself where it is not found.
func variableIn(text, name string) string {
	for _, found := range globalName.FindAllStringSubmatch(text, -1) {
		if variableName(found[1]) == name {
			return found[1]
		}
	}
	return name
}
