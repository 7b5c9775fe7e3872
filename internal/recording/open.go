// Opening recordings: packed ones, the part of one process, and folders of parts that were never packed because the recorder was killed.

package recording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/internal/files"
)

// ErrNotRecording is the error of a file that is something else.
var ErrNotRecording = errors.New("not a recording")

// PartsFolder is the folder in which the processes of a recording write their parts, until they are packed.
func PartsFolder(name string) string { return name + ".parts" }

// Archive is a recording whose processes are read one at a time.
type Archive struct {
	Meta
	Cut      bool // see Recording
	Confined bool // of each Process

	parts []archived
	blobs map[blobName]section
	held  *mapping
	plain bool // nothing may be packed
}

// archived is where a process is: the sections of a packed recording, or a part.
type archived struct {
	name     string
	process  section
	records  []section
	last     bool // more of this process may be missing
	part     *mapping
	packedIn *mapping
}

// ReadFile reads a recording with all its processes. Code and contents of packed recordings are read when they are asked for, by Load.
func ReadFile(name string) (*Recording, error) {
	a, err := Open(name)
	if err != nil {
		return nil, err
	}
	r := &Recording{Started: a.Started, Command: a.Command, Status: a.Status, Cut: a.Cut, held: a.held}
	for k := range a.Processes() {
		p, err := a.Process(k)
		if err != nil {
			a.Close()
			return nil, err
		}
		r.Processes = append(r.Processes, p)
	}
	if a.held == nil { // parts, which do not know what was started
		slices.SortStableFunc(r.Processes, func(a, b *Process) int { return cmp.Compare(a.StartUnix, b.StartUnix) })
		if len(r.Processes) > 0 {
			r.Command, r.Started = r.Processes[0].Command, r.Processes[0].StartUnix
		}
	}
	return r, nil
}

// Open opens a recording. If name does not exist but the folder of its parts does, these are read.
func Open(name string) (*Archive, error) {
	info, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		if folder, inside := os.Stat(PartsFolder(name)); inside == nil && folder.IsDir() {
			return openFolder(PartsFolder(name))
		}
	}
	switch {
	case err != nil:
		return nil, files.CannotRead(name, err)
	case info.IsDir():
		return openFolder(name)
	}
	m, err := openFile(name)
	if err != nil {
		return nil, err
	}
	a, err := openBytes(name, m)
	if err != nil {
		m.close()
	}
	return a, err
}

func openBytes(name string, m *mapping) (*Archive, error) {
	switch {
	case m.begins(recordingMagic):
		a := &Archive{Meta: Meta{Status: -1}, blobs: map[blobName]section{}, held: m}
		return a, a.sections(name)
	case m.begins(formatMagic):
		return &Archive{Meta: Meta{Status: -1}, Cut: true, parts: []archived{{name: name, part: m}}}, nil
	}
	return nil, fmt.Errorf("%s is %w", name, ErrNotRecording)
}

// OpenPlanned opens the file of a planned graph: a recording of one process that made no calls, of which nothing is missing and nothing packed.
func OpenPlanned(name string) (*Process, Meta, error) {
	m, err := openFile(name)
	if err != nil {
		return nil, Meta{}, err
	}
	p, meta, err := planned(name, m)
	if err != nil {
		m.close()
	}
	return p, meta, err
}

func planned(name string, m *mapping) (*Process, Meta, error) {
	wrong := func(at int64, text string) (*Process, Meta, error) { return nil, Meta{}, &Error{name, at, text} }
	if !m.begins(plannedMagic) {
		return wrong(0, "this is no planned graph: it does not begin with "+plannedMagic)
	}
	a := &Archive{blobs: map[blobName]section{}, held: m, plain: true}
	if err := a.sections(name); err != nil {
		return nil, Meta{}, err
	}
	if a.Cut {
		return wrong(int64(len(m.bytes)), "the file was cut: it has no index")
	}
	if len(a.parts) != 1 {
		return wrong(recordingHeader, fmt.Sprintf("%d processes instead of one", len(a.parts)))
	}
	p, err := a.Process(0)
	if err != nil {
		return nil, Meta{}, err
	}
	if p.Cut || len(p.Calls) > 0 {
		return wrong(a.parts[0].process.at, "this is the recording of a program, and no planned graph")
	}
	p.held = m
	return p, a.Meta, nil
}

// openFolder opens the parts in a folder. Other files are left alone.
func openFolder(folder string) (*Archive, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, files.CannotRead(folder, err)
	}
	a := &Archive{Meta: Meta{Status: -1}, Cut: true}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".part" || !entry.Type().IsRegular() {
			continue
		}
		name := filepath.Join(folder, entry.Name())
		m, err := openFile(name)
		if err != nil {
			a.Close()
			return nil, err
		}
		a.parts = append(a.parts, archived{name: name, part: m})
	}
	if len(a.parts) == 0 {
		return nil, fmt.Errorf("%s is %w: no process has written a part (*.part) there", folder, ErrNotRecording)
	}
	return a, nil
}

// sections finds the sections by the index or, if the file was cut, one after the other.
func (a *Archive) sections(name string) error {
	file := a.held.bytes
	wrong := func(at uint64, text string) error { return &Error{name, int64(at), text} }
	if len(file) < recordingHeader {
		return wrong(uint64(len(file)), "the file ends in its header")
	}
	if version := word(file, 1); version != recordingVersion {
		return wrong(8, fmt.Sprintf("version %d of recordings; this dagrun reads version %d", version, recordingVersion))
	}
	index, there, err := a.index(name)
	if err != nil {
		return err
	}
	a.Cut = !there
	next := uint64(recordingHeader)
	for k := 0; !there || k < len(index); k++ {
		at := next
		if there {
			at = index[k]
		}
		s, short, text := sectionAt(file, at)
		if short && !there {
			break
		}
		if text == "" && at < next {
			text = "this section overlaps the one before it in the index"
		}
		if text != "" {
			return wrong(at, text)
		}
		if a.plain && s.method != methodStored {
			return wrong(at, "a section is packed, which those of a planned graph never are")
		}
		next = s.end()
		if err := a.section(name, s); err != nil {
			return err
		}
	}
	if n := len(a.parts); n > 0 {
		a.parts[n-1].last = !there
	}
	return nil
}

func (a *Archive) section(name string, s section) error {
	switch s.kind {
	case sectionMeta:
		text, wrong := s.unpack(a.held.bytes)
		if wrong == "" {
			if err := json.Unmarshal(text, &a.Meta); err != nil {
				wrong = err.Error()
			}
		}
		if wrong != "" {
			return &Error{name, s.at, wrong}
		}
	case sectionProcess:
		a.parts = append(a.parts, archived{name: name, process: s, packedIn: a.held})
	case sectionRecords:
		if len(a.parts) == 0 {
			return &Error{name, s.at, "records of no process"}
		}
		of := &a.parts[len(a.parts)-1]
		of.records = append(of.records, s)
	case sectionBlob:
		a.blobs[blobName{s.hash, s.bytes}] = s
	}
	return nil
}

// index reads the index at the end of the file, if it is there.
func (a *Archive) index(name string) (offsets []uint64, there bool, err error) {
	file := a.held.bytes
	end := file[len(file)-endBytes:]
	if string(end[8:]) != endMagic {
		return nil, false, nil
	}
	at := word(end, 0)
	s, _, wrong := sectionAt(file, at)
	if wrong == "" && (s.kind != sectionIndex || s.method != methodStored || s.bytes%8 != 0) {
		wrong = "the end of the file says that the index is here, and it is not"
	}
	if wrong == "" {
		var b []byte
		if b, wrong = s.unpack(file); wrong == "" {
			return wordsOf(b), true, nil
		}
	}
	return nil, false, &Error{name, int64(at), wrong}
}

// Processes is how many there are.
func (a *Archive) Processes() int { return len(a.parts) }

// Process reads a process.
func (a *Archive) Process(k int) (*Process, error) {
	of := a.parts[k]
	if of.part != nil {
		p, err := ParsePart(of.name, of.part.bytes)
		if err != nil {
			return nil, err
		}
		p.held, p.Confined = of.part, a.Confined
		return p, nil
	}
	p, err := of.read()
	if err != nil {
		return nil, err
	}
	p.Confined = a.Confined
	for k := range p.Modules {
		if m := &p.Modules[k]; m.Code == nil && m.Hash != 0 {
			m.unpack = a.blob(of.name, m.Hash, m.Bytes)
		}
	}
	for k := range p.Contents {
		if c := &p.Contents[k]; c.Data == nil && c.Hash != 0 {
			c.unpack = a.blob(of.name, c.Hash, c.Bytes)
		}
	}
	return p, nil
}

// blob returns how to unpack code or contents, or nil if they are not there.
func (a *Archive) blob(name string, hash, bytes uint64) func() ([]byte, error) {
	s, ok := a.blobs[blobName{hash, bytes}]
	if !ok {
		return nil
	}
	file := a.held.bytes
	return func() ([]byte, error) {
		b, wrong := s.unpack(file)
		if wrong != "" {
			return nil, &Error{name, s.at, wrong}
		}
		return b, nil
	}
}

// read unpacks a process and decodes it.
func (of *archived) read() (*Process, error) {
	file := of.packedIn.bytes
	head, wrong := of.process.unpack(file)
	if wrong == "" && (len(head) != headerBytes || !beginsPart(head)) {
		wrong = fmt.Sprintf("the header of a process has %d bytes and begins with %q", len(head), head[:min(len(head), 8)])
	}
	h := header{cut: true}
	if wrong == "" && head[0] != 0 {
		h = headerOf(head)
		wrong = wrongVersion(h.version)
	}
	if wrong != "" {
		return nil, &Error{of.name, of.process.at, wrong}
	}
	h.cut = h.cut || of.last
	pieces := make([]piece, len(of.records))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	at := int64(0)
	for k, s := range of.records {
		pieces[k].at = at
		at += int64(s.bytes)
		group.Go(func() error {
			b, wrong := s.unpack(file)
			if wrong != "" {
				return &Error{of.name, s.at, wrong}
			}
			if s.method == methodStored {
				b = slices.Clone(b) // the file must not be changed
			}
			sumUp(b)
			pieces[k].bytes = b
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	p := h.process()
	err := decode(p, pieces, func(at int64, text string) error {
		k, found := slices.BinarySearchFunc(pieces, at, func(piece piece, at int64) int { return cmp.Compare(piece.at, at) })
		if !found {
			k--
		}
		return &Error{of.name, of.records[k].at, fmt.Sprintf("byte %d of this section, unpacked: %s", at-pieces[k].at, text)}
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Close gives back the file's memory. See Process.Close.
func (a *Archive) Close() error {
	err := a.held.close()
	for _, of := range a.parts {
		err = errors.Join(err, of.part.close())
	}
	return err
}
