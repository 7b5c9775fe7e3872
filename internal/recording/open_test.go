// Tests of recordings in one file: written and read back, cut anywhere, and with numbers that lie; and of what else can be opened.

package recording_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/recordingtest"
)

var meta = recording.Meta{Command: []string{"python", "a.py"}, Status: 3, Started: 17}

func pack(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	var list []recording.Part
	for k, b := range parts {
		list = append(list, recording.Part{Name: fmt.Sprint(k, ".part"), Bytes: b})
	}
	var out bytes.Buffer
	require.NoError(t, recording.PackTo(&out, meta, list...))
	return out.Bytes()
}

func write(t testing.TB, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.rec")
	require.NoError(t, os.WriteFile(name, b, 0o600))
	return name
}

func read(t testing.TB, b []byte) *recording.Recording {
	t.Helper()
	r, err := recording.ReadFile(write(t, b))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// plain removes from a process where its records lie in the file and in which order they were found, which packing changes.
func plain(p *recording.Process) *recording.Process {
	for k := range p.Calls {
		p.Calls[k].Offset = 0
	}
	for k := range p.Traces {
		p.Traces[k].Offset = 0
	}
	recording.Forget(p)
	return p
}

func TestPackedIsThePart(t *testing.T) {
	first, second := everything(), everything()
	second.Process, second.Ended, second.StartUnix = 8, false, 4e18
	r := read(t, pack(t, first.Bytes(0), second.Bytes(1<<20), nil))
	require.Equal(t, []string{"python", "a.py"}, r.Command)
	require.Equal(t, 3, r.Status)
	require.Equal(t, int64(17), r.Started)
	require.False(t, r.Cut)
	require.Len(t, r.Processes, 3)
	require.True(t, r.Processes[0].Cut, "a process that was killed before it wrote anything")
	require.Empty(t, r.Processes[0].Calls)
	require.Equal(t, plain(parse(t, second.Bytes(0))), plain(r.Processes[1]))
	require.Equal(t, plain(parse(t, first.Bytes(0))), plain(r.Processes[2]))
	require.True(t, r.Processes[1].Cut)
	require.False(t, r.Processes[2].Cut)
}

func TestManyCallsPacked(t *testing.T) {
	file := launches(20_000)
	packed := pack(t, file)
	require.Less(t, len(packed)*20, len(file))
	require.Equal(t, plain(parse(t, file)), plain(read(t, packed).Processes[0]))
}

func TestCodeIsStoredOnce(t *testing.T) {
	code := func(seed int) []byte {
		b := make([]byte, 100_000)
		for k := range b {
			b[k] = byte(k * k * seed >> 7)
		}
		return b
	}
	part := recordingtest.Part{Ended: true}
	part.Record(0, recording.Module, []uint64{1, 0, 100_000, 44, 0}, code(3))
	part.Record(0, recording.Module, []uint64{2, 0, 100_000, 44, 0}, nil)
	part.Record(0, recording.Contents, []uint64{1, 0x1000, 100_000, 45}, code(5))
	once := pack(t, part.Bytes(0))
	same := recordingtest.Part{Ended: true}
	same.Record(0, recording.Module, []uint64{1, 0, 100_000, 44, 0}, code(3))
	twice := pack(t, part.Bytes(0), same.Bytes(0))
	require.Less(t, len(twice)-len(once), 1000)

	r := read(t, twice)
	for _, p := range r.Processes {
		for _, m := range p.Modules {
			require.Nil(t, m.Code)
			b, err := m.Load()
			require.NoError(t, err)
			require.Equal(t, code(3), b)
		}
		for _, c := range p.Contents {
			b, err := c.Load()
			require.NoError(t, err)
			require.Equal(t, code(5), b)
		}
	}

	other := recordingtest.Part{Ended: true} // the hash of different code can be the same
	other.Record(0, recording.Module, []uint64{1, 0, 100_000, 44, 0}, code(7))
	b, err := read(t, pack(t, part.Bytes(0), other.Bytes(0))).Processes[1].Modules[0].Load()
	require.NoError(t, err)
	require.Equal(t, code(7), b)
}

// What packs too well gets zeros, so that memory stays limited by the size of the file.
func TestZerosPack(t *testing.T) {
	part := recordingtest.Part{Ended: true}
	part.Record(0, recording.Contents, []uint64{1, 0x1000, 10 << 20, 45}, make([]byte, 10<<20))
	file := pack(t, part.Bytes(0))
	require.Less(t, len(file), 10<<20/64+10_000)
	b, err := read(t, file).Processes[0].Contents[0].Load()
	require.NoError(t, err)
	require.Equal(t, make([]byte, 10<<20), b)
}

func TestRecordingsThatWereCut(t *testing.T) {
	part := recordingtest.Part{Ended: true}
	for k := range 5 {
		part.Call(0, recording.StreamSync, 0, uint64(k))
	}
	whole := pack(t, part.Bytes(0), part.Bytes(0))
	require.False(t, read(t, whole).Cut)
	name, last := write(t, nil), 0
	for n := len(whole) - 1; n >= 16; n-- {
		require.NoError(t, os.WriteFile(name, whole[:n], 0o600))
		r, err := recording.ReadFile(name)
		require.NoError(t, err, n)
		require.True(t, r.Cut, n)
		if k := len(r.Processes); k > 0 {
			require.True(t, r.Processes[k-1].Cut, n)
		}
		last = len(r.Processes)
		require.NoError(t, r.Close())
	}
	require.Zero(t, last)
	require.NoError(t, os.WriteFile(name, whole[:12], 0o600))
	_, err := recording.ReadFile(name)
	require.EqualError(t, err, name+": byte 12: the file ends in its header")
}

// Every byte of a recording matters: a changed one is found, or changes nothing.
func TestRecordingsThatWereChanged(t *testing.T) {
	part := recordingtest.Part{Ended: true}
	part.Call(0, recording.StreamSync, 0, 5)
	whole := pack(t, part.Bytes(0))
	want := plain(read(t, whole).Processes[0])
	name := write(t, nil)
	for k := range whole {
		b := bytes.Clone(whole)
		b[k] ^= 0x10
		require.NoError(t, os.WriteFile(name, b, 0o600))
		r, err := recording.ReadFile(name)
		if err == nil && !r.Cut {
			require.Equal(t, want, plain(r.Processes[0]), k)
			require.Equal(t, meta.Command, r.Command)
		}
	}
}

// sectionOf is a section with the right checksum of its header.
func sectionOf(kind, method, sum uint32, stored, unpacked uint64, contents []byte) []byte {
	b := []byte("SECT")
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = binary.LittleEndian.AppendUint32(b, method)
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = binary.LittleEndian.AppendUint64(b, stored)
	b = binary.LittleEndian.AppendUint64(b, unpacked)
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(crc(b)))
	return append(b, contents...)
}

func crc(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func TestHostileRecordings(t *testing.T) {
	head := []byte("DAGRUNR1\x01\x00\x00\x00\x00\x00\x00\x00")
	file := func(sections ...[]byte) []byte { return append(bytes.Clone(head), bytes.Join(sections, nil)...) }
	stored := func(kind uint32, text string) []byte {
		n := uint64(len(text))
		return sectionOf(kind, 0, crc([]byte(text)), n, n, []byte(text))
	}
	end := func(at byte) []byte { return append([]byte{at, 0, 0, 0, 0, 0, 0, 0}, "DAGRUNRE"...) }
	process := stored(2, string(append([]byte("KAGRECE1\x01"), make([]byte, 63)...)))
	for want, b := range map[string][]byte{
		"byte 8: version 2 of recordings; this dagrun reads version 1":                                                     append([]byte("DAGRUNR1\x02\x00\x00\x00\x00\x00\x00\x00"), make([]byte, 8)...),
		`byte 16: a section begins with "WORD" instead of "SECT"`:                                                          file([]byte("WORD"), make([]byte, 60)),
		"byte 16: a section is packed by method 2, which this dagrun does not know":                                        file(sectionOf(1, 2, 0, 0, 0, nil)),
		"byte 16: a section of 0 bytes that are 8 unpacked, though it is not packed":                                       file(sectionOf(1, 0, 0, 0, 8, nil)),
		"byte 16: a section of 1 bytes is said to have 4398046511104 unpacked; more than 64 times as many are not allowed": file(sectionOf(1, 1, 0, 1, 1<<42, []byte{3})),
		"byte 16: a section has the checksum 00000000 instead of 00000007: the file was changed or damaged":                file(sectionOf(1, 1, 7, 0, 0, nil)),
		"byte 16: a section cannot be unpacked behind its byte 0 of 100: unexpected EOF":                                   file(sectionOf(1, 1, crc([]byte{1, 2}), 2, 100, []byte{1, 2})),
		"byte 16: invalid character 'x' looking for beginning of value":                                                    file(stored(1, "xxxxxxxx")),
		"byte 16: records of no process":                                                                                   file(stored(3, "")),
		"byte 16: the header of a process has 8 bytes and begins with \"KAGRECE1\"":                                        file(stored(2, "KAGRECE1")),
		"byte 136: byte 0 of this section, unpacked: 8 bytes are left, and a record has at least 16":                       file(process, stored(3, "12345678")),
		"byte 16: the end of the file says that the index is here, and it is not":                                          file(stored(1, "12345678"), end(16)),
		"byte 255: the file ends where a section should begin":                                                             file(end(255)),
	} {
		name := write(t, b)
		_, err := recording.ReadFile(name)
		require.EqualError(t, err, name+": "+want)
	}

	index := stored(5, "\x10\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00")
	name := write(t, file(process, index, end(byte(16+len(process)))))
	_, err := recording.ReadFile(name)
	require.EqualError(t, err, name+": byte 16: this section overlaps the one before it in the index")

	blob := recordingtest.Part{Ended: true}
	blob.Record(0, recording.Contents, []uint64{1, 0x1000, 2000, 45}, make([]byte, 2000))
	b := pack(t, blob.Bytes(0))
	at := bytes.LastIndex(b[:len(b)-200], []byte("SECT\x04"))
	if at < 0 {
		at = bytes.Index(b, []byte("SECT\x04"))
	}
	b[at+48] ^= 1
	_, err = read(t, b).Processes[0].Contents[0].Load()
	require.ErrorContains(t, err, fmt.Sprintf("byte %d: a section has the checksum ", at))
}

func TestFolderOfParts(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "run.rec")
	parts := recording.PartsFolder(name)
	require.NoError(t, os.Mkdir(parts, 0o700))
	first, second := everything(), everything()
	second.Process, second.StartUnix = 8, 4e18
	require.NoError(t, os.WriteFile(filepath.Join(parts, "7.part"), first.Bytes(0), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(parts, "8.part"), second.Bytes(0), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(parts, "recorder.so"), []byte("\x7fELF"), 0o600))
	for _, asked := range []string{name, parts} {
		r, err := recording.ReadFile(asked)
		require.NoError(t, err)
		require.True(t, r.Cut)
		require.Equal(t, -1, r.Status)
		require.Equal(t, int64(4e18), r.Started)
		require.Equal(t, []string{"python", "", "-u"}, r.Command)
		require.Equal(t, []uint32{8, 7}, []uint32{r.Processes[0].ID, r.Processes[1].ID})
		require.NoError(t, r.Close())
	}

	require.NoError(t, recording.Pack(context.Background(), name, []string{filepath.Join(parts, "7.part"), filepath.Join(parts, "8.part")}, meta))
	r, err := recording.ReadFile(name)
	require.NoError(t, err)
	require.False(t, r.Cut)
	require.Equal(t, []uint32{8, 7}, []uint32{r.Processes[0].ID, r.Processes[1].ID})
	require.NoError(t, r.Close())

	r, err = recording.ReadFile(filepath.Join(parts, "7.part"))
	require.NoError(t, err)
	require.True(t, r.Cut)
	require.Equal(t, uint32(7), r.Processes[0].ID)
	require.NoError(t, r.Close())
	p, err := recording.ReadPart(filepath.Join(parts, "8.part"))
	require.NoError(t, err)
	require.Equal(t, uint32(8), p.ID)
	require.NoError(t, p.Close())
}

func TestWhatIsNoRecording(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "a.txt")
	require.NoError(t, os.WriteFile(name, []byte("hello"), 0o600))
	_, err := recording.ReadFile(name)
	require.EqualError(t, err, name+" is not a recording")
	require.ErrorIs(t, err, recording.ErrNotRecording)
	_, err = recording.ReadFile(folder)
	require.EqualError(t, err, folder+" is not a recording: no process has written a part (*.part) there")
	_, err = recording.ReadFile(filepath.Join(folder, "none"))
	require.EqualError(t, err, "cannot read "+filepath.Join(folder, "none")+": no such file or directory")
	_, err = recording.ReadPart(folder)
	require.EqualError(t, err, "cannot read "+folder+": it is not a regular file")
}

// One process can be read without the others.
func TestOneProcess(t *testing.T) {
	first, second := everything(), everything()
	second.Process, second.StartUnix = 8, 6e18
	a, err := recording.Open(write(t, pack(t, first.Bytes(0), second.Bytes(0))))
	require.NoError(t, err)
	require.Equal(t, 2, a.Processes())
	p, err := a.Process(1)
	require.NoError(t, err)
	require.Equal(t, uint32(8), p.ID)
	require.NoError(t, a.Close())
}

func FuzzRecording(f *testing.F) {
	b := pack(f, everything().Bytes(0))
	f.Add(b)
	f.Add(b[:len(b)-20])
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := recording.OpenBytes("a.rec", b)
		if err != nil {
			return
		}
		for k := range a.Processes() {
			if p, err := a.Process(k); err == nil {
				for k := range p.Modules {
					_, _ = p.Modules[k].Load()
				}
			}
		}
	})
}

func BenchmarkReadFile(b *testing.B) {
	file := launches(1_000_000)
	name := write(b, pack(b, file))
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := recording.ReadFile(name)
		require.NoError(b, err)
		require.Len(b, r.Processes[0].Calls, 1_000_000)
		require.NoError(b, r.Close())
	}
}

func BenchmarkPack(b *testing.B) {
	file := launches(1_000_000)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		b.ReportMetric(float64(len(pack(b, file)))/1e6, "MB")
	}
}
