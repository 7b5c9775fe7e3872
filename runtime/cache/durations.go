// Durations: how long nodes took on a device, by the fingerprint of what they do.

package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dagrun/dagrun/internal/files"
)

// Durations are samples of how long nodes took, in microseconds, by fingerprint; one sample for each replay, the latest last.
type Durations map[string][]float64

const (
	// MostSamples is how many samples of a node are kept: the latest ones.
	MostSamples = 9
	// mostBatches is how many files of one device there may be before they are merged into one.
	mostBatches = 16
	// mostEntries is how many nodes' samples are kept for a device: those that were measured last.
	mostEntries = 20_000
	// mostFiles is how many files of one device there may be at most, with those that cannot be read and therefore not be merged.
	mostFiles = 4 * mostBatches
	longestUS = 1e15
)

// device is the folder of a device's durations. What makes devices different may be of any length and hold anything.
func (f *Folder) device(device string) string {
	sum := sha256.Sum256([]byte(device))
	return filepath.Join(f.path, durationsKind, hex.EncodeToString(sum[:8]))
}

// batch is one file: what one process measured at one time, or several such files merged.
type batch struct {
	at     int64  // in nanoseconds since 1970
	device string // for people
	fresh  bool   // earlier samples of its nodes no longer count
	order  []string
	took   Durations
}

// encode writes a batch as text: a line for the device, one for each node.
func (b *batch) encode() []byte {
	flag := "adds"
	if b.fresh {
		flag = "replaces"
	}
	text := fmt.Appendf(nil, "at %d %s %s\n", b.at, flag, strconv.Quote(b.device))
	for _, node := range b.order {
		text = append(text, node...)
		for _, us := range b.took[node] {
			text = strconv.AppendFloat(append(text, ' '), us, 'g', -1, 64)
		}
		text = append(text, '\n')
	}
	return text
}

// decodeBatch reads what encode wrote.
func decodeBatch(text []byte) (*batch, error) {
	b := &batch{took: Durations{}}
	head, rest, _ := bytes.Cut(text, []byte("\n"))
	at, quoted, ok := strings.Cut(strings.TrimPrefix(string(head), "at "), " ")
	flag, quoted, _ := strings.Cut(quoted, " ")
	var err error
	if b.at, err = strconv.ParseInt(at, 10, 64); !ok || err != nil {
		return nil, fmt.Errorf("%w: its first line is wrong", ErrDamaged)
	}
	b.fresh = flag == "replaces"
	if b.device, err = strconv.Unquote(quoted); err != nil {
		return nil, fmt.Errorf("%w: its first line is wrong", ErrDamaged)
	}
	for line := 2; len(rest) > 0; line++ {
		var row []byte
		row, rest, _ = bytes.Cut(rest, []byte("\n"))
		words := strings.Fields(string(row))
		if len(words) < 2 || len(words) > 1+MostSamples || len(words[0]) != fingerprintLength || b.took[words[0]] != nil || len(b.order) == mostEntries {
			return nil, fmt.Errorf("%w: line %d is wrong", ErrDamaged, line)
		}
		samples := make([]float64, 0, len(words)-1)
		for _, word := range words[1:] {
			us, err := strconv.ParseFloat(word, 64)
			if err != nil || !(us >= 0 && us <= longestUS) {
				return nil, fmt.Errorf("%w: line %d is wrong", ErrDamaged, line)
			}
			samples = append(samples, us)
		}
		b.order = append(b.order, words[0])
		b.took[words[0]] = samples
	}
	return b, nil
}

// Fingerprint makes a key of Durations from any parts.
func Fingerprint(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:fingerprintLength/2])
}

// clocksDiffer is how far ahead the clock of another machine that shares the folder may be.
const clocksDiffer = time.Hour

// batches reads all files of a device, the earliest first. Files that cannot be used are left out and reported in the error.
func (f *Folder) batches(device string) (all []*batch, names []string, err error) {
	folder := f.device(device)
	found, err := list(folder)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, info := range found {
		if info.Name()[0] == '.' {
			continue
		}
		name := filepath.Join(folder, info.Name())
		body, err := read(durationsKind, name)
		var b *batch
		if err == nil {
			b, err = decodeBatch(body)
		}
		if err != nil {
			errs = append(errs, skipped(name, err))
			continue
		}
		if time.Unix(0, b.at).After(time.Now().Add(clocksDiffer)) {
			b.at = 0 // the clock was wrong; what was measured since would never count
		}
		all, names = append(all, b), append(names, name)
	}
	slices.SortStableFunc(all, func(a, b *batch) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	return all, names, errors.Join(errs...)
}

// merged merges batches, the earliest first.
func merged(all []*batch) *batch {
	m := &batch{took: Durations{}}
	latest := map[string]int{} // the batch that measured a node last
	for k, b := range all {
		m.at, m.device = max(m.at, b.at), b.device
		for _, node := range b.order {
			samples := b.took[node]
			if !b.fresh {
				samples = append(slices.Clone(m.took[node]), samples...)
			}
			m.took[node] = samples[max(0, len(samples)-MostSamples):]
			latest[node] = k
		}
	}
	m.order = slices.SortedFunc(maps.Keys(m.took), func(a, b string) int {
		if latest[a] != latest[b] {
			return latest[b] - latest[a]
		}
		return strings.Compare(a, b)
	})
	if len(m.order) > mostEntries {
		for _, node := range m.order[mostEntries:] {
			delete(m.took, node)
		}
		m.order = m.order[:mostEntries]
	}
	return m
}

// Durations returns the durations known for a device. If there is an error, it says which files were ignored, and the durations from the
// other files are returned with it.
func (f *Folder) Durations(device string) (Durations, error) {
	if f == nil {
		return nil, nil
	}
	all, _, err := f.batches(device)
	if len(all) > 0 {
		touch(f.device(device))
	}
	return merged(all).took, err
}

// KeepDurations adds samples to those of a device, or replaces earlier ones of the same nodes.
func (f *Folder) KeepDurations(ctx context.Context, device string, took Durations, replace bool) error {
	if f == nil || len(took) == 0 {
		return nil
	}
	b := &batch{at: time.Now().UnixNano(), device: device, fresh: replace, took: Durations{}}
	for _, node := range slices.Sorted(maps.Keys(took)) {
		samples := took[node]
		for _, us := range samples {
			if math.IsNaN(us) || us < 0 || us > longestUS {
				return fmt.Errorf("a node took %v us: that is no duration", us)
			}
		}
		if len(node) != fingerprintLength || len(samples) == 0 {
			return fmt.Errorf("%d samples of %q: that is no fingerprint of a node", len(samples), node)
		}
		if len(b.order) < mostEntries {
			b.order = append(b.order, node)
			b.took[node] = samples[max(0, len(samples)-MostSamples):]
		}
	}
	if err := f.writeBatch(ctx, b); err != nil {
		return err
	}
	return errors.Join(f.mergeBatches(ctx, device), trim(f.device(device), mostFiles, mostBytes), f.trimDevices())
}

// writeBatch writes a batch to a file named by its contents, so that two processes write the same file only with the same contents.
func (f *Folder) writeBatch(ctx context.Context, b *batch) error {
	body := b.encode()
	sum := sha256.Sum256(body)
	return write(ctx, durationsKind, filepath.Join(f.device(b.device), hex.EncodeToString(sum[:8])), body)
}

// mergeBatches makes one file of many. Another process may do the same at the same time: then both files hold the same samples, of which
// the latest count.
func (f *Folder) mergeBatches(ctx context.Context, device string) error {
	all, names, _ := f.batches(device) // ignored files were reported when they were first read
	if len(all) <= mostBatches {
		return nil
	}
	m := merged(all)
	m.device, m.fresh = device, true // otherwise samples that two processes merged would count twice
	if err := f.writeBatch(ctx, m); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return skipped(name, err)
		}
	}
	return nil
}

// trimDevices removes the least recently used devices.
func (f *Folder) trimDevices() error {
	devices, err := f.devices()
	if err != nil {
		return err
	}
	for k := 0; len(devices)-k > mostDevices; k++ {
		if err := empty(filepath.Join(f.path, durationsKind, devices[k].Name())); err != nil {
			return err
		}
	}
	return nil
}

// devices are the folders of durations, the least recently used first.
func (f *Folder) devices() ([]os.FileInfo, error) {
	entries, err := os.ReadDir(filepath.Join(f.path, durationsKind))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s is ignored: %w", filepath.Join(f.path, durationsKind), files.Reason(err))
	}
	var found []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.IsDir() && ours(info.Name()) {
			found = append(found, info)
		}
	}
	oldestFirst(found)
	return found, nil
}
