// How the library's PTX is made from its CUDA C, and the stamp by which a test checks that both belong together.

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strings"
)

// compilerName is the compiler that makes the PTX. Other versions give other bytes.
const compilerName = "clang-14"

// compilerFlags give PTX that every driver since CUDA 11 loads: ISA 6.0 for the warp shuffles, sm_52 for old laptops. Products and
// sums are not fused unless a source says so, because the Go references must give the same bits.
func compilerFlags() []string {
	return []string{"-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_52", "-O3",
		"-ffp-contract=off", "-fno-exceptions", "-std=c++17", "-Wall", "-Werror", "-Xclang", "-target-feature", "-Xclang", "+ptx60",
		"-mllvm", "-inline-threshold=1000000", "-S"}
}

// sourceFiles lists the files that are compiled, each to the PTX of its name.
func sourceFiles(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "cuda/*.cu")
	sort.Strings(names)
	return names, err
}

// outputOf returns the PTX file of a source.
func outputOf(source string) string {
	return "ptx/" + strings.TrimSuffix(path.Base(source), ".cu") + ".ptx.gz"
}

var include = regexp.MustCompile(`(?m)^#include "([^"]+)"`)

// stampOf returns the first line of the PTX made from a source: a hash of the flags, the source and everything that it includes.
func stampOf(files fs.FS, source string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, compilerName, strings.Join(compilerFlags(), " "))
	seen := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		fmt.Fprintln(h, name, len(text))
		h.Write(text)
		for _, m := range include.FindAllSubmatch(text, -1) {
			if err := add(path.Join(path.Dir(name), string(m[1]))); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(source); err != nil {
		return "", err
	}
	return fmt.Sprintf("// Made by go generate from %s, sha256 %x\n", source, h.Sum(nil)), nil
}
