//go:build linux && (amd64 || arm64)

// Tests of the recorder against a driver of our own (library/stand-in), which reports calls as CUPTI does: the order of what is recorded, threads, a forked
// child, a program that is killed, a disk that is full. What the real driver does is tested on a GPU (tests/gpu/record).

package recorder

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

// emulator is what starts programs of this machine's kind where the tests themselves run under it: DAGRUN_EMULATOR="qemu-aarch64 -L /usr/aarch64-linux-gnu".
var emulator = strings.Fields(os.Getenv("DAGRUN_EMULATOR"))

// standIn unpacks the driver and the program, and returns their folder.
func standIn(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"libcuda.so.1", "program"} {
		packed, err := os.ReadFile(filepath.Join("library", "stand-in", runtime.GOARCH, name+".gz"))
		require.NoError(t, err)
		bytes, err := unzip(packed)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), bytes, 0o755))
	}
	t.Setenv("LD_LIBRARY_PATH", folder)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "cache"))
	return folder
}

// quiet starts a command without its output.
func quiet(ctx context.Context, command, environment []string) (int, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = environment
	err := c.Run()
	if exit, ok := err.(*exec.ExitError); ok {
		return statusOf(exit), nil
	}
	return 0, err
}

// recorded records the program with these arguments.
func recorded(t *testing.T, o Options, arguments ...string) (*recording.Recording, int) {
	t.Helper()
	folder := standIn(t)
	o.Calls, o.CUPTI = true, filepath.Join(folder, "libcuda.so.1")
	if o.Start == nil {
		o.Start = quiet
	}
	if o.Limit == 0 {
		o.Limit = 1 << 30 // an emulator is slow to keep address space
	}
	file := filepath.Join(folder, "program.rec")
	status, err := Run(t.Context(), file, slices.Concat(emulator, []string{filepath.Join(folder, "program")}, arguments), o)
	require.NoError(t, err)
	require.NoDirExists(t, recording.PartsFolder(file))
	r, err := recording.ReadFile(file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r, status
}

func count(p *recording.Process, kind recording.Kind) int {
	n := 0
	for _, call := range p.Calls {
		if call.Kind == kind {
			n++
		}
	}
	return n
}

func TestProgramIsRecordedAndKeepsItsStatus(t *testing.T) {
	r, status := recorded(t, Options{}, "two")
	require.Equal(t, 7, status)
	require.Equal(t, 7, r.Status)
	require.False(t, r.Cut)
	require.Len(t, r.Processes, 1)
	p := r.Processes[0]
	require.False(t, p.Cut)
	require.Zero(t, p.Lost)
	require.Equal(t, "13.0", p.Facts["driver"])
	require.Equal(t, 2, count(p, recording.Launch))
	var launch *recording.Call
	for k := range p.Calls {
		if p.Calls[k].Kind == recording.Launch {
			launch = &p.Calls[k]
			break
		}
	}
	require.Len(t, launch.Tail, 12) // a pointer and a number, laid out as the kernel gets them
	require.Equal(t, byte(1000%256), launch.Tail[8])
	require.Equal(t, "_Z6doublePfi", p.Functions[0xf1][0].Name)
}

// The command line is recorded, the environment is not.
func TestTheEnvironmentIsNotRecorded(t *testing.T) {
	t.Setenv("HUNTER2", "swordfish")
	var parts []byte
	recorded(t, Options{Start: func(ctx context.Context, command, environment []string) (int, error) {
		status, err := quiet(ctx, command, environment)
		for _, line := range environment {
			folder, found := strings.CutPrefix(line, "DAGRUN_RECORD=")
			names, _ := filepath.Glob(filepath.Join(folder, "*.part"))
			for _, name := range names {
				if b, err := os.ReadFile(name); found && err == nil {
					parts = append(parts, b...)
				}
			}
		}
		return status, err
	}}, "two", "an argument")
	require.Contains(t, string(parts), "an argument")
	require.NotContains(t, string(parts), "HUNTER2")
	require.NotContains(t, string(parts), "swordfish")
}

// The kernel's argument is a pointer that is not const, so two launches conflict as far as anyone can know without measuring.
func TestMissingWaitIsFound(t *testing.T) {
	for what, possible := range map[string]int{"two": 1, "waits": 0} {
		r, _ := recorded(t, Options{}, what)
		report, err := order.Check(r.Processes[0], order.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Races)
		require.Len(t, report.Possible, possible, what)
		require.Equal(t, 2, report.Arguments)
	}
}

func TestThreadsAreRecordedWhole(t *testing.T) {
	r, _ := recorded(t, Options{}, "threads", "500")
	p := r.Processes[0]
	require.False(t, p.Cut)
	require.Equal(t, 64*500, count(p, recording.Launch))
	streams := map[uint32]uint64{}
	for _, call := range p.Calls {
		require.Greater(t, call.End, call.Begin)
		if call.Kind != recording.Launch {
			continue
		}
		if stream, seen := streams[call.Thread]; seen {
			require.Equal(t, stream, call.Args[0], "a thread launches on its own stream only")
		}
		streams[call.Thread] = call.Args[0]
	}
	require.Len(t, streams, 64)
}

func TestForkedChildStartsAPartOfItsOwn(t *testing.T) {
	r, _ := recorded(t, Options{}, "fork")
	require.Len(t, r.Processes, 2)
	launches := []int{}
	for _, p := range r.Processes {
		launches = append(launches, count(p, recording.Launch))
		require.False(t, p.Cut)
	}
	require.ElementsMatch(t, []int{2, 2}, launches)
	parent, child := r.Processes[0], r.Processes[1]
	if parent.Parent == child.ID {
		parent, child = child, parent
	}
	require.Equal(t, parent.ID, child.Parent)
}

func TestKilledProgramLeavesWhatItDid(t *testing.T) {
	kill := func(ctx context.Context, command, environment []string) (int, error) {
		c := exec.CommandContext(ctx, command[0], command[1:]...)
		c.Env = environment
		if err := c.Start(); err != nil {
			return 0, err
		}
		var folder string
		for _, line := range environment {
			if value, ok := strings.CutPrefix(line, "DAGRUN_RECORD="); ok {
				folder = value
			}
		}
		for { // until something was written
			parts, _ := filepath.Glob(filepath.Join(folder, "*.part"))
			if len(parts) > 0 {
				if p, err := recording.ReadPart(parts[0]); err == nil {
					enough := count(p, recording.Launch) > 1000
					p.Close()
					if enough {
						break
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
		_ = c.Process.Kill()
		err := c.Wait()
		if exit, ok := err.(*exec.ExitError); ok {
			return statusOf(exit), nil
		}
		return 0, err
	}
	r, status := recorded(t, Options{Start: kill}, "forever")
	require.Equal(t, 128+9, status)
	require.True(t, r.Processes[0].Cut)
	require.Greater(t, count(r.Processes[0], recording.Launch), 1000)
}

// A full disk, or the limit, ends the recording and not the program.
func TestLimitEndsTheRecordingOnly(t *testing.T) {
	r, status := recorded(t, Options{Limit: 32 << 20}, "launches", "400000")
	require.Equal(t, 7, status)
	p := r.Processes[0]
	require.NotZero(t, p.Lost)
	n := count(p, recording.Launch)
	require.Greater(t, n, 50_000)
	require.Less(t, n, 400_000)
	report, err := order.Check(p, order.Options{})
	require.NoError(t, err)
	require.True(t, report.Cut)
	require.False(t, report.Proved())
}

// The graph's kernel gets a pointer to 9 MiB and 10 bytes, filled with 7, then 8 (a second launch), 9 (another executable graph) and 7 again.
func TestContentsOfMemoryThatAGraphReaches(t *testing.T) {
	r, _ := recorded(t, Options{Contents: true}, "graph", "9")
	p := r.Processes[0]
	launches := []uint64{}
	for _, call := range p.Calls {
		if call.Kind == recording.GraphLaunch {
			launches = append(launches, call.Begin)
		}
	}
	require.Len(t, launches, 4)
	const piece, rest = 4 << 20, 1<<20 + 10
	filled := map[uint64]byte{launches[0]: 7, launches[2]: 9, launches[3]: 7}
	next := map[uint64]uint64{}
	for k := range p.Contents {
		c := &p.Contents[k]
		require.Contains(t, filled, c.Sequence, "the second launch of a graph is not looked at")
		if at, begun := next[c.Sequence]; begun {
			require.Equal(t, at, c.Address)
		}
		next[c.Sequence] = c.Address + c.Bytes
		data, err := c.Load()
		require.NoError(t, err)
		require.True(t, bytes.Equal(bytes.Repeat([]byte{filled[c.Sequence]}, len(data)), data))
		require.Len(t, data, int(c.Bytes))
		sum := sha256.Sum256(data)
		require.Equal(t, binary.BigEndian.Uint64(sum[:]), c.Hash)
	}
	require.Len(t, next, 3)
	require.Len(t, p.Contents, 9)
	require.Equal(t, []uint64{piece, piece, rest}, []uint64{p.Contents[0].Bytes, p.Contents[1].Bytes, p.Contents[2].Bytes})
	require.Equal(t, p.Contents[0].Hash, p.Contents[7].Hash)
	for _, call := range p.Calls {
		require.NotContains(t, []recording.Kind{recording.Copy, recording.EventCreate, recording.EventSync, recording.StreamSync}, call.Kind, "what the recorder does itself is not recorded")
	}
	require.Len(t, p.Graphs, 4, "the capture, and three instantiations")

	r, _ = recorded(t, Options{}, "graph", "9")
	require.Empty(t, r.Processes[0].Contents)
}

// Contents may fill three quarters of the limit; calls are recorded on.
func TestLimitCutsContents(t *testing.T) {
	r, _ := recorded(t, Options{Contents: true, Limit: 40 << 20}, "graph", "31", "distinct")
	p := r.Processes[0]
	require.Zero(t, p.Lost)
	require.False(t, p.Cut)
	require.Equal(t, 4, count(p, recording.GraphLaunch))
	missing := 0
	for k := range p.Contents {
		if data, err := p.Contents[k].Load(); err == nil && data == nil {
			missing++
		}
	}
	require.NotZero(t, missing)
	last := p.Notes[len(p.Notes)-1]
	require.Equal(t, uint64(recording.NoteContents), last.Code)
	require.Equal(t, "contents of memory and code are missing: with them, the recording would have reached its limit (--limit)", last.Text)
}

// The program says at the end of its lines what is noted. An emulator does not tell reads from writes, so that a write is noted as a read and a write. Only an x86
// takes single steps, so that every touch is noted, up to 64 of an allocation.
func TestTouchesOfTheHost(t *testing.T) {
	r, status := recorded(t, Options{HostAccesses: true}, "touches")
	require.Equal(t, 7, status, "the program's own handler of SIGSEGV ends it")
	p := r.Processes[0]
	require.True(t, p.Host)
	var pinned, page uint64
	var got []string
	stepped := map[string]int{}
	source, err := os.ReadFile("library/stand-in/program.c")
	require.NoError(t, err)
	lines := strings.Split(string(source), "\n")
	var registered recording.Call
	var large uint64
	for k, call := range p.Calls {
		switch {
		case len(emulator) > 0 && call.Kind == recording.HostAccess && k+1 < len(p.Calls) && p.Calls[k+1].Kind == recording.HostAccess && p.Calls[k+1].Args[0] == call.Args[0] &&
			!strings.Contains(lines[max(frameLine(p, call), 1)-1], "[0]++"):
		case call.Kind == recording.Alloc && pinned != 0 && call.Args[1] == 1025*page:
			large = call.Args[0]
		case call.Kind == recording.Alloc && call.Args[2] == 2:
			pinned, page = call.Args[0], call.Args[1]/3
		case call.Kind == recording.Alloc && call.Args[2] == 5:
			registered = p.Calls[k]
		case call.Kind == recording.HostAccess:
			require.EqualValues(t, 1, call.Args[1])
			require.Equal(t, call.Args[0]&^(page-1), call.Args[3])
			text := map[uint64]string{recording.Read: "read", recording.Write: "write"}[call.Args[2]]
			if large != 0 {
				text += " of the " + map[uint64]string{3: "second", 4: "second", 5: "second", 1024: "last"}[(call.Args[0]-large)/page] + " piece"
			} else if offset := call.Args[0] - pinned; offset < 3*page {
				text += strings.Repeat(" page", int(offset/page)) + " " + strconv.Itoa(int(offset%page))
			} else {
				require.Equal(t, registered.Args[0]+page, call.Args[0])
				text += " of the registered memory"
			}
			frame, known := p.Where(call.Place)
			require.True(t, known)
			line := lines[frame.Line-1]
			if len(emulator) == 0 && strings.Contains(line, "// step: "+text) {
				stepped[text]++
				continue
			}
			require.Contains(t, line, map[bool]string{true: "note: " + text, false: "[0]++"}[call.Thread == 0], "line %d", frame.Line)
			got = append(got, text)
		}
	}
	require.Equal(t, []string{"read 100", "write 102", "write page 5", "read 1", "read 0", "write 0", "write of the registered memory", "read 7",
		"write of the second piece", "write of the last piece"}, got)
	if len(emulator) == 0 {
		require.Equal(t, map[string]int{"read 101": 1, "read page 5": 1, "write page 6": 1, "read 2": 63 + 1, "read of the second piece": 1, "write of the second piece": 1}, stepped)
	}
	last := p.Notes[len(p.Notes)-1]
	require.Equal(t, uint64(recording.NoteUncovered), last.Code)
	report, err := order.Check(p, order.Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"memory of the host touched by host functions, or by threads that call no CUDA": 1}, report.Uncovered)

	r, status = recorded(t, Options{}, "launches", "1")
	require.Equal(t, 7, status)
	require.False(t, r.Processes[0].Host)
}

func frameLine(p *recording.Process, call recording.Call) int {
	frame, _ := p.Where(call.Place)
	return frame.Line
}

const python = `import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
memory, n = ctypes.c_uint64(0), ctypes.c_int(1000)
parameters = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(n))

def launch(stream):
    cuda.cuLaunchKernel(ctypes.c_uint64(0xf1), 1, 1, 1, 32, 1, 1, 0, ctypes.c_uint64(stream), parameters, None)

def generator():
    launch(0)
    yield

launch(0)
list(map(launch, [0]))
for _ in generator(): pass
`

// pythons are the interpreters on this machine whose frames can be read, by version.
func pythons() map[string]string {
	found := map[string]string{}
	for _, name := range []string{"python3", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"} {
		out, err := exec.Command(name, "-c", "import sys; print('%d.%d %s' % (*sys.version_info[:2], sys.executable))").Output()
		version, path, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		if err == nil && slices.Contains([]string{"3.10", "3.11", "3.12", "3.13", "3.14"}, version) {
			found[version] = path
		}
	}
	return found
}

func TestPlacesOfPython(t *testing.T) {
	if len(emulator) > 0 {
		return // Python is of the machine outside
	}
	all := pythons()
	if len(all) == 0 {
		t.Skip("no Python 3.10 to 3.14 on this machine")
	}
	for version, path := range all {
		t.Run(version, func(t *testing.T) {
			folder := standIn(t)
			script, file := filepath.Join(folder, "launches.py"), filepath.Join(folder, "python.rec")
			require.NoError(t, os.WriteFile(script, []byte(python), 0o600))
			status, err := Run(t.Context(), file, []string{path, script}, Options{Calls: true, CUPTI: filepath.Join(folder, "libcuda.so.1"), Limit: 1 << 30, Start: quiet})
			require.NoError(t, err)
			require.Zero(t, status)
			r, err := recording.ReadFile(file)
			require.NoError(t, err)
			defer func() { require.NoError(t, r.Close()) }()
			var places []string
			for _, call := range r.Processes[0].Calls {
				if call.Kind != recording.Launch {
					continue
				}
				var frames []string
				for _, frame := range r.Processes[0].Places[call.Place] {
					require.True(t, frame.Python)
					require.Equal(t, script, frame.File)
					frames = append(frames, fmt.Sprintf("%s:%d", frame.Function, frame.Line))
				}
				places = append(places, strings.Join(frames, " "))
			}
			require.Equal(t, []string{"launch:8 <module>:14", "launch:8 <module>:15", "launch:8 generator:11 <module>:16"}, places)
		})
	}
}

// Calls that few programs make, in the order in which the program makes them.
func TestCallsThatFewProgramsMake(t *testing.T) {
	r, _ := recorded(t, Options{}, "others")
	p := r.Processes[0]
	of := map[recording.Kind][]recording.Call{}
	for _, call := range p.Calls {
		of[call.Kind] = append(of[call.Kind], call)
	}
	event := of[recording.EventCreate][0].Args[0]
	require.Len(t, of[recording.Launch], 2)
	for k, want := range []uint64{recording.EventBlocks | recording.EventStart, recording.EventBegun} {
		got, when := of[recording.Launch][k].LaunchEvent()
		require.Equal(t, []uint64{event, want}, []uint64{got, when})
	}
	made := of[recording.Pool][0].Args[0]
	pools := [][]uint64{}
	for _, call := range of[recording.Pool] {
		pools = append(pools, call.Args)
	}
	require.Equal(t, [][]uint64{{made, 0, 1}, {made, 1, 0}, {made, 4, 1 << 40}, {made, 0, 0}}, pools)
	allocations := of[recording.Alloc]
	require.Equal(t, uint64(0xb00), allocations[1].Args[4], "the pool of the device")
	require.Zero(t, allocations[1].Args[6])
	require.NotZero(t, allocations[2].Args[6], "a captured one")
	contexts := [][]uint64{}
	for _, call := range of[recording.Context] {
		contexts = append(contexts, call.Args)
	}
	require.Equal(t, [][]uint64{{0xc0, 4, 1}, {0, 3, 1}}, contexts)

	g := p.Graphs[len(p.Graphs)-1]
	require.Len(t, g.Nodes, 2)
	require.Equal(t, uint32(10), g.Nodes[0].Type)
	require.Equal(t, []uint64{allocations[2].Args[0], 640}, []uint64{binary.LittleEndian.Uint64(g.Nodes[0].Body), binary.LittleEndian.Uint64(g.Nodes[0].Body[8:])})
	kind, bodies, known := g.Nodes[1].Conditional()
	require.True(t, known)
	require.Equal(t, uint64(1), kind)
	require.Len(t, bodies, 1)
	require.True(t, slices.ContainsFunc(p.Graphs, func(body recording.GraphInfo) bool { return body.Graph == bodies[0] && body.Sequence == g.Sequence }))
	_, _, known = g.Nodes[0].Conditional()
	require.False(t, known)

	require.Equal(t, []recording.NoteInfo{{Code: recording.NoteTable, Value: 0x3736353433323130,
		Text: "cuGetExportTable: a library got a table of undocumented functions (3031323334353637); what it does with them is not recorded"}}, p.Notes)
}

// The second launch of a place finds its frames without unwinding.
func TestPlacesOfMachineCode(t *testing.T) {
	r, _ := recorded(t, Options{}, "launches", "3")
	p := r.Processes[0]
	require.Equal(t, 3, count(p, recording.Launch))
	for _, call := range p.Calls {
		if call.Kind != recording.Launch {
			continue
		}
		require.Equal(t, p.Calls[len(p.Calls)-1].Place, call.Place)
		frame, known := p.Where(call.Place)
		require.True(t, known)
		require.Equal(t, "launch_on", frame.Function)
		require.Equal(t, "program.c", filepath.Base(frame.File))
		require.Equal(t, "program", filepath.Base(p.Places[call.Place][len(p.Places[call.Place])-1].File), "the outermost frame")
	}
}

// A fatbin is kept without the cubins of generations of GPUs that the machine does not have; PTX is kept with its zero, once.
func TestCodeOfModules(t *testing.T) {
	r, _ := recorded(t, Options{}, "modules")
	modules := r.Processes[0].Modules
	require.Len(t, modules, 3)
	kernel, function := r.Processes[0].Functions[modules[0].Library+1], r.Processes[0].Functions[modules[0].Library+2]
	require.Equal(t, modules[0].Library, kernel[0].Library)
	require.Equal(t, modules[0].Library, function[0].Library)
	require.NotZero(t, modules[0].Library)
	require.NotZero(t, modules[0].Sequence)
	require.Zero(t, modules[0].Handle)
	code, err := modules[0].Load()
	require.NoError(t, err)
	const head, part = 16, 40
	require.Len(t, code, head+3*part)
	require.Equal(t, uint64(3*part), binary.LittleEndian.Uint64(code[8:]))
	require.Equal(t, "ptx", string(code[head+32:][:3]))
	require.Equal(t, "90\x00", string(code[head+part+32:][:3]))
	require.Equal(t, "120", string(code[head+2*part+32:][:3]))
	for _, m := range modules[1:] {
		code, err := m.Load()
		require.NoError(t, err)
		require.Equal(t, "// one\n.version 8.0\x00", string(code))
		require.NotZero(t, m.Handle)
		require.Zero(t, m.Library)
	}
	require.NotEqual(t, modules[1].Handle, modules[2].Handle)
}

func TestAnotherProfilerIsNamed(t *testing.T) {
	t.Setenv("STAND_IN_BUSY", "1")
	r, status := recorded(t, Options{}, "two")
	require.Equal(t, 7, status)
	p := r.Processes[0]
	require.Zero(t, count(p, recording.Launch))
	require.Equal(t, "another profiler uses CUPTI, which has one user at a time: run without it", p.Notes[len(p.Notes)-1].Text)
}

func TestProgramWithoutADriverIsSaid(t *testing.T) {
	folder := standIn(t)
	file := filepath.Join(folder, "true.rec")
	_, err := Run(t.Context(), file, []string{"true"}, Options{Calls: true, CUPTI: filepath.Join(folder, "libcuda.so.1"), Start: quiet})
	require.EqualError(t, err, "nothing was recorded: true did not start NVIDIA's driver (no call of cuInit), or it changed its environment before (CUDA_INJECTION64_PATH)")
	require.NoFileExists(t, file)
	require.NoDirExists(t, recording.PartsFolder(file))
}
