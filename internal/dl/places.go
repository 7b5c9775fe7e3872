// Where CUDA's libraries are when the dynamic loader does not know: the folders of a toolkit, and of pip's packages.

package dl

import "path/filepath"

// LibraryFolders lists the folders of a toolkit, or of conda, that may have libraries.
func LibraryFolders() []string {
	return []string{"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}
}

// Sites lists the folders of NVIDIA's pip packages: those of the environment that is in use come before those of the user and of the machine.
func Sites(getenv func(string) string) []string {
	var sites []string
	for _, root := range []string{getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), filepath.Join(getenv("HOME"), ".local"), "/usr/local", "/usr"} {
		for _, packages := range []string{"site-packages", "dist-packages"} {
			if filepath.IsAbs(root) {
				found, _ := filepath.Glob(filepath.Join(root, "lib", "python3*", packages, "nvidia")) // the pattern is well-formed
				sites = append(sites, found...)
			}
		}
	}
	return sites
}
