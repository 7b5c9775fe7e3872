// The sweep over folders of other people's CUDA C: which files compile, and by cause which do not.

// Command corpus compiles every CUDA C file with kernels below folders as `dagrun kernels` does, and prints what does not compile by cause;
// tests/kernels/sweep runs it. It tells how well source preparation, the device headers and the list of kernels fit what people write.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
)

// folders is a flag that may be given several times.
type folders []string

func (f *folders) String() string { return strings.Join(*f, " ") }

func (f *folders) Set(value string) error {
	*f = append(*f, value)
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var include folders
	flag.Var(&include, "I", "`folder` of headers for all files")
	compiler := flag.String("compiler", "auto", "auto, nvrtc, nvcc or clang")
	jobs := flag.Int("jobs", runtime.NumCPU(), "files at a time")
	list := flag.String("list", "", "write a line for each file to this `file`")
	nvcc := flag.String("nvcc", "", "compare the listed kernels with the entries that this nvcc makes")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: tests/kernels/sweep [FLAG...] FOLDER|FILE...")
		os.Exit(2)
	}
	if err := sweep(ctx, flag.Args(), &settings{include: include, compiler: *compiler, jobs: *jobs, nvcc: *nvcc, out: os.Stdout}, *list); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// settings are the same for all files.
type settings struct {
	include   []string
	compiler  string
	nvcc      string
	jobs      int
	out       io.Writer
	compilers kernels.Compilers
}

func sweep(ctx context.Context, roots []string, s *settings, list string) error {
	files, err := find(roots)
	if err != nil {
		return err
	}
	outcomes := make([]outcome, len(files.kernels))
	var group sync.WaitGroup
	next := make(chan int)
	for range max(1, s.jobs) {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				outcomes[i] = s.try(ctx, files, files.kernels[i])
			}
		}()
	}
	for i := range files.kernels {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if list != "" {
		var b strings.Builder
		for _, o := range outcomes {
			fmt.Fprintf(&b, "%s\t%s\t%s\n", o.cause, o.path, o.said)
		}
		if err := os.WriteFile(list, []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	report(s.out, outcomes)
	return nil
}

// try compiles one file, or compares what it lists with what nvcc makes.
func (s *settings) try(ctx context.Context, files *found, path string) outcome {
	o := outcome{path: path}
	code, err := os.ReadFile(path)
	if err != nil {
		o.cause, o.said = "cannot be read", err.Error()
		return o
	}
	given := flagsFor(path, files.roots)
	build := launch.Build{Compiler: s.compiler, Include: append(given.include, s.include...), Define: given.define}
	options := kernels.OpenOptions{ReadFile: os.ReadFile, Build: build}
	if s.nvcc == "" {
		options.Compilers = &s.compilers
	}
	module, err := kernels.OpenModule("m", path, code, options)
	if err != nil {
		return o.failed(err, files)
	}
	listed, note, err := module.List(ctx)
	o.kernels = len(listed)
	switch {
	case err != nil:
		return o.failed(err, files)
	case s.nvcc != "":
		return o.compared(ctx, s.nvcc, listed, &build, files)
	case note != "":
		o.cause, o.said = "not compiled", note
	}
	return o
}

func report(out io.Writer, outcomes []outcome) {
	causes := map[string][]outcome{}
	well, kernels := 0, 0
	for _, o := range outcomes {
		kernels += o.kernels
		if o.cause == "" {
			well++
			continue
		}
		causes[o.cause] = append(causes[o.cause], o)
	}
	names := slices.SortedFunc(maps.Keys(causes), func(a, b string) int {
		if n := len(causes[b]) - len(causes[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	fmt.Fprintf(out, "%5d  %s\n", well, "well")
	for _, name := range names {
		fmt.Fprintf(out, "%5d  %s\n", len(causes[name]), name)
		for i, o := range causes[name] {
			if i == 3 {
				fmt.Fprintf(out, "           and %s\n", words.Count(int64(len(causes[name])-3), "more file", "more files"))
				break
			}
			fmt.Fprintf(out, "           %s: %s\n", o.path, o.said)
		}
	}
	rest := len(outcomes) - len(causes[fragment])
	fmt.Fprintf(out, "%5d  in all, with %s; %.1f%% of the %d that are no fragments are well\n", len(outcomes), words.Count(int64(kernels), "kernel", "kernels"),
		100*float64(well)/float64(max(1, rest)), rest)
}
