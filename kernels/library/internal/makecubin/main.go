// Compiles the library's PTX to the machine code that is committed. Needs ptxas, which comes with the CUDA toolkit, and no GPU.

// Command makecubin compiles each kernel of the library for some architectures, and writes an archive for each of them. Run in kernels/library, it
// replaces those that are committed:
//
//	go run ./internal/makecubin
//
// The command has the PTX in it, so that what go build makes of it runs on any machine with ptxas:
//
//	makecubin -o FOLDER -arch sm_80,sm_90
//
// What the archive in the folder has is kept, if the same compiler made it from the same PTX.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/kernels/library/cubin"
)

func main() {
	var s settings
	flag.StringVar(&s.ptxas, "ptxas", "ptxas", "the `compiler`")
	flag.StringVar(&s.folder, "o", "cubin", "`folder` of the archives")
	architectures := flag.String("arch", strings.Join(cubin.Architectures(), ","), "comma-separated `architectures`")
	flag.Parse()
	for _, architecture := range strings.Split(*architectures, ",") {
		if err := s.make(architecture); err != nil {
			fmt.Fprintln(os.Stderr, "makecubin:", err)
			os.Exit(1)
		}
	}
}

type settings struct{ ptxas, folder string }

// make makes the archive of an architecture.
func (s *settings) make(architecture string) error {
	maker, err := s.maker(architecture)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "makecubin")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(s.folder, architecture+".zip")
	before := madeBy(file, maker)
	kernels, err := wanted(architecture)
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for i := range kernels {
		all.Go(func() (err error) {
			k := &kernels[i]
			if k.Code = before.Compiled(*k); k.Code == nil {
				if k.Code, err = s.compile(filepath.Join(work, strconv.Itoa(i)), architecture, k.Text); err != nil {
					return fmt.Errorf("%s: %w", k.Entry, err)
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	archive, err := cubin.Write(maker, kernels)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d kernels, %d bytes, by %s\n", file, len(kernels), len(archive), maker)
	return os.WriteFile(file, archive, 0o644)
}

// maker describes the compiler and its options.
func (s *settings) maker(architecture string) (string, error) {
	out, err := exec.Command(s.ptxas, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w; the CUDA toolkit has it (in Debian the package nvidia-cuda-toolkit), and -ptxas says where. Until the machine code is made again, GPUs load the PTX of what has changed, and a test fails", s.ptxas, err)
	}
	_, release, _ := strings.Cut(string(out), "release ")
	release, _, _ = strings.Cut(release, "\n")
	return "ptxas " + release + " -arch=" + architecture, nil
}

// madeBy returns the archive in a file, an empty one if there is none or another compiler made it.
func madeBy(file, maker string) *cubin.Archive {
	if data, err := os.ReadFile(file); err == nil {
		if a, err := cubin.Read(data); err == nil && a.Maker == maker {
			return a
		}
	}
	return &cubin.Archive{}
}

// compile runs the compiler on a text. The name is that of its files, without what comes after the dot.
func (s *settings) compile(name, architecture string, text []byte) ([]byte, error) {
	if err := os.WriteFile(name+".ptx", text, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command(s.ptxas, "-arch="+architecture, "-o", name+".cubin", name+".ptx").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", s.ptxas, err, out)
	}
	return os.ReadFile(name + ".cubin")
}
