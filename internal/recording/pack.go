// Packing: the parts of all processes become one file. Code and contents are stored once.

package recording

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/internal/files"
)

// Meta is what is known of the whole program.
type Meta struct {
	Command []string `json:"command"`
	Status  int      `json:"status"`  // exit status; -1 if it is not known
	Started int64    `json:"started"` // nanoseconds since 1970

	Graph        string `json:"graph,omitempty"`        // of a planned graph: its name
	Architecture string `json:"architecture,omitempty"` // of a planned graph: that its code is for, "" if it is PTX
}

// Part is the file that one process wrote. The name is for errors.
type Part struct {
	Name  string
	Bytes []byte
}

const (
	chunkBytes = 1 << 20 // of records in a section
	blobLeast  = 1 << 10 // bytes of code or contents that get a section of their own
)

// Pack writes a recording of the parts whose files have these names.
func Pack(ctx context.Context, name string, partFiles []string, meta Meta) error {
	parts := make([]Part, len(partFiles))
	for k, file := range partFiles {
		m, err := openFile(file)
		if err != nil {
			return err
		}
		defer m.close()
		parts[k] = Part{file, m.bytes}
	}
	return files.Save(ctx, name, func(w io.Writer) error { return PackTo(w, meta, parts...) })
}

// PackTo writes a recording of parts, in the order in which their processes started.
func PackTo(w io.Writer, meta Meta, parts ...Part) error {
	p := &packer{w: w, blobs: map[blobName][]byte{}}
	if err := p.begin(recordingMagic, meta); err != nil {
		return err
	}
	order := slices.Clone(parts)
	started := func(part Part) uint64 {
		if len(part.Bytes) < headerBytes {
			return 0
		}
		return headerOf(part.Bytes).startUnix
	}
	slices.SortStableFunc(order, func(a, b Part) int { return cmp.Compare(started(a), started(b)) })
	for _, part := range order {
		if err := p.part(part); err != nil {
			return err
		}
	}
	return p.end()
}

// PackPlanned writes the file of a planned graph, of records without offsets. Nothing in it is packed, so that its readers need not unpack.
func PackPlanned(w io.Writer, meta Meta, records []Record) error {
	p := &packer{w: w, blobs: map[blobName][]byte{}, stored: true}
	if err := p.begin(plannedMagic, meta); err != nil {
		return err
	}
	head := make([]byte, headerBytes)
	copy(head, formatMagic)
	binary.LittleEndian.PutUint32(head[8:], formatVersion)
	binary.LittleEndian.PutUint64(head[56:], 1) // it has ended
	p.add(section{kind: sectionProcess}, head)
	for k := range records {
		r := &records[k]
		if p.moved(r) {
			r = &Record{Kind: r.Kind, Words: r.Words}
		}
		p.record(r.Encode())
	}
	p.endRecords()
	return p.end()
}

type blobName struct{ hash, bytes uint64 }

// packer writes sections. They are packed side by side and written in order.
type packer struct {
	w        io.Writer
	at       uint64
	sections []uint64
	blobs    map[blobName][]byte // that were written
	queue    []*job
	chunk    []byte // of records that have no section yet
	stored   bool   // nothing is packed
	err      error
}

// job is a section to write.
type job struct {
	section
	contents []byte
	plain    bool // as it is
}

func (p *packer) write(b []byte) {
	if p.err == nil {
		_, p.err = p.w.Write(b)
		p.at += uint64(len(b))
	}
}

// begin writes what comes before all processes.
func (p *packer) begin(magic string, meta Meta) error {
	p.write(binary.LittleEndian.AppendUint64([]byte(magic), recordingVersion))
	text, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	p.add(section{kind: sectionMeta}, text)
	return nil
}

func (p *packer) part(part Part) error {
	h, pieces, err := splitPart(part.Name, part.Bytes)
	if err != nil {
		return err
	}
	head := make([]byte, headerBytes)
	copy(head, part.Bytes)
	if h.cut {
		binary.LittleEndian.PutUint64(head[56:], 0)
	}
	p.add(section{kind: sectionProcess}, head)
	for _, piece := range pieces {
		for at := 0; at < len(piece.bytes); {
			rest := piece.bytes[at:]
			f, short, wrong := frameOf(rest)
			if short && piece.cut {
				break
			}
			if wrong != "" {
				return &Error{part.Name, piece.at + int64(at), wrong}
			}
			record := rest[:f.size]
			at += int(f.size)
			if f.kind == Module || f.kind == Contents {
				if r := recordOf(record, f, 0); p.moved(&r) {
					r.Tail = nil
					record = r.Encode()
				}
			}
			p.record(record)
		}
	}
	p.endRecords()
	return p.err
}

// record appends a record to those of the process.
func (p *packer) record(record []byte) {
	if len(p.chunk)+len(record) > chunkBytes {
		p.endRecords()
	}
	if p.chunk == nil {
		p.chunk = make([]byte, 0, max(chunkBytes, len(record)))
	}
	p.chunk = append(p.chunk, record...)
}

func (p *packer) endRecords() {
	if len(p.chunk) > 0 {
		p.add(section{kind: sectionRecords}, p.chunk)
		p.chunk = nil
	}
}

// moved tells whether the tail of a record is in a section of its own, and writes that where it is not there yet.
func (p *packer) moved(r *Record) bool {
	if r.Kind != Module && r.Kind != Contents || len(r.Words) < shapes[r.Kind].words || len(r.Tail) < blobLeast {
		return false
	}
	name := blobName{r.Words[3], uint64(len(r.Tail))}
	if name.hash == 0 || name.bytes != r.Words[2] {
		return false
	}
	if there, ok := p.blobs[name]; ok {
		return bytes.Equal(there, r.Tail)
	}
	p.blobs[name] = r.Tail
	p.add(section{kind: sectionBlob, hash: name.hash}, r.Tail)
	return true
}

func (p *packer) add(s section, contents []byte) {
	p.queue = append(p.queue, &job{s, contents, p.stored})
	if len(p.queue) >= 2*runtime.GOMAXPROCS(0) && p.err == nil {
		p.err = p.flush()
	}
}

func (p *packer) flush() error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, j := range p.queue {
		group.Go(j.pack)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, j := range p.queue {
		p.put(j)
	}
	p.queue = p.queue[:0]
	return p.err
}

// pack replaces the contents by what is stored, and sets the header.
func (j *job) pack() error {
	raw, level := j.contents, flate.DefaultCompression
	j.bytes = uint64(len(raw))
	if j.kind == sectionRecords {
		raw, level = make([]byte, len(raw)), flate.BestSpeed
		differences(raw, j.contents)
		j.contents = raw
	}
	if !j.plain {
		if err := j.deflate(raw, level); err != nil {
			return err
		}
	}
	j.stored, j.sum = uint64(len(j.contents)), crc32.Checksum(j.contents, sums)
	return nil
}

// deflate replaces the contents where that makes them shorter.
func (j *job) deflate(raw []byte, level int) error {
	var out bytes.Buffer
	packer, err := flate.NewWriter(&out, level)
	if err != nil {
		return err
	}
	if _, err := packer.Write(raw); err != nil {
		return err
	}
	if err := packer.Close(); err != nil {
		return err
	}
	if short := len(raw)/packing + 1 - out.Len(); short > 0 {
		out.Write(make([]byte, short))
	}
	if out.Len() < len(raw)-len(raw)/16 {
		j.contents, j.method = out.Bytes(), methodDeflate
	}
	return nil
}

// put writes a section whose contents are as they are stored.
func (p *packer) put(j *job) {
	j.at = int64(p.at)
	p.sections = append(p.sections, p.at)
	p.write(j.header())
	p.write(j.contents)
	p.write(make([]byte, j.end()-p.at))
}

// end writes what is left, and the index.
func (p *packer) end() error {
	if err := p.flush(); err != nil {
		return err
	}
	index := &job{section: section{kind: sectionIndex}}
	for _, at := range p.sections {
		index.contents = binary.LittleEndian.AppendUint64(index.contents, at)
	}
	index.stored = uint64(len(index.contents))
	index.bytes, index.sum = index.stored, crc32.Checksum(index.contents, sums)
	at := p.at
	p.put(index)
	p.write(append(binary.LittleEndian.AppendUint64(nil, at), endMagic...))
	return p.err
}
