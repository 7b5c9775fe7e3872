// Compiles the library's CUDA C to the PTX that is committed. Run by go generate in kernels/; needs clang-14, no GPU.

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"

	"github.com/dagrun/dagrun/kernels/internal/ptx"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "makeptx:", err)
		os.Exit(1)
	}
}

// run compiles the named sources, or those whose PTX is out of date.
func run(only []string) error {
	files := os.DirFS(".")
	sources, err := ptx.Sources(files)
	if err != nil {
		return err
	}
	if len(only) > 0 {
		sources = only
	}
	for _, source := range sources {
		stamp, err := ptx.Stamp(files, source)
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(ptx.Output(source)); err == nil && bytes.HasPrefix(old, []byte(stamp)) && len(only) == 0 {
			continue
		}
		compiler := exec.Command(ptx.Compiler, append(ptx.Flags(), source, "-o", "-")...)
		compiler.Stderr = os.Stderr
		code, err := compiler.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		if err := os.WriteFile(ptx.Output(source), append([]byte(stamp), code...), 0o644); err != nil {
			return err
		}
	}
	return nil
}
