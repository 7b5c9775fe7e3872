// Where libnvrtc and the headers of CUDA are: in a toolkit, or in packages of conda and pip.

package nvrtc

import (
	"os"
	"path/filepath"

	"github.com/dagrun/dagrun/internal/dl"
)

// place is where the parts of a toolkit are.
type place struct {
	libraries []string // folders that may have libnvrtc
	include   []string // folders of headers
}

var libraryNames = []string{"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}

// candidates are the files to open, in order: the loader's first.
func (p *place) candidates() []string {
	files := append([]string(nil), libraryNames...)
	for _, folder := range p.libraries {
		for _, name := range libraryNames {
			files = append(files, filepath.Join(folder, name))
		}
	}
	return files
}

// find looks for a toolkit, at last where it usually is, and if there is none for the packages of conda and pip: those of the environment that is
// in use come before those of the user and of the machine.
func find(given, usual string, getenv func(string) string) place {
	for _, root := range []string{given, getenv("CUDA_HOME"), getenv("CUDA_PATH"), usual} {
		if root != "" && isFolder(root) {
			return toolkit(root)
		}
	}
	if conda := getenv("CONDA_PREFIX"); conda != "" {
		if p := toolkit(conda); p.has("cuda_runtime.h") {
			return p
		}
	}
	for _, site := range dl.Sites(getenv) {
		if p := wheels(site); len(p.libraries)+len(p.include) > 0 {
			return p
		}
	}
	return place{}
}

// HeaderFolders are the folders of NVIDIA's headers: of a toolkit, or what conda or pip has installed.
func HeaderFolders(given string) []string {
	p := find(given, "/usr/local/cuda", os.Getenv)
	return p.include
}

// toolkit is the layout of NVIDIA's installer, and of conda.
func toolkit(root string) place {
	var p place
	for _, folder := range dl.LibraryFolders() {
		p.libraries = append(p.libraries, filepath.Join(root, folder))
	}
	for _, folder := range []string{"include", "include/cccl", "targets/x86_64-linux/include", "targets/x86_64-linux/include/cccl", "targets/sbsa-linux/include",
		"targets/sbsa-linux/include/cccl"} {
		p.addHeaders(filepath.Join(root, folder))
	}
	return p
}

// wheels is the layout of pip: a folder for each package, or since CUDA 13 one for all.
func wheels(site string) place {
	var p place
	for _, pack := range []string{"cu13", "cuda_nvrtc", "cuda_runtime", "cuda_cccl", "cuda_nvcc"} {
		if folder := filepath.Join(site, pack, "lib"); isFolder(folder) {
			p.libraries = append(p.libraries, folder)
		}
		p.addHeaders(filepath.Join(site, pack, "include"))
		p.addHeaders(filepath.Join(site, pack, "include", "cccl"))
	}
	return p
}

// addHeaders adds a folder that exists, once: in a toolkit, some are links to others.
func (p *place) addHeaders(folder string) {
	if !isFolder(folder) {
		return
	}
	info, err := os.Stat(folder)
	for _, other := range p.include {
		if known, err2 := os.Stat(other); err == nil && err2 == nil && os.SameFile(info, known) {
			return
		}
	}
	p.include = append(p.include, folder)
}

// has reports whether a folder of headers has a file.
func (p *place) has(header string) bool {
	for _, folder := range p.include {
		if _, err := os.Stat(filepath.Join(folder, header)); err == nil {
			return true
		}
	}
	return false
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
