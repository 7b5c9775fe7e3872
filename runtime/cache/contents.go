// Lists the contents of a cache for people, and empties it.

package cache

import (
	"errors"
	"path/filepath"
	"strings"
	"time"
)

// Contents is what a cache holds.
type Contents struct {
	Folder   string           `json:"folder"`
	Devices  []DeviceContents `json:"durations"` // the least recently used first
	Choices  []ChoiceContents `json:"choices"`
	Loops    []Passes         `json:"loops"`    // what loops did when they ran last
	Notes    int              `json:"notes"`    // short texts: with how many hardware queues pipelines are faster
	Machines int              `json:"machines"` // devices that "dagrun devices --measure" measured
	Graphs   int              `json:"graphs"`   // captured graphs that dagrun.replan has planned
	Bytes    int64            `json:"bytes"`
	Ignored  []string         `json:"ignored"` // files that cannot be used, and why
}

// DeviceContents is what is known of one device.
type DeviceContents struct {
	Device string `json:"device"`
	Nodes  int    `json:"nodes"` // with different fingerprints
	Files  int    `json:"files"`
}

// ChoiceContents is one choice.
type ChoiceContents struct {
	Pipeline string    `json:"pipeline"`
	Device   string    `json:"device"`
	At       time.Time `json:"at"`
	Tried    int       `json:"tried"`
	EachUS   float64   `json:"each_us"` // of the faster way
}

// Contents lists what is in the cache. A file that cannot be used is listed as ignored. The error says why the whole folder cannot be.
func (f *Folder) Contents() (*Contents, error) {
	c := &Contents{Devices: []DeviceContents{}, Choices: []ChoiceContents{}, Loops: []Passes{}, Ignored: []string{}}
	if f == nil {
		return c, nil
	}
	if err := f.Usable(); err != nil {
		return nil, err
	}
	c.Folder = f.path
	devices, err := f.devices()
	c.note(err)
	for _, info := range devices {
		folder := filepath.Join(f.path, durationsKind, info.Name())
		found, err := list(folder)
		c.note(err)
		d := DeviceContents{}
		nodes := map[string]bool{}
		for _, file := range found {
			if strings.HasPrefix(file.Name(), unfinishedPrefix) {
				continue
			}
			name := filepath.Join(folder, file.Name())
			c.Bytes += file.Size()
			body, err := read(durationsKind, name)
			var b *batch
			if err == nil {
				b, err = decodeBatch(body)
			}
			if err != nil {
				c.ignore(name, err)
				continue
			}
			d.Device, d.Files = b.device, d.Files+1
			for _, node := range b.order {
				nodes[node] = true
			}
		}
		if d.Nodes = len(nodes); d.Files > 0 {
			c.Devices = append(c.Devices, d)
		}
	}
	each(c, choicesKind, decodeChoice, func(choice *Choice) {
		row := ChoiceContents{Pipeline: choice.Pipeline, Device: choice.Device, At: choice.At, Tried: choice.Tried, EachUS: choice.Ways[0].EachUS}
		for _, w := range choice.Ways {
			row.EachUS = min(row.EachUS, w.EachUS)
		}
		c.Choices = append(c.Choices, row)
	})
	each(c, passesKind, decodePasses, func(p *Passes) { c.Loops = append(c.Loops, *p) })
	c.Notes, c.Machines, c.Graphs = c.count(notesKind), c.count(machinesKind), c.count(graphsKind)
	return c, nil
}

// each visits what decode reads from the files of a kind, the least recently used first.
func each[T any](c *Contents, kind string, decode func(body []byte, key string) (T, error), visit func(T)) {
	folder := filepath.Join(c.Folder, kind)
	found, err := list(folder)
	c.note(err)
	for _, file := range found {
		if strings.HasPrefix(file.Name(), unfinishedPrefix) {
			continue
		}
		c.Bytes += file.Size()
		name := filepath.Join(folder, file.Name())
		var value T
		body, err := read(kind, name)
		if err == nil {
			value, err = decode(body, "")
		}
		if err != nil {
			c.ignore(name, err)
			continue
		}
		visit(value)
	}
}

// count counts the usable files of a kind.
func (c *Contents) count(kind string) (usable int) {
	each(c, kind, func([]byte, string) (any, error) { return nil, nil }, func(any) { usable++ })
	return usable
}

// note lists a folder that cannot be read as ignored.
func (c *Contents) note(err error) {
	if err != nil {
		c.Ignored = append(c.Ignored, err.Error())
	}
}

func (c *Contents) ignore(name string, err error) {
	if err := skipped(name, err); err != nil {
		c.Ignored = append(c.Ignored, err.Error())
	}
}

// Clear removes everything that was learned, and no other files in the folder.
func (f *Folder) Clear() error {
	if f == nil {
		return nil
	}
	if err := f.Usable(); err != nil {
		return err
	}
	var errs []error
	devices, err := f.devices()
	errs = append(errs, err)
	for _, info := range devices {
		errs = append(errs, empty(filepath.Join(f.path, durationsKind, info.Name())))
	}
	for _, kind := range []string{durationsKind, choicesKind, passesKind, notesKind, machinesKind, graphsKind} {
		errs = append(errs, empty(filepath.Join(f.path, kind)))
	}
	return errors.Join(errs...)
}
