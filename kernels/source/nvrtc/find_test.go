// Tests of where libnvrtc and the headers of CUDA are found.

package nvrtc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		files   []string // below the folder that the variables name
		env     map[string]string
		include []string
		library string
	}{
		"toolkit": {
			[]string{"t/include/cuda_runtime.h", "t/include/cccl/cuda/barrier", "t/lib64/libnvrtc.so.12", "venv/lib/python3.11/site-packages/nvidia/cuda_runtime/include/cuda_runtime.h"},
			map[string]string{"CUDA_HOME": "t", "VIRTUAL_ENV": "venv"},
			[]string{"t/include", "t/include/cccl"}, "t/lib64/libnvrtc.so.12"},
		"conda": {
			[]string{"conda/targets/x86_64-linux/include/cuda_runtime.h", "conda/include/zlib.h", "conda/lib/libnvrtc.so.12"},
			map[string]string{"CONDA_PREFIX": "conda"},
			[]string{"conda/include", "conda/targets/x86_64-linux/include"}, "conda/lib/libnvrtc.so.12"},
		"pip": {
			[]string{"venv/lib/python3.11/site-packages/nvidia/cuda_runtime/include/cuda_runtime.h", "venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
				"venv/lib/python3.11/site-packages/nvidia/cublas/lib/libcublas.so.12", "home/.local/lib/python3.9/site-packages/nvidia/cuda_runtime/include/cuda_runtime.h"},
			map[string]string{"VIRTUAL_ENV": "venv", "HOME": "home"},
			[]string{"venv/lib/python3.11/site-packages/nvidia/cuda_runtime/include"}, "venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"},
		"pip since CUDA 13": {
			[]string{"home/.local/lib/python3.12/site-packages/nvidia/cu13/include/cuda_runtime.h", "home/.local/lib/python3.12/site-packages/nvidia/cu13/include/cccl/cuda/barrier",
				"home/.local/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"},
			map[string]string{"HOME": "home"},
			[]string{"home/.local/lib/python3.12/site-packages/nvidia/cu13/include", "home/.local/lib/python3.12/site-packages/nvidia/cu13/include/cccl"},
			"home/.local/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"},
		"conda with pip": {
			[]string{"conda/include/zlib.h", "conda/lib/python3.10/site-packages/nvidia/cuda_runtime/include/cuda_runtime.h", "conda/lib/python3.10/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"},
			map[string]string{"CONDA_PREFIX": "conda"},
			[]string{"conda/lib/python3.10/site-packages/nvidia/cuda_runtime/include"}, "conda/lib/python3.10/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range c.files {
				path := filepath.Join(root, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, nil, 0o644))
			}
			p := find("", filepath.Join(root, "none"), func(name string) string {
				if c.env[name] == "" {
					return ""
				}
				return filepath.Join(root, c.env[name])
			})
			var include []string
			for _, folder := range p.include {
				include = append(include, strings.TrimPrefix(folder, root+"/"))
			}
			require.Equal(t, c.include, include)
			require.Contains(t, p.candidates(), filepath.Join(root, c.library))
			require.Equal(t, libraryNames, p.candidates()[:len(libraryNames)])
		})
	}
}

// A folder that is a link to another one is searched once.
func TestHeadersOnce(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "targets/x86_64-linux/include"), 0o755))
	require.NoError(t, os.Symlink("targets/x86_64-linux/include", filepath.Join(root, "include")))
	p := toolkit(root)
	require.Equal(t, []string{filepath.Join(root, "include")}, p.include)
}
