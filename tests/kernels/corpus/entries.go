// The kernels that are listed, compared with the entries that nvcc makes of the same file.

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source"
)

// ofLibrary are the namespaces of CCCL, whose algorithms bring kernels of their own where host code calls them.
var ofLibrary = regexp.MustCompile(`^(?:cub|thrust|cuda)::`)

// compared holds a file's list against the entries of nvcc. nvcc leaves out templates that nothing instantiates, and static kernels that
// nothing launches: a person must look at the latter.
func (o outcome) compared(ctx context.Context, nvcc string, listed []source.Info, build *launch.Build, files *found) outcome {
	entries, err := entriesOf(ctx, nvcc, o.path, build)
	if err != nil {
		o.cause = "nvcc does not compile it"
		if files.through(o.path) != "" {
			o.cause = fragment
		}
		o.said, _, _ = strings.Cut(err.Error(), "\n")
		return o
	}
	made := map[string]bool{}
	var lost, wrong []string
	for _, e := range entries {
		name := bareName(e.Signature)
		if ofLibrary.MatchString(name) {
			continue
		}
		made[name] = true
		if !slices.ContainsFunc(listed, func(k source.Info) bool { return bareName(k.Name) == name }) && !slices.Contains(lost, name) {
			lost = append(lost, name)
		}
	}
	for i := range listed {
		if k := &listed[i]; k.Template == nil && !made[bareName(k.Name)] && !strings.Contains(k.Problem, "is only declared") {
			wrong = append(wrong, k.Name)
		}
	}
	switch {
	case len(lost) > 0:
		o.cause, o.said = "kernels are lost", strings.Join(lost, ", ")
	case len(wrong) > 0:
		o.cause, o.said = "kernels are listed that nvcc makes no entry of: static ones that nothing launches, or wrong ones", strings.Join(wrong, ", ")
	}
	return o
}

// entriesOf compiles a file to PTX and reads its entries.
func entriesOf(ctx context.Context, nvcc, path string, build *launch.Build) ([]source.Info, error) {
	folder, err := os.MkdirTemp("", "sweep-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	out := filepath.Join(folder, "out.ptx")
	args := []string{"-ptx", "-arch=sm_90", "-std=c++17", "-w", "-o", out}
	for _, folder := range build.Include {
		args = append(args, "-I"+folder)
	}
	for _, d := range build.Define {
		args = append(args, "-D"+d.Name+"="+d.Value)
	}
	if said, err := exec.CommandContext(ctx, nvcc, append(args, path)...).CombinedOutput(); err != nil {
		return nil, errors.New(strings.TrimSpace(string(said)))
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(text), ".entry") {
		return nil, nil
	}
	module, err := kernels.OpenModule("nvcc", "out.ptx", text, kernels.OpenOptions{})
	if err != nil {
		return nil, err
	}
	list, _, err := module.List(ctx)
	return list, err
}

var mangled = regexp.MustCompile(`^_ZL?(\d+)(\w+)`)

// bareName is a kernel's name without the arguments of a template, its parameters and anonymous namespaces.
func bareName(name string) string {
	name = strings.TrimPrefix(strings.ReplaceAll(name, "(anonymous namespace)::", ""), "void ")
	if m := mangled.FindStringSubmatch(name); m != nil { // with arguments that are not read, such as functions
		if n, err := strconv.Atoi(m[1]); err == nil && n <= len(m[2]) {
			return m[2][:n]
		}
	}
	if at := strings.IndexAny(name, "<("); at > 0 {
		name = name[:at]
	}
	return name
}
