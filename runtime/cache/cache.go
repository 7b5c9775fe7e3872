// The folder of what was learned: where it is, the envelope that all its files share, and how much may be in it.

// Package cache keeps what was learned about pipelines between runs: how long nodes take, and which plan was best. Nothing in it is
// needed, and nothing in it is trusted: a file that is damaged, foreign or hostile is skipped with a warning, a duration from it only
// changes what is planned, and a plan from it is proved like any other before it runs.
//
// Files are written whole under a temporary name and renamed, and never changed afterwards, so that several processes may use one folder.
package cache

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/words"
)

// Variable is the environment variable that names another folder for the cache; "off" disables it.
const Variable = "DAGRUN_CACHE"

// Off is the value of Variable that disables the cache.
const Off = "off"

// Folder is a cache. A nil Folder holds nothing and keeps nothing.
type Folder struct{ path string }

// Open returns the cache in a folder, which is created when something is kept. The empty path means the folder that Variable names, or
// otherwise dagrun in os.UserCacheDir. It returns nil, which is no cache, for "off" and for a user without a cache folder.
func Open(path string) *Folder {
	if path == "" {
		path = os.Getenv(Variable)
	}
	if path == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		path = filepath.Join(base, "dagrun")
	}
	if path == Off {
		return nil
	}
	return &Folder{path: path}
}

// Missing returns why Open finds no folder, for a user who has not disabled the cache; nil if it finds one.
func Missing(path string) error {
	if path != "" || os.Getenv(Variable) != "" {
		return nil
	}
	if _, err := os.UserCacheDir(); err != nil {
		return fmt.Errorf("this user has no cache folder, since %w; --cache-dir or $%s names one", err, Variable)
	}
	return nil
}

// Path returns the folder of the cache; "" if there is none.
func (f *Folder) Path() string {
	if f == nil {
		return ""
	}
	return f.path
}

// The kinds of files. Each has its own folder.
const (
	durationsKind = "durations"
	choicesKind   = "choices"
)

// How much a cache may hold, and how large one file may be. The least recently used files go first.
const (
	mostFileBytes = 16 << 20
	mostChoices   = 1000
	mostBytes     = 128 << 20 // of choices
	mostDevices   = 32
)

const magic = "dagrun cache 1 "

// ErrDamaged is the error of a file that cannot be used.
var ErrDamaged = errors.New("not usable")

// sealed wraps the contents of a file with its kind and a checksum.
func sealed(kind string, body []byte) []byte {
	text := append([]byte(magic+kind+"\n"), body...)
	sum := sha256.Sum256(text)
	return append(hex.AppendEncode(text, sum[:]), '\n')
}

// unsealed checks kind and checksum and returns the contents of a file.
func unsealed(kind string, text []byte) ([]byte, error) {
	const tail = 2*sha256.Size + 1
	head := []byte(magic + kind + "\n")
	if !bytes.HasPrefix(text, []byte("dagrun cache ")) {
		return nil, fmt.Errorf("%w: it is not a file of dagrun's", ErrDamaged)
	}
	if !bytes.HasPrefix(text, head) {
		return nil, fmt.Errorf("%w: another version of dagrun wrote it", ErrDamaged)
	}
	if len(text) < len(head)+tail {
		return nil, fmt.Errorf("%w: it is cut short", ErrDamaged)
	}
	body := text[:len(text)-tail]
	sum := sha256.Sum256(body)
	if string(text[len(text)-tail:]) != hex.EncodeToString(sum[:])+"\n" {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	return body[len(head):], nil
}

// read returns the contents of a file of a kind. Only regular files are opened: reading anything else could wait forever.
func read(kind, name string) ([]byte, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is not a regular file", ErrDamaged)
	}
	if info.Size() > mostFileBytes {
		return nil, fmt.Errorf("%w: it is larger than %s", ErrDamaged, words.Bytes(mostFileBytes))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostFileBytes+1))
	if err != nil {
		return nil, err
	}
	return unsealed(kind, text)
}

// mostWrites is how often a file is written again after another process has cleared the cache in between.
const mostWrites = 8

// write writes a file, replacing an existing one of that name if it is a regular file.
func write(ctx context.Context, kind, name string, body []byte) error {
	for range mostWrites - 1 {
		err := writeOnce(ctx, kind, name, body)
		if cleared := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist); !cleared { // it exists: another process made the folder, and one removed it
			return err
		}
	}
	return writeOnce(ctx, kind, name, body)
}

func writeOnce(ctx context.Context, kind, name string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, files.Reason(err))
	}
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("cannot write %s: it is not a regular file", name)
	}
	return files.Save(ctx, name, func(w io.Writer) error {
		_, err := w.Write(sealed(kind, body))
		return err
	})
}

// skipped is the error of a file that is not used. A file that is gone was removed by another process.
func skipped(name string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, gone := os.Lstat(name); errors.Is(err, ErrDamaged) && gone == nil && info.Mode().IsRegular() && ours(info.Name()) {
		return fmt.Errorf("%s is ignored: %w (dagrun cache --clear removes it)", name, files.Reason(err))
	}
	return fmt.Errorf("%s is ignored: %w", name, files.Reason(err))
}

// list returns the regular files of a folder, the least recently used first. A folder that is not there has none.
func list(folder string) ([]os.FileInfo, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s is ignored: %w", folder, files.Reason(err))
	}
	var found []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			found = append(found, info)
		}
	}
	oldestFirst(found)
	return found, nil
}

func oldestFirst(found []os.FileInfo) {
	slices.SortFunc(found, func(a, b os.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
}

// fingerprintLength is how many characters a fingerprint has.
const fingerprintLength = 32

// ours reports whether a file or folder has a name that this package gives. The folder that a user names may hold others, which are never
// removed.
func ours(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && (len(name) == fingerprintLength || len(name) == fingerprintLength/2)
}

// Usable returns why nothing can be kept in the folder, and nothing of it used: nil if it is there, or can be made when something is kept.
func (f *Folder) Usable() error {
	if f == nil {
		return nil
	}
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, linked := os.Lstat(f.path); linked != nil {
			return nil
		}
		return fmt.Errorf("%s is a link that leads nowhere", f.path)
	}
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder", f.path)
	}
	if err == nil {
		var opened *os.File
		if opened, err = os.Open(f.path); err == nil {
			return opened.Close()
		}
	}
	return fmt.Errorf("%s cannot be read: %w", f.path, files.Reason(err))
}

// unfinishedPrefix begins the names of files that are being written, as files.Save makes them.
const unfinishedPrefix = ".dagrun-"

// staleAfter is the age from which an unfinished file is assumed to belong to a killed process.
const staleAfter = time.Hour

// trim removes the least recently used files of a folder beyond a number and a size, and unfinished files of killed processes.
func trim(folder string, most int, bytes int64) error {
	found, err := list(folder)
	if err != nil {
		return err
	}
	total := int64(0)
	kept := found[:0]
	for _, info := range found {
		if strings.HasPrefix(info.Name(), unfinishedPrefix) {
			if time.Since(info.ModTime()) > staleAfter {
				_ = os.Remove(filepath.Join(folder, info.Name())) // the file may be gone already, or be written again; neither does harm
			}
			continue
		}
		if !ours(info.Name()) {
			continue
		}
		total += info.Size()
		kept = append(kept, info)
	}
	for k := 0; k < len(kept) && (len(kept)-k > most || total > bytes); k++ {
		if err := os.Remove(filepath.Join(folder, kept[k].Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot make room in %s: %w", folder, files.Reason(err))
		}
		total -= kept[k].Size()
	}
	return nil
}

// longestWrite is the age up to which an unfinished file is left to the process that may be writing it.
const longestWrite = time.Minute

// empty removes the files of this package in a folder, and the folder if nothing else is in it.
func empty(folder string) error {
	found, err := list(folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, info := range found {
		unfinished := strings.HasPrefix(info.Name(), unfinishedPrefix) && time.Since(info.ModTime()) > longestWrite
		if !ours(info.Name()) && !unfinished {
			continue
		}
		if err := os.Remove(filepath.Join(folder, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("cannot remove %s: %w", filepath.Join(folder, info.Name()), files.Reason(err)))
		}
	}
	_ = os.Remove(folder) // something else is in it, or it was never made
	return errors.Join(errs...)
}

// touch marks a file as used just now. A folder that cannot be written to keeps its order.
func touch(name string) {
	now := time.Now()
	_ = os.Chtimes(name, now, now)
}
