//go:build linux && (amd64 || arm64)

// Tests of dagrun.h, compiled by gcc, g++ and clang as C99 and C++11, with sanitizers, against a driver of our own (testdata/driver.c) that runs graphs in every
// order that their edges allow, and checks contexts and what is freed. What the real driver does is tested on a GPU (tests/gpu/header).

package graphfile

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

// built is the folder of what tests compile.
var built string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "dagrun-header-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(built)
		return m.Run()
	}())
}

const headerFolder = "../../../../cudart/header"

// builds are how the header is compiled: the compiler, its language, and what it adds.
var builds = []struct{ name, compiler, language, sanitize string }{
	{"gcc", "gcc", "c99", "address,undefined"}, {"g++", "g++", "c++11", "address,undefined"},
	{"clang", "clang-14", "c99", "address,undefined"}, {"clang++", "clang++-14", "c++11", ""},
}

var (
	compiling sync.Mutex
	programs  = map[[4]string]string{} // folders of what was compiled, by how
)

// compiled compiles the driver and a source with the header, and returns how to run it. It skips where there is no such compiler.
func compiled(t testing.TB, compiler, language, sanitize, source string) func(arguments ...string) *exec.Cmd {
	t.Helper()
	for _, need := range []string{compiler, "gcc"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("%s is needed to compile dagrun.h", need)
		}
	}
	compiling.Lock()
	defer compiling.Unlock()
	how := [4]string{compiler, language, sanitize, source}
	folder := programs[how]
	if folder == "" {
		folder = filepath.Join(built, fmt.Sprint(len(programs)))
		require.NoError(t, os.MkdirAll(folder, 0o700))
		compile(t, folder, compiler, language, sanitize, source)
		programs[how] = folder
	}
	return func(arguments ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(folder, "program"), arguments...)
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+folder)
		return c
	}
}

func compile(t testing.TB, folder, compiler, language, sanitize, source string) {
	run := func(compiler string, arguments ...string) {
		c := exec.Command(compiler, append([]string{"-g", "-O1", "-Wall", "-Wextra", "-Werror"}, arguments...)...)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s: %s", c, out)
	}
	// The driver knows nothing of sanitizers, so that a program without them can use it too.
	run("gcc", "-std=gnu11", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", filepath.Join(folder, "libcuda.so.1"), "testdata/driver.c")
	flags := []string{"-std=" + language, "-I", headerFolder, "-o", filepath.Join(folder, "program")}
	if sanitize != "" {
		flags = append(flags, "-fsanitize="+sanitize, "-fno-sanitize-recover=all")
	}
	if strings.HasPrefix(language, "c++") {
		flags = append(flags, "-x", "c++")
	}
	run(compiler, append(flags, source, "-x", "none", filepath.Join(folder, "libcuda.so.1"), "-ldl", "-lpthread")...)
}

// ran runs the program and returns what it printed.
func ran(t testing.TB, c *exec.Cmd) string {
	t.Helper()
	var wrong bytes.Buffer
	c.Stderr = &wrong
	out, err := c.Output()
	require.NoError(t, err, "%s: %s", c, wrong.String())
	return string(out)
}

func TestHeader(t *testing.T) {
	file := written(t, saxpy(t))
	for _, b := range builds {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			program := compiled(t, b.compiler, b.language, b.sanitize, "testdata/program.c")
			require.Equal(t, "3 left of the program\n", ran(t, program("lives", file)))
			for _, what := range []string{"orders", "captures", "mistakes", "contexts", "threads", "tries", "lacks"} {
				ran(t, program(what, file))
			}
		})
	}
}

// nvcc gives the host's compiler not the source but what it parsed, in which the size of a type without a name cannot be written down.
func TestTypesOfTheHeaderHaveNames(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(headerFolder, "dagrun.h"))
	require.NoError(t, err)
	require.Empty(t, regexp.MustCompile(`\b(struct|union)\s*\{`).FindAllString(string(text), -1))
}

// The graph that the program instantiates is the one in the file.
func TestHeaderBuildsTheGraphOfTheFile(t *testing.T) {
	program := compiled(t, "gcc", "c99", "address,undefined", "testdata/program.c")
	for _, name := range []string{"saxpy", "chunks", "cholesky", "uneven-stages", "tiled-cholesky", "images"} {
		f := exported(t, name)
		log := filepath.Join(t.TempDir(), "log")
		c := program("reads")
		c.Env, c.Stdin = append(c.Env, "STAND_IN_LOG="+log), strings.NewReader(written(t, f)+"\n")
		require.Equal(t, "0 \n", ran(t, c))
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Equal(t, shown(f), string(text), name)
	}
}

// shown is what the driver writes of a graph: device memory is allocated first, and then that of each buffer of the host.
func shown(f *File) string {
	var out strings.Builder
	fmt.Fprintf(&out, "graph %d\n", len(f.Nodes))
	low, high := f.span()
	place, taken := make([]string, len(f.Buffers)), 0
	if high > low {
		taken++
	}
	for k := range f.Buffers {
		place[k] = "device0"
		if f.Buffers[k].Host {
			place[k] = fmt.Sprintf("host%d", taken)
			taken++
		}
	}
	address := func(p Pointer) string {
		at := p.At
		if b := &f.Buffers[p.Buffer]; !b.Host {
			at += int64(b.Address - low)
		}
		return fmt.Sprintf(" %s+%d", place[p.Buffer], at)
	}
	for k := range f.Nodes {
		n := &f.Nodes[k]
		pitch := func(rows, at int) uint64 {
			if n.word(rows) > 1 {
				return n.word(at)
			}
			return 0
		}
		switch n.Kind {
		case Kernel:
			g, b, fn := n.shape(1), n.shape(4), f.Functions[n.word(0)-1]
			fmt.Fprintf(&out, "kernel %s %d %d %d, %d %d %d, %d; cooperative %d, cluster %d %d %d, priority 0;", fn.Entry, g[0], g[1], g[2], b[0], b[1], b[2], n.word(7), n.word(8),
				n.word(9)&0xffff, n.word(9)>>16&0xffff, n.word(9)>>32)
			for _, q := range fn.Parameters {
				at := slices.IndexFunc(n.Pointers, func(p Pointer) bool { return p.Byte == 8*kernelWords+q.Offset })
				if at >= 0 {
					out.WriteString(address(n.Pointers[at]))
				} else {
					fmt.Fprintf(&out, " %x", n.Body[8*kernelWords+q.Offset:][:q.Bytes])
				}
			}
		case Copy:
			fmt.Fprintf(&out, "copy %d x %d%s%s %d %d", n.word(2), n.word(3), address(n.Pointers[0]), address(n.Pointers[1]), pitch(3, 5), pitch(3, 6))
		case Set:
			fmt.Fprintf(&out, "set %d x %d of %d%s %d to %d", n.word(1)/n.word(5), n.word(2), n.word(5), address(n.Pointers[0]), pitch(2, 3), n.word(4))
		case Empty:
			out.WriteString("empty")
		}
		out.WriteByte('\n')
	}
	for _, e := range f.Edges {
		fmt.Fprintf(&out, "edge %d %d\n", e[0], e[1])
	}
	return out.String()
}

// A graph without one of its edges gives other results in some order, so the test of orders sees what is missing; so does the proof.
func TestMissingEdgeIsFound(t *testing.T) {
	f := saxpy(t)
	whole := f.Edges
	program := compiled(t, "gcc", "c99", "address,undefined", "testdata/program.c")
	for k, e := range whole {
		if f.Nodes[e[0]].Kind == Empty {
			continue
		}
		f.Edges = slices.Delete(slices.Clone(whole), k, k+1)
		require.Error(t, program("orders", written(t, f)).Run(), "edge %d", k)
		races, err := f.Check()
		require.NoError(t, err)
		require.NotEmpty(t, races, "edge %d", k)
	}
}

func TestExampleOfTheHeader(t *testing.T) {
	source := filepath.Join(headerFolder, "example", "example.c")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(text, []byte("\n")), 40)
	for _, b := range builds {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, "out[999] = 1998.5\n", ran(t, compiled(t, b.compiler, b.language, "", source)(written(t, saxpy(t)))))
		})
	}
}

// Files in which something was changed, with sums that are right: the header and Read accept and refuse the same ones, and nothing is read that is not there.
func TestHeaderRefusesWhatReadRefuses(t *testing.T) {
	program := compiled(t, "gcc", "c99", "address,undefined", "testdata/program.c")
	tries := 400
	if testing.Short() {
		tries = 100
	}
	random := rand.New(rand.NewPCG(40, 2))
	folder := t.TempDir()
	var input strings.Builder
	var verdicts []error
	sources := [][]recording.Record{saxpy(t).records(), exported(t, "tiled-cholesky").records()}
	for k := range tries {
		name := filepath.Join(folder, fmt.Sprint(k, ".dagrun"))
		require.NoError(t, os.WriteFile(name, mutated(t, random, sources[k%2]), 0o600))
		f, err := Read(name)
		if err == nil {
			require.NoError(t, f.Close())
		}
		verdicts = append(verdicts, err)
		fmt.Fprintln(&input, name)
	}
	c := program("reads")
	c.Stdin = strings.NewReader(input.String())
	lines := bufio.NewScanner(strings.NewReader(ran(t, c)))
	refused := 0
	for k, err := range verdicts {
		require.True(t, lines.Scan(), "file %d", k)
		code, text, _ := strings.Cut(lines.Text(), " ")
		if err != nil {
			refused++
			assert.Equal(t, "200", code, "file %d: Read says %v, the header: %s", k, err, text)
			require.Contains(t, text, ".dagrun: ")
		} else {
			assert.NotContains(t, text, ": byte ", "file %d, which Read accepts", k)
		}
	}
	require.Greater(t, refused, tries/4)
	require.Less(t, refused, tries)
}
