// Opening vendors' libraries at run time, and what to say where they are missing.

// Package libraries makes the calls of cuBLAS, cuSOLVER and cuFFT that pipelines may have. The libraries are opened at run time, without cgo
// and without a toolkit to build. The package knows their functions and nothing of pipelines: kernels/calls says what calls mean.
package libraries

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/dl"
)

// ErrMissing is the error where a vendor's library is not installed.
var ErrMissing = errors.New("not installed")

var vendors = map[string]*vendor{
	"cublas": {title: "cuBLAS", files: versions("libcublas.so", 13, 12, 11), needs: versions("libcublasLt.so", 13, 12, 11),
		packages: []string{"cu13", "cublas"}, wheel: "nvidia-cublas", functions: blasFunctions, create: newBlas, version: blasVersion},
	"cusolver": {title: "cuSOLVER", files: versions("libcusolver.so", 12, 11),
		needs: slices.Concat(versions("libcublasLt.so", 13, 12, 11), versions("libcublas.so", 13, 12, 11), versions("libnvJitLink.so", 13, 12),
			versions("libcusparse.so", 12, 11)),
		packages: []string{"cu13", "cusolver", "cublas", "cusparse", "nvjitlink"}, wheel: "nvidia-cusolver", functions: solverFunctions, create: newSolver,
		version: solverVersion},
	"cufft": {title: "cuFFT", files: versions("libcufft.so", 12, 11, 10), needs: versions("libnvJitLink.so", 13, 12),
		packages: []string{"cu13", "cufft", "nvjitlink"}, wheel: "nvidia-cufft", functions: fourierFunctions, create: newFourier, version: fourierVersion},
}

func versions(name string, numbers ...int) []string {
	var files []string
	for _, n := range numbers {
		files = append(files, fmt.Sprintf("%s.%d", name, n))
	}
	return files
}

// Names lists the libraries.
func Names() []string {
	var names []string
	for name := range vendors {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Open finds a library by its name here, such as "cublas": first with the dynamic loader's search path, then in a toolkit, then among the
// packages of conda and pip.
func Open(name string) (*Library, error) {
	v := vendors[name]
	if v == nil {
		return nil, fmt.Errorf("unknown library %q", name)
	}
	lib, err := dl.Open(v.files...)
	if err != nil {
		lib, err = v.openIn(folders(v.packages, os.Getenv), err)
	}
	if err != nil {
		return nil, v.missing(err)
	}
	return open(v, lib.Name, lib.Symbol)
}

// OpenWith is Open for a library whose functions are found by other means than the loader's, for example in tests.
func OpenWith(name string, resolve dl.Resolver) (*Library, error) {
	v := vendors[name]
	if v == nil || resolve == nil {
		return nil, fmt.Errorf("unknown library %q", name)
	}
	return open(v, v.files[0], resolve)
}

func open(v *vendor, file string, resolve dl.Resolver) (*Library, error) {
	l := &Library{vendor: v, file: file, address: map[string]uintptr{}}
	addresses := make([]uintptr, len(v.functions))
	if missing := resolve.Fill(addresses, v.functions); missing != "" {
		return nil, fmt.Errorf("%s (%s) has no %s; a newer one is needed", v.title, file, missing)
	}
	for k, name := range v.functions {
		l.address[name] = addresses[k]
	}
	return l, nil
}

// openIn looks in folders. What a library links to is opened before it, because the loader does not look there for it.
func (v *vendor) openIn(folders []string, first error) (*dl.Library, error) {
	opened := map[string]bool{}
	for _, need := range v.needs {
		for _, folder := range folders {
			base, _, _ := strings.Cut(need, ".so")
			if opened[base] {
				break
			}
			if path := filepath.Join(folder, need); isFile(path) {
				_, err := dl.Open(path)
				opened[base] = err == nil
			}
		}
	}
	for _, folder := range folders {
		for _, name := range v.files {
			path := filepath.Join(folder, name)
			if !isFile(path) {
				continue
			}
			lib, err := dl.Open(path)
			if err == nil {
				return lib, nil
			}
			first = err
		}
	}
	return nil, first
}

func (v *vendor) missing(why error) error {
	return fmt.Errorf("%s is %w: %w; install the CUDA toolkit, or run pip install %s; --backend cpu runs calls without it", v.title, ErrMissing, why, v.wheel)
}

// folders are where libraries may be that the loader does not look for: toolkits, conda's, pip's.
func folders(packages []string, getenv func(string) string) []string {
	var list []string
	for _, root := range []string{getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda", getenv("CONDA_PREFIX")} {
		if root == "" {
			continue
		}
		for _, folder := range dl.LibraryFolders() {
			list = append(list, filepath.Join(root, folder))
		}
	}
	for _, site := range dl.Sites(getenv) {
		for _, pack := range packages {
			list = append(list, filepath.Join(site, pack, "lib"))
		}
	}
	return list
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Title is the own name of a library: cuBLAS for "cublas".
func Title(name string) string {
	if v := vendors[name]; v != nil {
		return v.title
	}
	return name
}
