// A fake driver made of callbacks, one for every function of the table, so that every path runs without a GPU. It keeps a log,
// copies at once, and can fail the k-th call. It computes nothing: launches are only logged.

//go:build linux && (amd64 || arm64)

package driver

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// fakeDriver is one test's driver.
type fakeDriver struct {
	opened   []string // the first letter of each handle of memory that was opened
	mu       sync.Mutex
	log      []fakeCall
	quiet    bool // log nothing
	version  int32
	devices  int
	missing  map[string]bool
	failAt   int // the number of the call to fail, counting from 1; 0: none
	failCode uint32
	failOn   map[function]uint32 // result of every call of a function
	calls    int
	next     uintptr
	alive    map[uintptr]function // handle -> what made it
	blocks   map[uintptr][]byte
	retained map[int32]int
	contexts map[int32]uintptr
	stacks   map[uint64][]uintptr // by thread: contexts pushed
	capture  uintptr              // stream that is being captured
	nodes    int
	queues   []string         // what queuesVariable was at cuInit, and whenever a context was made
	foreign  uintptr          // a context of the first device that is not its primary one, and that streams say they belong to
	records  [][]byte         // parameters of graph nodes for copies and sets, as they were when the call was made
	deciders []uintptr        // kernels that decide about loops and branches
	bodies   [][]uintptr      // by conditional node: the graphs of its bodies
	update   uint32           // result of an update of a graph; 0: it succeeds
	hosts    []hostNodeParams // of graph nodes
	bad      []string         // misuse
}

type fakeCall struct {
	f    function
	args [11]uintptr
}

// The callbacks are made only once, because they are never freed; they call the fake driver of the running test.
var (
	fakeOnce      sync.Once
	fakeAddresses [functionCount]uintptr
	fakeNow       atomic.Pointer[fakeDriver]
	fakeText      = []byte("CUDA_ERROR_FAKE\x00")
	fakeKernels   = map[uintptr][]byte{1: []byte("blur\x00"), 2: []byte("sharpen\x00")}
	gettid        func() uint64
	threadCreate  func(thread *uintptr, attributes, function, argument uintptr) int32
	threadJoin    func(thread, result uintptr) int32
)

func newFakeDriver(t testing.TB) *fakeDriver {
	fakeOnce.Do(func() {
		for f := range functionCount {
			fakeAddresses[f] = purego.NewCallback(func(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 uintptr) uintptr {
				return uintptr(fakeNow.Load().serve(f, [11]uintptr{a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10}))
			})
		}
		libc, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
		if err != nil {
			panic(err)
		}
		purego.RegisterLibFunc(&gettid, libc, "pthread_self")
		purego.RegisterLibFunc(&threadCreate, libc, "pthread_create")
		purego.RegisterLibFunc(&threadJoin, libc, "pthread_join")
	})
	d := &fakeDriver{version: 12040, devices: 2, failOn: map[function]uint32{}, missing: map[string]bool{}, next: 0x1000,
		alive: map[uintptr]function{}, blocks: map[uintptr][]byte{}, retained: map[int32]int{}, contexts: map[int32]uintptr{},
		stacks: map[uint64][]uintptr{}}
	fakeNow.Store(d)
	return d
}

// resolve finds a callback, as dlsym finds a function.
func (d *fakeDriver) resolve(symbol string) (uintptr, error) {
	if d.missing[symbol] {
		return 0, errors.New("no such symbol")
	}
	for f := range functionCount {
		if table[f].symbol == symbol {
			return fakeAddresses[f], nil
		}
	}
	return 0, fmt.Errorf("symbol %s is not in the table", symbol)
}

func (d *fakeDriver) open(t testing.TB) *Platform {
	p, err := open(d.resolve, Options{})
	require.NoError(t, err)
	return p
}

func poke[T any](at uintptr, v T) { **(**T)(unsafe.Pointer(&at)) = v }

func peek[T any](at uintptr) T { return **(**T)(unsafe.Pointer(&at)) }

func fakeBytes(at, n uintptr) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n) }

func (d *fakeDriver) made(f function) uintptr {
	d.next += 0x100
	d.alive[d.next] = f
	return d.next
}

func (d *fakeDriver) gone(handle uintptr, maker function) {
	if d.alive[handle] != maker {
		d.bad = append(d.bad, fmt.Sprintf("%#x is not a handle of %s", handle, maker.name()))
	}
	delete(d.alive, handle)
}

// needsContext reports for which functions the fake requires a current context.
func needsContext(f function) bool {
	switch f {
	case cuInit, cuDriverGetVersion, cuGetErrorName, cuGetErrorString, cuDeviceGetCount, cuDeviceGet, cuDeviceGetName, cuDeviceGetUuid,
		cuDeviceTotalMem, cuDeviceGetAttribute, cuDeviceCanAccessPeer, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRelease,
		cuCtxPushCurrent, cuCtxPopCurrent, cuCtxSetCurrent, cuCtxGetCurrent, cuStreamGetCtx:
		return false
	}
	return true
}

func (d *fakeDriver) serve(f function, a [11]uintptr) uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f == cuGetErrorName || f == cuGetErrorString {
		poke(a[1], uintptr(unsafe.Pointer(&fakeText[0])))
		return 0
	}
	if !d.quiet {
		d.log = append(d.log, fakeCall{f, a})
	}
	d.calls++
	thread := gettid()
	if needsContext(f) && len(d.stacks[thread]) == 0 {
		d.bad = append(d.bad, f.name()+" without a context")
		return 201
	}
	if d.calls == d.failAt {
		if f == cuStreamEndCapture { // a capture whose end fails has ended all the same
			d.capture = 0
		}
		return d.failCode
	}
	if code, ok := d.failOn[f]; ok {
		if f == cuStreamEndCapture {
			d.capture = 0
		}
		return code
	}
	switch f {
	case cuInit:
		d.noteQueues()
	case cuDriverGetVersion:
		poke(a[0], d.version)
	case cuDeviceGetCount:
		poke(a[0], int32(d.devices))
	case cuDeviceGet:
		poke(a[0], int32(a[1])+10)
	case cuDeviceGetName:
		copy(fakeBytes(a[0], a[1]), "Fake GPU\x00")
	case cuDeviceGetUuid:
		copy(fakeBytes(a[0], 16), "0123456789abcdef")
	case cuDeviceTotalMem:
		poke(a[0], uint64(1<<30))
	case cuDeviceGetAttribute:
		v := map[uintptr]int32{1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 1<<31 - 1, 6: 65535, 7: 65535, 8: 48 << 10, 14: 512, 16: 132, 39: 2048, 51: 32, 75: 9, 76: 0, 97: 227 << 10}
		poke(a[0], v[a[1]])
	case cuDeviceCanAccessPeer:
		poke(a[0], int32(1))
	case cuDevicePrimaryCtxRetain:
		d.noteQueues()
		n := int32(a[1])
		d.retained[n]++
		if d.contexts[n] == 0 {
			d.contexts[n] = d.made(cuDevicePrimaryCtxRetain)
		}
		poke(a[0], d.contexts[n])
	case cuDevicePrimaryCtxRelease:
		d.retained[int32(a[0])]--
	case cuCtxPushCurrent:
		d.stacks[thread] = append(d.stacks[thread], a[0])
	case cuCtxPopCurrent:
		s := d.stacks[thread]
		if len(s) == 0 {
			d.bad = append(d.bad, "pop of nothing")
			return 201
		}
		poke(a[0], s[len(s)-1])
		if d.stacks[thread] = s[:len(s)-1]; len(s) == 1 {
			delete(d.stacks, thread)
		}
	case cuCtxSetCurrent:
		s := d.stacks[thread]
		s[len(s)-1] = a[0]
	case cuCtxGetCurrent:
		poke(a[0], uintptr(0))
	case cuCtxGetDevice:
		if s := d.stacks[thread]; s[len(s)-1] == d.foreign {
			poke(a[0], int32(10))
			break
		}
		for n, c := range d.contexts {
			if s := d.stacks[thread]; c == s[len(s)-1] {
				poke(a[0], n)
			}
		}
	case cuStreamGetCtx:
		context := d.contexts[10]
		if d.foreign != 0 {
			context = d.foreign
		}
		poke(a[1], context)
	case cuCtxGetStreamPriorityRange:
		poke(a[0], int32(0))
		poke(a[1], int32(-5))
	case cuMemGetInfo:
		poke(a[0], uint64(1<<29))
		poke(a[1], uint64(1<<30))
	case cuMemAlloc, cuMemHostAlloc:
		block := make([]byte, a[1])
		at := uintptr(unsafe.Pointer(&block[0]))
		d.blocks[at] = block
		d.alive[at] = f
		poke(a[0], at)
	case cuIpcGetMemHandle:
		copy(fakeBytes(a[0], handleBytes), fmt.Sprintf("%016x", a[1]))
	case cuIpcOpenMemHandle:
		// The handle is by value: 64 bytes on the stack on amd64, and a pointer to a copy of them on arm64.
		first := a[6]
		if runtime.GOARCH == "arm64" {
			first = peek[uintptr](a[1])
		}
		at := d.made(f)
		d.opened = append(d.opened, fmt.Sprintf("%c", byte(first)))
		poke(a[0], at)
	case cuIpcCloseMemHandle:
		d.gone(a[0], cuIpcOpenMemHandle)
	case cuMemFree:
		d.gone(a[0], cuMemAlloc)
		delete(d.blocks, a[0])
	case cuMemFreeHost:
		d.gone(a[0], cuMemHostAlloc)
		delete(d.blocks, a[0])
	case cuMemHostRegister:
		d.alive[a[0]] = f
	case cuMemHostUnregister:
		d.gone(a[0], cuMemHostRegister)
	case cuMemcpyAsync, cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuMemcpyDtoDAsync:
		copy(fakeBytes(a[0], a[2]), fakeBytes(a[1], a[2]))
		d.node()
	case cuMemcpy2DAsync:
		w := unsafe.Slice((*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&a[0]))), copy2DWords)
		for row := range w[15] {
			copy(fakeBytes(uintptr(w[10]|w[11])+uintptr(row*w[13]), uintptr(w[14])), fakeBytes(uintptr(w[3]|w[4])+uintptr(row*w[6]), uintptr(w[14])))
		}
		d.node()
	case cuMemsetD2D8Async:
		for row := range a[4] {
			for i := range fakeBytes(a[0]+row*a[1], a[3]) {
				fakeBytes(a[0]+row*a[1], a[3])[i] = byte(a[2])
			}
		}
		d.node()
	case cuMemsetD2D16Async, cuMemsetD2D32Async:
		d.node()
	case cuMemsetD8Async:
		for i := range fakeBytes(a[0], a[2]) {
			fakeBytes(a[0], a[2])[i] = byte(a[1])
		}
		d.node()
	case cuMemsetD16Async, cuMemsetD32Async, cuLaunchKernel, cuLaunchKernelEx:
		d.node()
	case cuLaunchHostFunc:
		if d.node(); d.capture == 0 {
			onThread(a[1], a[2])
		}
	case cuGraphAddHostNode:
		d.hosts = append(d.hosts, peek[hostNodeParams](a[4]))
		d.nodes++
		d.next += 0x100
		poke(a[0], d.next)
	case cuStreamCreateWithPriority, cuEventCreate, cuModuleLoadDataEx:
		poke(a[0], d.made(f))
	case cuGraphCreate:
		d.nodes = 0
		poke(a[0], d.made(f))
	case cuStreamDestroy:
		d.gone(a[0], cuStreamCreateWithPriority)
	case cuTexObjectCreate:
		for i, size := range []uintptr{144, 104} {
			d.records = append(d.records, slices.Clone(fakeBytes(a[1+i], size)))
		}
		poke(a[0], uint64(d.made(f)))
	case cuTexObjectDestroy:
		d.gone(a[0], cuTexObjectCreate)
	case cuEventDestroy:
		d.gone(a[0], cuEventCreate)
	case cuModuleUnload:
		d.gone(a[0], cuModuleLoadDataEx)
	case cuGraphDestroy:
		d.gone(a[0], cuGraphCreate)
	case cuStreamBeginCapture:
		d.capture, d.nodes = a[0], 0
	case cuStreamEndCapture:
		if d.capture != a[0] {
			d.bad = append(d.bad, "end of a capture that was not begun")
		}
		d.capture = 0
		poke(a[1], d.made(cuGraphCreate))
	case cuGraphInstantiateWithFlags:
		poke(a[0], d.made(f))
	case cuGraphExecDestroy:
		d.gone(a[0], cuGraphInstantiateWithFlags)
	case cuGraphGetNodes:
		poke(a[2], uint64(d.nodes))
	case cuGraphExecMemcpyNodeSetParams, cuGraphExecMemsetNodeSetParams: // only nodes of one row can be changed
		if height := map[function]uintptr{cuGraphExecMemcpyNodeSetParams: 184, cuGraphExecMemsetNodeSetParams: 32}[f]; peek[uint64](a[2]+height) != 1 {
			return codeInvalidValue
		}
		d.records = append(d.records, slices.Clone(fakeBytes(a[2], table[f].record)))
	case cuGraphExecUpdate:
		if d.update != 0 {
			poke(a[3], d.update)
			return codeGraphUpdateFailure
		}
	case cuGraphAddKernelNode, cuGraphAddMemcpyNode, cuGraphAddMemsetNode, cuGraphAddEmptyNode, cuGraphAddEventRecordNode, cuGraphAddChildGraphNode:
		if f == cuGraphAddMemcpyNode || f == cuGraphAddMemsetNode {
			d.records = append(d.records, slices.Clone(fakeBytes(a[4], table[f].record)))
		}
		d.nodes++
		d.next += 0x100
		poke(a[0], d.next)
	case cuGraphConditionalHandleCreate:
		d.next += 0x100
		poke(a[0], uint64(d.next))
	case cuGraphAddNode:
		d.records = append(d.records, slices.Clone(fakeBytes(a[5], table[f].record)))
		count := peek[uint32](a[5] + 28)
		graphs := make([]uintptr, count)
		for k := range graphs {
			d.next += 0x100
			graphs[k] = d.next
		}
		d.bodies = append(d.bodies, graphs)
		poke(a[5]+32, uintptr(unsafe.Pointer(&graphs[0])))
		d.next += 0x100
		poke(a[0], d.next)
	case cuModuleGetFunction:
		name := dl.Text(*(**byte)(unsafe.Pointer(&a[2])))
		if name == "absent" {
			return codeNotFound
		}
		d.next += 0x100
		if name == conditions.Entry {
			d.deciders = append(d.deciders, d.next)
		}
		poke(a[0], d.next)
	case cuModuleGetFunctionCount:
		poke(a[0], uint32(2))
	case cuModuleEnumerateFunctions:
		poke(a[0], [2]uintptr{2, 1})
	case cuFuncGetName:
		poke(a[0], uintptr(unsafe.Pointer(&fakeKernels[a[1]][0])))
	case cuFuncGetAttribute:
		v := map[uintptr]int32{functionMaxThreads: 1024, functionRegisters: 32, functionMaxDynamic: 48 << 10}
		poke(a[0], v[a[1]])
	case cuFuncGetParamInfo:
		if slices.Contains(d.deciders, a[0]) { // they take as many words as they are asked for
			poke(a[2], uint64(8*a[1]))
			poke(a[3], uint64(8))
			break
		}
		if a[1] >= 2 { // every other kernel takes a pointer and an int
			return codeInvalidValue
		}
		poke(a[2], uint64(8*a[1]))
		poke(a[3], uint64([2]uint64{8, 4}[a[1]]))
	case cuOccupancyMaxPotentialBlockSize:
		poke(a[0], int32(132))
		poke(a[1], int32(256))
	case cuOccupancyMaxActiveBlocksPerMultiprocessor:
		poke(a[0], int32(8))
	case cuEventElapsedTime:
		poke(a[0], float32(1.5))
	}
	return 0
}

// onThread calls a C function on a thread that Go knows nothing of, as the driver calls host functions, and waits for it.
func onThread(function, argument uintptr) {
	var thread uintptr
	if code := threadCreate(&thread, 0, function, argument); code != 0 {
		panic(fmt.Sprintf("pthread_create: %d", code))
	}
	threadJoin(thread, 0)
}

// noteQueues reads C's environment as a driver does.
func (d *fakeDriver) noteQueues() {
	value, _ := getenv(queuesVariable)
	d.queues = append(d.queues, value)
}

// node counts the calls that a capture would have turned into nodes.
func (d *fakeDriver) node() {
	if d.capture != 0 {
		d.nodes++
	}
}

// names lists the names of the calls since a position in the log.
func (d *fakeDriver) names(from int) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := []string{}
	for _, c := range d.log[from:] {
		names = append(names, c.f.name())
	}
	return names
}

func (d *fakeDriver) mark() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

// clean checks that nothing was left behind or misused: no handle but primary contexts, no context on a thread.
func (d *fakeDriver) clean(t testing.TB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	require.Empty(t, d.bad)
	for handle, maker := range d.alive {
		if maker != cuDevicePrimaryCtxRetain {
			t.Errorf("%#x of %s was left behind", handle, maker.name())
		}
	}
	require.Empty(t, d.stacks)
	require.Zero(t, d.capture)
}
