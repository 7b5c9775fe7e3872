// Tests of the walkers on C functions, without a GPU: arguments, alignment, errors, epilogues, threads, garbage collection.

//go:build linux && (amd64 || arm64)

package driver

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/driver/internal/probe"
	"github.com/dagrun/dagrun/internal/dl"
)

// walkers are the assembly and the Go loop, which must behave the same.
var walkers = []struct {
	name string
	walk func(*walk)
}{{"assembly", walkTable}, {"loop", walkLoop}}

// testTable is a table in mapped memory.
type testTable struct {
	memory arena
	walk   *walk
	rows   []row
	words  []uint64
}

func newTestTable(t testing.TB, rows, epilogue []row) *testTable {
	table := new(testTable)
	t.Cleanup(func() { require.NoError(t, table.memory.close()) })
	p, err := table.memory.take(int(unsafe.Sizeof(walk{})), cacheLine)
	require.NoError(t, err)
	table.walk = (*walk)(p)
	table.rows, err = table.memory.rows(len(rows))
	require.NoError(t, err)
	copy(table.rows, rows)
	ends, err := table.memory.rows(len(epilogue))
	require.NoError(t, err)
	copy(ends, epilogue)
	table.words, err = table.memory.words(64)
	require.NoError(t, err)
	table.walk.stop = &table.walk.own
	table.walk.setRows(table.rows)
	table.walk.setEpilogue(ends)
	return table
}

func (t *testTable) address(word int) uintptr { return uintptr(unsafe.Pointer(&t.words[word])) }

func (t *testTable) guard(i int) uintptr { return uintptr(unsafe.Pointer(&t.rows[i])) }

func TestOffsetsMatchTheAssembly(t *testing.T) {
	var w walk
	require.Equal(t, [...]uintptr{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104},
		[...]uintptr{unsafe.Offsetof(w.rows), unsafe.Offsetof(w.end), unsafe.Offsetof(w.epilogue), unsafe.Offsetof(w.epilogueEnd),
			unsafe.Offsetof(w.stop), unsafe.Offsetof(w.generation), unsafe.Offsetof(w.failed), unsafe.Offsetof(w.code),
			unsafe.Offsetof(w.epilogueFailed), unsafe.Offsetof(w.epilogueCode), unsafe.Offsetof(w.start), unsafe.Offsetof(w.done),
			unsafe.Offsetof(w.patience), unsafe.Offsetof(w.yield)})
	require.EqualValues(t, 96, rowBytes)
	require.EqualValues(t, 88, 8+8*rowGuard)
}

func TestWalkPassesElevenArguments(t *testing.T) {
	for _, w := range walkers {
		t.Run(w.name, func(t *testing.T) {
			rows := make([]row, 3)
			table := newTestTable(t, rows, nil)
			for i := range table.rows {
				table.rows[i].fn = probe.Record()
				for a := range table.rows[i].arg {
					table.rows[i].arg[a] = uintptr(1000*i + a)
				}
				table.rows[i].arg[0] = table.address(16 * i)
			}
			w.walk(table.walk)
			require.Equal(t, -1, table.walk.failedRow())
			for i := range table.rows {
				require.EqualValues(t, table.address(16*i), table.words[16*i])
				for a := 1; a < 11; a++ {
					require.EqualValues(t, 1000*i+a, table.words[16*i+a], "argument %d of row %d", a, i)
				}
				require.Zero(t, table.words[16*i+11], "alignment of the stack")
			}
		})
	}
}

// snprintf reads its arguments as code of any C compiler does.
func TestWalkCallsTheCLibrary(t *testing.T) {
	c, err := dl.Open("libc.so.6")
	require.NoError(t, err)
	snprintf, err := c.Symbol("snprintf")
	require.NoError(t, err)
	for _, w := range walkers {
		t.Run(w.name, func(t *testing.T) {
			table := newTestTable(t, make([]row, 1), nil)
			format, err := table.memory.text("%ld %ld %ld %ld %ld %ld %ld %ld")
			require.NoError(t, err)
			table.rows[0] = row{fn: snprintf, arg: [11]uintptr{table.address(0), 256, uintptr(format), 1, 22, 333, 4444, 55555, 666666, 7777777, 88888888}}
			w.walk(table.walk)
			want := "1 22 333 4444 55555 666666 7777777 88888888"
			require.Equal(t, want, dl.Text((*byte)(unsafe.Pointer(&table.words[0]))))
			require.EqualValues(t, len(want), table.walk.code, "what snprintf returns")
		})
	}
}

func TestWalkStopsAtTheFirstFailure(t *testing.T) {
	for _, w := range walkers {
		t.Run(w.name, func(t *testing.T) {
			for failing := -1; failing < 5; failing++ {
				table := newTestTable(t, make([]row, 5), make([]row, 3))
				for i := range table.rows {
					table.rows[i] = row{fn: probe.Add(), arg: [11]uintptr{table.address(0), 1}}
				}
				// One epilogue row for each of row 0 and 2, and one that fails.
				ends := unsafe.Slice(table.walk.epilogue, 3)
				ends[0] = row{fn: probe.Add(), arg: [11]uintptr{table.address(1), 1, rowGuard: table.guard(2)}}
				ends[1] = row{fn: probe.Code(), arg: [11]uintptr{9, rowGuard: table.guard(0)}}
				ends[2] = row{fn: probe.Add(), arg: [11]uintptr{table.address(2), 1, rowGuard: table.guard(0)}}
				if failing >= 0 {
					table.rows[failing] = row{fn: probe.Code(), arg: [11]uintptr{700}}
				}
				w.walk(table.walk)
				require.Equal(t, failing, table.walk.failedRow())
				passed := failing
				if failing < 0 {
					passed = 5
				} else {
					require.EqualValues(t, 700, table.walk.code)
				}
				require.EqualValues(t, passed, table.words[0])
				require.EqualValues(t, btoi(passed > 2), table.words[1], "epilogue of row 2, failing %d", failing)
				require.EqualValues(t, btoi(passed > 0), table.words[2], "epilogue of row 0, failing %d", failing)
				if passed > 0 {
					require.Equal(t, 1, table.walk.failedEpilogue())
					require.EqualValues(t, 9, table.walk.epilogueCode)
				} else {
					require.Equal(t, -1, table.walk.failedEpilogue())
				}
			}
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestWalkBuiltins(t *testing.T) {
	for _, w := range walkers {
		t.Run(w.name, func(t *testing.T) {
			table := newTestTable(t, make([]row, 5), nil)
			table.rows[0] = row{fn: rowNothing, arg: [11]uintptr{1, 2, 3}}
			table.rows[1] = row{fn: rowPublish, arg: [11]uintptr{table.address(0)}}
			table.rows[2] = row{fn: rowWait, arg: [11]uintptr{table.address(0)}}
			table.rows[3] = row{fn: rowIgnore, arg: [11]uintptr{probe.Code(), 5}}
			table.rows[4] = row{fn: rowIgnore, arg: [11]uintptr{probe.Add(), table.address(1), 3}}
			table.walk.generation = 42
			w.walk(table.walk)
			require.Equal(t, -1, table.walk.failedRow())
			require.EqualValues(t, 42, table.words[0])
			require.EqualValues(t, 3, table.words[1])
		})
	}
}

// A stop word that is set prevents a walk from starting and ends a wait.
func TestWalkStops(t *testing.T) {
	for _, w := range walkers {
		t.Run(w.name, func(t *testing.T) {
			table := newTestTable(t, make([]row, 2), nil)
			table.rows[0] = row{fn: probe.Add(), arg: [11]uintptr{table.address(0), 1}}
			table.rows[1] = row{fn: rowWait, arg: [11]uintptr{table.address(1)}}
			table.walk.generation = 1
			table.walk.stop = &table.words[2]
			table.walk.yield = schedYield()
			finished := make(chan struct{})
			go func() {
				w.walk(table.walk)
				close(finished)
			}()
			for atomic.LoadUint64(&table.words[0]) == 0 {
				runtime.Gosched()
			}
			atomic.StoreUint64(&table.words[2], 1)
			<-finished
			require.Equal(t, -1, table.walk.failedRow())
			w.walk(table.walk)
			require.EqualValues(t, 1, table.words[0])
		})
	}
}

// Many goroutines walk their own tables while the garbage collector runs.
func TestWalkUnderTheCollector(t *testing.T) {
	const goroutines, replays, rows = 8, 200, 50
	stop := make(chan struct{})
	var collecting sync.WaitGroup
	collecting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	var walking sync.WaitGroup
	failures := make(chan error, goroutines)
	for g := range goroutines {
		table := newTestTable(t, make([]row, rows), nil)
		for i := range table.rows {
			table.rows[i] = row{fn: probe.Add(), arg: [11]uintptr{table.address(0), uintptr(i)}}
		}
		walking.Go(func() {
			garbage := []string{}
			for range replays {
				walkTable(table.walk)
				garbage = append(garbage[:0], strings.Repeat("x", 1000+g))
			}
			if want := uint64(replays * rows * (rows - 1) / 2); table.words[0] != want {
				failures <- fmt.Errorf("goroutine %d: %d, want %d", g, table.words[0], want)
			}
		})
	}
	walking.Wait()
	close(stop)
	collecting.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

func TestWalkAllocatesNothing(t *testing.T) {
	table := newTestTable(t, []row{{fn: probe.Code()}}, nil)
	require.Zero(t, testing.AllocsPerRun(100, func() { walkTable(table.walk) }))
}

func BenchmarkWalk(b *testing.B) {
	for _, w := range walkers {
		b.Run(w.name, func(b *testing.B) {
			table := newTestTable(b, make([]row, 1000), nil)
			for i := range table.rows {
				table.rows[i].fn = probe.Code()
			}
			b.ReportAllocs()
			for b.Loop() {
				w.walk(table.walk)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/row")
		})
	}
}
