// The C library and what goes with it, embedded in the command and written to the cache folder when it is needed.

package recorder

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

//go:embed library/*.gz library/python/sitecustomize.py
var library embed.FS

// contents are the files that a recorded program needs, by the name that they get.
func contents() (map[string][]byte, error) {
	files := map[string][]byte{}
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("programs can be recorded on Linux only; this is %s (a recording can be checked anywhere)", runtime.GOOS)
	}
	packed, err := library.ReadFile("library/recorder-" + runtime.GOARCH + ".so.gz")
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("this release has no recorder for %s; a recording can be checked anywhere", runtime.GOARCH)
	}
	if err != nil {
		return nil, err
	}
	if files["recorder.so"], err = unzip(packed); err != nil {
		return nil, err
	}
	if packed, err = library.ReadFile("library/patch.fatbin.gz"); err != nil {
		return nil, err
	}
	if files["patch.fatbin"], err = unzip(packed); err != nil {
		return nil, err
	}
	files["python/sitecustomize.py"], err = library.ReadFile("library/python/sitecustomize.py")
	return files, err
}

func unzip(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Library returns the path of the C library, which has the functions of dagrun.h besides the recorder. It does nothing until it is used.
func Library() (string, error) {
	folder, err := unpack()
	return filepath.Join(folder, "recorder.so"), err
}

// unpack writes the files to a folder that is named by what they hold, so that versions do not meet, and returns it.
func unpack() (string, error) {
	files, err := contents()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range []string{"recorder.so", "patch.fatbin", "python/sitecustomize.py"} {
		fmt.Fprintf(sum, "%s %d\n", name, len(files[name]))
		sum.Write(files[name])
	}
	base, err := os.UserCacheDir() // and nowhere that others write to: programs load this
	if err != nil {
		return "", fmt.Errorf("there is no folder for the recorder: %w; set XDG_CACHE_HOME to one of yours", err)
	}
	folder := filepath.Join(base, "dagrun", "recorder", hex.EncodeToString(sum.Sum(nil)[:8]))
	for name, bytes := range files {
		if err := place(filepath.Join(folder, name), bytes); err != nil {
			return "", fmt.Errorf("the recorder could not be written: %w", err)
		}
	}
	return folder, nil
}

// place writes a file that is not there yet, in one step, since other processes may do the same or already use it.
func place(path string, bytes []byte) error {
	if there, err := os.ReadFile(path); err == nil && string(there) == string(bytes) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(bytes)
	err = errors.Join(err, temporary.Chmod(0o755), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}
