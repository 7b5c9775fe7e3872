// Tests of programs with random mistakes: they always end, nothing panics, and they write only to their own memory.

package simt_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/internal/ptx"
	libraryptx "github.com/dagrun/dagrun/kernels/library/ptx"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew instead of comparing with them")

// cleanSubjects are the kernels of check_test.go.
func cleanSubjects() []string {
	var all []string
	for _, text := range cleanKernels {
		all = append(all, header+text+"ret;\n}\n")
	}
	slices.Sort(all)
	return all
}

// subjects are the texts that are mutated: the kernels of check_test.go, and the library's.
func subjects(t *testing.T) []string {
	all := cleanSubjects()
	whole := string(libraryptx.Entries())
	names := regexp.MustCompile(`\.visible \.entry (\w+)\(`).FindAllStringSubmatch(whole, -1)
	require.NotEmpty(t, names)
	for i := 0; i < len(names); i += 9 {
		all = append(all, string(libraryptx.Entries(names[i][1])))
	}
	return all
}

var (
	registers = regexp.MustCompile(`%[a-z]+[0-9]+`)
	numbers   = regexp.MustCompile(`\b[0-9]+\b`)
	types     = regexp.MustCompile(`\.(u8|u16|u32|u64|s8|s16|s32|s64|b8|b16|b32|b64|f32|f64|global|shared|local)\b`)
	opcodes   = regexp.MustCompile(`^\t?(add|sub|and|or|xor|shl|shr|mul\.lo|min|max)\.`)
)

// mutate makes a few small mistakes in the instructions of a text.
func mutate(r *rand.Rand, text string) string {
	lines := strings.Split(text, "\n")
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	one := func(s string, pattern *regexp.Regexp, with func(old string) string) string {
		found := pattern.FindAllStringIndex(s, -1)
		if found == nil {
			return s
		}
		at := found[r.IntN(len(found))]
		return s[:at[0]] + with(s[at[0]:at[1]]) + s[at[1]:]
	}
	for range 1 + r.IntN(4) {
		i := r.IntN(len(lines))
		if !strings.Contains(lines[i], ";") || strings.Contains(lines[i], ".reg") && r.IntN(8) > 0 {
			continue
		}
		switch r.IntN(8) {
		case 0:
			lines[i] = ""
		case 1:
			j := r.IntN(len(lines))
			if strings.Contains(lines[j], ";") {
				lines[i], lines[j] = lines[j], lines[i]
			}
		case 2:
			lines[i] += " " + lines[i]
		case 3, 4:
			all := registers.FindAllString(text, -1)
			lines[i] = one(lines[i], registers, func(string) string { return pick(all) })
		case 5:
			lines[i] = one(lines[i], numbers, func(old string) string {
				n, _ := strconv.ParseInt(old, 10, 64)
				return strconv.FormatInt([]int64{0, 1, n + 1, n * 2, -n, n << 20, 1 << 31, 255}[r.IntN(8)], 10)
			})
		case 6:
			lines[i] = one(lines[i], types, func(string) string {
				return "." + pick([]string{"u8", "u16", "u32", "u64", "s8", "s32", "s64", "b32", "b64", "f32", "f64", "global", "shared", "local"})
			})
		default:
			lines[i] = one(lines[i], opcodes, func(string) string {
				return "\t" + pick([]string{"add", "sub", "and", "or", "xor", "shl", "shr", "mul.lo", "min", "max"}) + "."
			})
		}
	}
	return strings.Join(lines, "\n")
}

func TestMutatedProgramsDoNoHarm(t *testing.T) {
	texts := subjects(t)
	rounds, until := 3000, time.Time{}
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		until = time.Now().Add(10 * time.Minute)
	case testing.Short():
		rounds = 500
	}
	counts := map[string]int{}
	for seed := uint64(0); seed < uint64(rounds) || time.Now().Before(until); seed++ {
		r := rand.New(rand.NewPCG(seed, 7))
		text := mutate(r, texts[r.IntN(len(texts))])
		outcome, _, _ := tryMutated(t, seed, text, simt.Check(r.IntN(3)))
		counts[outcome]++
	}
	t.Log(counts)
	require.Greater(t, counts["ran"], rounds/10)
	require.Greater(t, counts["fault"], rounds/10)
}

// What mutated programs do, as it was reviewed: whether they run, what they leave in memory, or which fault ends them and where. Programs whose
// results depend on where their memory lies are left out. -rewrite writes it anew.
func TestMutatedProgramsDoWhatTheyDid(t *testing.T) {
	texts := cleanSubjects()
	var all strings.Builder
	for seed := range uint64(700) {
		r := rand.New(rand.NewPCG(seed, 8))
		text, level := mutate(r, texts[r.IntN(len(texts))]), simt.Check(r.IntN(3))
		outcome, fault, memory := tryMutated(t, seed, text, level)
		if outcome != "ran" && outcome != "fault" {
			continue
		}
		sum := fnv.New32a()
		fmt.Fprint(sum, memory)
		_, otherFault, otherMemory := tryMutated(t, seed, text, level)
		line := fmt.Sprintf("%d %s", seed, outcome)
		if slices.Equal(memory, otherMemory) {
			line += fmt.Sprintf(" %08x", sum.Sum32())
		}
		if fault == otherFault && fault != "" {
			line += " " + strings.ReplaceAll(fault, "\n", " ")
		}
		fmt.Fprintln(&all, line)
	}
	const file = "testdata/mutated.txt"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String(), "%s is out of date; if the change is meant: go test ./cudart/host/simt -run %s -rewrite, and review the diff", file, t.Name())
}

// tryMutated runs each kernel of a text on memory between two guards. It returns the outcome and the fault of the last one, and the memory.
func tryMutated(t *testing.T, seed uint64, text string, level simt.Check) (outcome, fault string, left []uint64) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			t.Fatalf("seed %d: panic: %v\n%s\n%s", seed, v, debug.Stack(), text)
		}
	}()
	m, err := ptx.Parse(text)
	if err != nil {
		return "does not parse", "", nil
	}
	p, err := simt.Load("mutated", text)
	if err != nil {
		return "does not load", "", nil
	}
	const words, guard = 4096, 1 << 16
	memory := make([]uint64, words+2*guard)
	for i := range memory {
		memory[i] = 0xa5a5a5a5a5a5a5a5
	}
	for i := range words {
		memory[guard+i] = uint64(i % 17)
	}
	start := uint64(uintptr(unsafe.Pointer(&memory[guard])))
	for i := range m.Functions {
		f := &m.Functions[i]
		if !f.Entry || !f.Defined {
			continue
		}
		k, err := p.Kernel(f.Name)
		if err != nil {
			outcome = "refused"
			continue
		}
		l := simt.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{64, 1, 1}, Shared: 1024, MaxSteps: 100_000, Check: level}
		sizes := k.ParamSizes()
		next := start
		for _, n := range sizes {
			if n == 8 && next+4096 <= start+8*words {
				l.Args = append(l.Args, simt.Arg{Bits: next, Pointer: true, Bytes: 4096})
				next += 4096
				continue
			}
			if n > 8 {
				l.Args = append(l.Args, simt.Arg{Struct: make([]byte, n)})
				continue
			}
			l.Args = append(l.Args, simt.Arg{Bits: 100})
		}
		run, err := k.Start(l)
		if err != nil {
			outcome = "not started"
			continue
		}
		run.Work()
		outcome, fault = "ran", ""
		if f := run.Fault(); f != nil {
			outcome, fault = "fault", f.Error()
			require.NotEmpty(t, fault)
		}
	}
	for i, v := range memory {
		if (i < guard || i >= guard+words) && v != 0xa5a5a5a5a5a5a5a5 {
			t.Fatalf("seed %d: wrote outside its memory, %d bytes from its start\n%s", seed, 8*(i-guard), text)
		}
	}
	return outcome, fault, memory[guard : guard+words]
}
