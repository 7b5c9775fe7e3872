// Compiles the library's CUDA C to the PTX that is committed. Run by go generate in kernels/library; needs clang-14, no GPU.

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "makeptx:", err)
		os.Exit(1)
	}
}

// run compiles the named sources, or those whose PTX is out of date, and lists the kernels of all.
func run(only []string) error {
	files := os.DirFS(".")
	sources, err := sourceFiles(files)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, source := range sources {
		stamp, err := stampOf(files, source)
		if err != nil {
			return err
		}
		text, err := unpack(files, outputOf(source))
		if err != nil || !strings.HasPrefix(text, stamp) || slices.Contains(only, source) {
			code, err := compile(compilerName, ".", source)
			if err != nil {
				return fmt.Errorf("%s: %w", source, err)
			}
			if made := stamp + code; made != text {
				text = made
				if err := os.WriteFile(outputOf(source), pack(text), 0o644); err != nil {
					return err
				}
			}
		}
		list.WriteString(entriesOf(source, text))
	}
	return os.WriteFile(listFile, []byte(list.String()), 0o644)
}

// compile runs a compiler in the library's folder.
func compile(compiler, dir, source string) (string, error) {
	command := exec.Command(compiler, append(compilerFlags(), source, "-o", "-")...)
	command.Dir = dir
	command.Stderr = os.Stderr
	code, err := command.Output()
	return string(code), err
}

// listFile says which file has which kernel, so that a program unpacks only what it needs.
const listFile = "ptx/entries.txt"

var entry = regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`)

// entriesOf is a source's part of the list.
func entriesOf(source, text string) string {
	var list strings.Builder
	for _, m := range entry.FindAllStringSubmatch(text, -1) {
		fmt.Fprintln(&list, strings.TrimSuffix(path.Base(source), ".cu"), m[1])
	}
	return list.String()
}

func pack(text string) []byte {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = io.WriteString(w, text) // a bytes.Buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}

func unpack(files fs.FS, name string) (string, error) {
	packed, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
}
