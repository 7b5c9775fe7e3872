// Tests of .dagrun files: written and read back, run with the bits of the pipeline they come from, refused where something is wrong with them.

package graphfile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func parsed(t testing.TB, name string, params ...file.Override) (*dag.Graph, *planner.Plan) {
	t.Helper()
	path := filepath.Join("../../../../pipelines", name+".yaml")
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	g, err := file.Parse(source, file.Options{Name: path, Dir: filepath.Dir(path), Library: kernels.Library(), OpenModule: kernels.ModuleOpener(filepath.Dir(path), os.ReadFile, nil), Params: params})
	require.NoError(t, err)
	p, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	return g, p
}

func exported(t testing.TB, name string, params ...file.Override) *File {
	t.Helper()
	g, p := parsed(t, name, params...)
	f, err := Export(t.Context(), g, p, Target{Capability: [2]int{9, 0}})
	require.NoError(t, err)
	return f
}

func saxpy(t testing.TB) *File { return exported(t, "saxpy", file.Override{Name: "n", Value: "1000"}) }

func packed(t testing.TB, records []recording.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, recording.PackPlanned(&out, recording.Meta{Graph: "g"}, records))
	return out.Bytes()
}

func written(t testing.TB, f *File) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.dagrun")
	require.NoError(t, os.WriteFile(name, packed(t, f.records()), 0o600))
	return name
}

// What is written is read.
func TestWrittenAndRead(t *testing.T) {
	for _, name := range []string{"saxpy", "images", "tiled-cholesky", "spins"} {
		f := exported(t, name)
		file := filepath.Join(t.TempDir(), "a.dagrun")
		var out bytes.Buffer
		require.NoError(t, f.Write(&out))
		require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
		got, err := Read(file)
		require.NoError(t, err)
		got.process = nil
		require.Equal(t, f, got)
	}
}

// A file gives the bits that its pipeline gives, after one replay and after several, and its edges are proved.
func TestFilesGiveThePipelinesBits(t *testing.T) {
	for _, name := range []string{"saxpy", "chunks", "images", "sort", "hits", "tiled-cholesky", "spins", "strassen", "fft"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			platform, err := host.Open(host.Options{CheckOrder: true})
			require.NoError(t, err)
			defer func() { require.NoError(t, platform.Close()) }()
			g, p := parsed(t, name)
			f := exported(t, name)
			races, err := f.Check()
			require.NoError(t, err)
			require.Empty(t, races)
			for _, replays := range []int{1, 3} {
				want := map[string]string{}
				program, err := runtime.New(t.Context(), g, p, platform, runtime.Options{})
				require.NoError(t, err)
				require.NoError(t, program.Run(t.Context(), replays))
				for k := range g.Buffers {
					if memory := program.Host(dag.BufferID(k)); memory != nil {
						sum := sha256.Sum256(memory)
						want[g.Buffers[k].Name] = hex.EncodeToString(sum[:])
					}
				}
				require.NoError(t, program.Close())
				loaded, err := Load(t.Context(), f, platform)
				require.NoError(t, err)
				require.NoError(t, loaded.Replay(t.Context(), replays))
				got := map[string]string{}
				for k := range f.Buffers {
					if memory := loaded.Host(k); memory != nil {
						sum := sha256.Sum256(memory)
						got[f.Buffers[k].Name] = hex.EncodeToString(sum[:])
					}
				}
				require.NoError(t, loaded.Close())
				require.Equal(t, want, got)
			}
		})
	}
}

// With machine code, each kernel has a module of its own.
func TestMachineCode(t *testing.T) {
	g, p := parsed(t, "saxpy")
	f, err := Export(t.Context(), g, p, Target{Capability: [2]int{9, 0}, Exact: true, Architecture: "sm_90"})
	require.NoError(t, err)
	require.Equal(t, "sm_90", f.Architecture)
	require.Len(t, f.Modules, 1)
	require.Equal(t, "\x7fELF", string(f.Modules[0][:4]))
	got, err := Read(written(t, f))
	require.NoError(t, err)
	require.Equal(t, f.Modules, got.Modules)
	require.NoError(t, got.Close())
}

func TestWhatAFileCannotHoldIsNamed(t *testing.T) {
	for name, want := range map[string]string{
		"cg-until":    `node "solve" is a loop or a branch`,
		"spectrum":    `node "forward.0" calls a library`,
		"two-devices": `node "ones" is on device 1`,
		"texture":     `node "warp" reads a texture`,
		"edges":       `buffer "taps" is the variable edges.taps of a module`,
	} {
		g, p := parsed(t, name)
		_, err := Export(t.Context(), g, p, Target{Capability: [2]int{9, 0}})
		var refused *Refused
		require.ErrorAs(t, err, &refused)
		require.Equal(t, want+", which a .dagrun file cannot hold yet", err.Error())
		require.NotZero(t, refused.At.Line)
	}
	b := dag.New("host")
	x := b.Host("x", dag.F32, 8)
	b.HostFunction("call", "f", b.Out(x))
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	_, err = Export(t.Context(), g, p, Target{})
	require.EqualError(t, err, `node "call" runs a function of the host, which a .dagrun file cannot hold yet`)
}

// mutated is a file of records in which a few things were changed.
func mutated(t testing.TB, random *rand.Rand, from []recording.Record) []byte {
	records := slices.Clone(from)
	for range 1 + random.IntN(2) {
		k := random.IntN(len(records))
		if random.IntN(3) > 0 { // in most records there is nothing special
			k = slices.IndexFunc(records, func(r recording.Record) bool { return r.Kind == recording.Graph })
			if random.IntN(2) == 0 {
				k = random.IntN(min(len(records), 12))
			}
		}
		if k < 0 {
			continue
		}
		r := &records[k]
		r.Words, r.Tail = slices.Clone(r.Words), slices.Clone(r.Tail)
		switch random.IntN(8) {
		case 0:
			records = slices.Delete(records, k, k+1)
		case 1:
			records = slices.Insert(records, random.IntN(len(records)+1), *r)
		case 2:
			r.Words = r.Words[:random.IntN(len(r.Words)+1)]
		case 3:
			r.Tail = r.Tail[:random.IntN(len(r.Tail)+1)]
		case 4, 5:
			if len(r.Words) > 0 {
				r.Words[random.IntN(len(r.Words))] = number(random)
			}
		default:
			if n := len(r.Tail) / 8; n > 0 {
				at := 8 * random.IntN(n)
				if random.IntN(2) == 0 {
					at = 8 * random.IntN(min(n, 40))
				}
				binary.LittleEndian.PutUint64(r.Tail[at:], cmp.Or(number(random), 1))
			}
		}
		if (r.Kind == recording.Module || r.Kind == recording.Contents) && len(r.Words) > 3 && random.IntN(2) == 0 {
			r.Words[2], r.Words[3] = uint64(len(r.Tail)), hashOf(r.Tail)
		}
	}
	return packed(t, records)
}

// number is one of those that are often wrong.
func number(random *rand.Rand) uint64 {
	switch random.IntN(5) {
	case 0:
		return uint64(random.IntN(8))
	case 1:
		return uint64(random.IntN(1 << 14))
	case 2:
		return 1 << random.IntN(64)
	case 3:
		return -uint64(random.IntN(100))
	}
	return random.Uint64()
}

// A file that was cut anywhere, or in which a byte was changed, is refused with the byte, unless only the zeros between sections were changed.
func TestDamagedFiles(t *testing.T) {
	whole := packed(t, saxpy(t).records())
	name := filepath.Join(t.TempDir(), "a.dagrun")
	refused := func(b []byte) error {
		require.NoError(t, os.WriteFile(name, b, 0o600))
		f, err := Read(name)
		if err == nil {
			require.NoError(t, f.Close())
		}
		return err
	}
	require.NoError(t, refused(whole))
	random := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		require.ErrorContains(t, refused(whole[:random.IntN(len(whole))]), ": byte ")
		b := bytes.Clone(whole)
		at := random.IntN(len(b))
		if b[at] ^= 1 << random.IntN(8); whole[at] != 0 {
			require.ErrorContains(t, refused(b), ": byte ", "byte %d", at)
		}
	}
}

// FuzzFile reads files of any bytes in a valid frame. What is accepted can be listed and checked.
func FuzzFile(f *testing.F) {
	records := saxpy(f).records()
	for k := range records {
		r := &records[k]
		words := []byte{}
		for _, w := range r.Words {
			words = binary.LittleEndian.AppendUint64(words, w)
		}
		f.Add(uint16(k), uint16(r.Kind), words, r.Tail[:min(len(r.Tail), 4096)])
	}
	name := filepath.Join(f.TempDir(), "a.dagrun")
	f.Fuzz(func(t *testing.T, place, kind uint16, words, tail []byte) {
		changed := slices.Clone(records)
		r := recording.Record{Kind: recording.Kind(kind), Tail: tail}
		for ; len(words) >= 8 && len(r.Words) < 1<<12; words = words[8:] {
			r.Words = append(r.Words, binary.LittleEndian.Uint64(words))
		}
		changed[int(place)%len(changed)] = r
		require.NoError(t, os.WriteFile(name, packed(t, changed), 0o600))
		file, err := Read(name)
		if err != nil {
			require.ErrorContains(t, err, ": byte ")
			return
		}
		file.Listing()
		_, _ = file.Check()
		require.NoError(t, file.Close())
	})
}
