// Where NVIDIA's libraries are that the recorder needs: in the toolkit, or in Python's packages.

package recorder

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/files"
)

// findCUPTI looks where the command's Python has it, and in the toolkit.
func findCUPTI(command []string, given string) (string, error) {
	if given != "" {
		return given, readable("--cupti", given)
	}
	var places []string
	if python := pythonOf(command); python != "" {
		site := filepath.Join(filepath.Dir(filepath.Dir(python)), "lib", "python3*", "site-packages", "nvidia")
		places = append(places, filepath.Join(site, "cu1*", "lib", "libcupti.so.1*"), filepath.Join(site, "cuda_cupti", "lib", "libcupti.so.1*"))
	}
	for _, root := range toolkits() {
		places = append(places, filepath.Join(root, "lib64", "libcupti.so"), filepath.Join(root, "extras", "CUPTI", "lib64", "libcupti.so"),
			filepath.Join(root, "targets", "*", "lib", "libcupti.so"))
	}
	if found := first(places); found != "" {
		return found, nil
	}
	return "", &missingTool{Name: "CUPTI (libcupti.so)",
		Install: "it comes with the CUDA toolkit and with PyTorch (pip install nvidia-cuda-cupti)", Flag: "--cupti"}
}

func findSanitizer(given string) (string, error) {
	if given != "" {
		return given, readable("--sanitizer", given)
	}
	var places []string
	for _, root := range toolkits() {
		places = append(places, filepath.Join(root, "compute-sanitizer", "libsanitizer-public.so"),
			filepath.Join(root, "extras", "compute-sanitizer", "libsanitizer-public.so"))
	}
	if found := first(places); found != "" {
		return found, nil
	}
	return "", &missingTool{
		Name:    "NVIDIA's Sanitizer API (libsanitizer-public.so), which measures what kernels access,",
		Install: "it is in the CUDA toolkit's package cuda-sanitizer (NVIDIA's apt: cuda-sanitizer-13-0, conda: cuda-sanitizer-api)",
		Flag:    "--sanitizer",
		Without: "dagrun record --accesses=arguments records without it, and check then assumes that a kernel may touch all that its arguments point into",
	}
}

// missingTool is the error if a library of NVIDIA's is not there.
type missingTool struct{ Name, Install, Flag, Without string }

func (e *missingTool) Error() string {
	text := fmt.Sprintf("%s was not found: %s; %s PATH names it, and CUDA_HOME the toolkit", e.Name, e.Install, e.Flag)
	if e.Without != "" {
		text += ". " + e.Without
	}
	return text
}

func toolkits() []string {
	var roots []string
	for _, name := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if root := os.Getenv(name); root != "" {
			roots = append(roots, root)
		}
	}
	if compiler, err := exec.LookPath("nvcc"); err == nil {
		if real, err := filepath.EvalSymlinks(compiler); err == nil {
			roots = append(roots, filepath.Dir(filepath.Dir(real)))
		}
	}
	newest, _ := filepath.Glob("/usr/local/cuda-1*")
	slices.Reverse(newest)
	return append(append(roots, "/usr/local/cuda", "/opt/cuda"), newest...)
}

// pythonOf is the interpreter that a command starts, "" if that is not plain to see.
func pythonOf(command []string) string {
	name := filepath.Base(command[0])
	if !strings.HasPrefix(name, "python") && name != "torchrun" {
		return ""
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return ""
	}
	return path
}

// first returns the last, and so newest, match of the first pattern that matches something.
func first(patterns []string) string {
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			slices.Sort(found)
			return found[len(found)-1]
		}
	}
	return ""
}

func readable(flag, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s %s: %w", flag, path, files.Reason(err))
	}
	return file.Close()
}
