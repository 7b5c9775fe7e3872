// Tests with a fake compiler made of callbacks: options, logs, the choice of architecture, the cache. No libnvrtc is needed.

//go:build linux && (amd64 || arm64)

package nvrtc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/internal/cache"
)

// fakeCompiler upper-cases what it compiles. A source with the word "wrong" does not compile.
type fakeCompiler struct {
	mu       sync.Mutex
	programs map[uintptr]*fakeProgram
	next     uintptr
	compiled int
	latest   *fakeProgram
	options  []string
	known    []int32
	version  [2]int32
}

type fakeProgram struct {
	name, code, log, image string
	headers, names         []string
	symbols                [][]byte
}

var (
	fakeOnce      sync.Once
	fakeAddresses [functionCount]uintptr
	fakeNow       *fakeCompiler
	fakeText      = []byte("NVRTC_ERROR_FAKE\x00")
)

func poke[T any](at uintptr, v T) { **(**T)(unsafe.Pointer(&at)) = v }

func peek(at uintptr) uintptr { return **(**uintptr)(unsafe.Pointer(&at)) }

func put(at uintptr, text string) {
	copy(unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), len(text)+1), text+"\x00")
}

func newFake(t *testing.T) *fakeCompiler {
	fakeOnce.Do(func() {
		for f := range functionCount {
			fakeAddresses[f] = purego.NewCallback(func(a, b, c, d, e, g uintptr) uintptr { return fakeNow.serve(f, [6]uintptr{a, b, c, d, e, g}) })
		}
	})
	fakeNow = &fakeCompiler{programs: map[uintptr]*fakeProgram{}, known: []int32{90, 50, 80}, version: [2]int32{12, 4}}
	return fakeNow
}

func (k *fakeCompiler) resolve(name string) (uintptr, error) {
	for f := range functionCount {
		if names[f] == name {
			return fakeAddresses[f], nil
		}
	}
	return 0, errors.New("no such symbol")
}

func (k *fakeCompiler) serve(f function, a [6]uintptr) uintptr {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.programs[a[0]]
	switch f {
	case nvrtcGetErrorString:
		return uintptr(unsafe.Pointer(&fakeText[0]))
	case nvrtcVersion:
		poke(a[0], k.version[0])
		poke(a[1], k.version[1])
	case nvrtcGetNumSupportedArchs:
		poke(a[0], int32(len(k.known)))
	case nvrtcGetSupportedArchs:
		for i, arch := range k.known {
			poke(a[0]+uintptr(4*i), arch)
		}
	case nvrtcCreateProgram:
		k.next++
		p := &fakeProgram{code: dl.TextAt(a[1]), name: dl.TextAt(a[2])}
		for i := range a[3] {
			p.headers = append(p.headers, dl.TextAt(peek(a[5]+8*i))+": "+dl.TextAt(peek(a[4]+8*i)))
		}
		k.programs[k.next], k.latest = p, p
		poke(a[0], k.next)
	case nvrtcAddNameExpression:
		p.names = append(p.names, dl.TextAt(a[1]))
	case nvrtcGetLoweredName:
		symbol := []byte("_Z" + dl.TextAt(a[1]) + "\x00")
		p.symbols = append(p.symbols, symbol)
		poke(a[2], uintptr(unsafe.Pointer(&symbol[0])))
	case nvrtcDestroyProgram:
		delete(k.programs, peek(a[0]))
	case nvrtcCompileProgram:
		k.compiled++
		k.options = nil
		for i := range a[1] {
			at := a[2] + 8*i
			k.options = append(k.options, dl.TextAt(peek(at)))
		}
		if line, _, found := strings.Cut(p.code, "wrong"); found {
			p.log = fmt.Sprintf("%s(%d): error: this is wrong\n", p.name, strings.Count(line, "\n")+1)
			return codeCompilation
		}
		p.log = "a warning"
		p.image = k.options[0] + " " + strings.ToUpper(p.code)
	case nvrtcGetProgramLogSize:
		poke(a[1], uint64(len(p.log)+1))
	case nvrtcGetProgramLog:
		put(a[1], p.log)
	case nvrtcGetCUBINSize, nvrtcGetPTXSize:
		poke(a[1], uint64(len(p.image)+1))
	case nvrtcGetCUBIN, nvrtcGetPTX:
		put(a[1], p.image)
	}
	return 0
}

func (k *fakeCompiler) open(t *testing.T, folder string) *Compiler {
	c, err := open(k.resolve, nil, cache.Open("nvrtc", folder))
	require.NoError(t, err)
	return c
}

func compile(t *testing.T, c *Compiler, s Source) *Result {
	if s.Capability == [2]int{} {
		s.Capability = [2]int{9, 0}
	}
	r, err := c.Compile(context.Background(), s)
	require.NoError(t, err)
	return r
}

func TestCompile(t *testing.T) {
	k := newFake(t)
	c := k.open(t, "off")
	major, minor := c.Version()
	require.Equal(t, [2]int{12, 4}, [2]int{major, minor})
	require.Equal(t, []int{50, 80, 90}, c.Architectures())
	r := compile(t, c, Source{Name: "m", Code: []byte("code"), Options: []string{"-DN=4"}})
	require.Equal(t, &Result{Code: []byte("--gpu-architecture=sm_90 CODE\x00"), Architecture: "sm_90", Log: "a warning"}, r)
	require.Equal(t, []string{"--gpu-architecture=sm_90", "-DN=4"}, k.options)
	require.Empty(t, k.programs, "programs are destroyed")
}

func TestNamesAndHeaders(t *testing.T) {
	k := newFake(t)
	folder := t.TempDir()
	source := Source{Name: "m", Code: []byte("code"), Names: []string{"f<3>", "ns::g"}, Headers: []Header{{"a.h", []byte("one")}, {"b.h", []byte("two")}}}
	r := compile(t, k.open(t, folder), source)
	require.Equal(t, []string{"a.h: one", "b.h: two"}, k.latest.headers)
	require.Equal(t, []string{"f<3>", "ns::g"}, k.latest.names)
	require.Equal(t, []string{"_Zf<3>", "_Zns::g"}, r.Symbols)
	again := compile(t, k.open(t, folder), source)
	require.True(t, again.Cached)
	require.Equal(t, r.Symbols, again.Symbols)
	source.Headers = []Header{{"a.h", []byte("one")}, {"b.h", []byte("three")}}
	require.False(t, compile(t, k.open(t, folder), source).Cached, "a header changed")
	source.Names = source.Names[:1]
	require.False(t, compile(t, k.open(t, folder), source).Cached, "other names")
	require.Empty(t, k.programs)
}

func TestUnknownArchitectureGetsPTX(t *testing.T) {
	c := newFake(t).open(t, "off")
	r := compile(t, c, Source{Code: []byte("code"), Capability: [2]int{12, 0}})
	require.True(t, r.PTX)
	require.Equal(t, "compute_90", r.Architecture)
	require.Equal(t, "--gpu-architecture=compute_90 CODE", string(r.Code))
	r = compile(t, c, Source{Code: []byte("code"), Capability: [2]int{8, 6}})
	require.Equal(t, "compute_80", r.Architecture)
	_, err := c.Compile(context.Background(), Source{Path: "old.cu", Capability: [2]int{3, 5}})
	require.EqualError(t, err, "old.cu: the compiler (CUDA 12.4) compiles for sm_50 and newer, and the device is sm_35; use an older toolkit")
}

func TestErrorsHaveTheUsersFileAndLine(t *testing.T) {
	k := newFake(t)
	c := k.open(t, t.TempDir())
	_, err := c.Compile(context.Background(), Source{Path: "dir/blur.cu", Code: []byte("a\nb\nwrong"), Capability: [2]int{9, 0}})
	require.EqualError(t, err, "dir/blur.cu does not compile:\ndir/blur.cu(3): error: this is wrong")
	var failure *launch.CompileError
	require.ErrorAs(t, err, &failure)
	require.Empty(t, k.programs)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = c.Compile(ctx, Source{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestCacheKnowsWhatMatters(t *testing.T) {
	k := newFake(t)
	folder, files := t.TempDir(), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(files, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	main := write("main.cu", "#include \"a.h\"\ncode")
	write("a.h", "#include <b.h>\n")
	write("b.h", "one")
	source := func() Source {
		code, err := os.ReadFile(main)
		require.NoError(t, err)
		return Source{Path: main, Code: code}
	}
	want := 0
	same := func(why string, s Source) {
		require.True(t, compile(t, k.open(t, folder), s).Cached, why)
		require.Equal(t, want, k.compiled, why)
	}
	differs := func(why string, s Source) {
		want++
		require.False(t, compile(t, k.open(t, folder), s).Cached, why)
		require.Equal(t, want, k.compiled, why)
	}
	differs("first", source())
	same("again, in another process", source())
	write("b.h", "two")
	differs("an included file changed", source())
	same("again", source())
	write("b.h", "one")
	same("the file is as it was", source())
	other := source()
	other.Options = []string{"-DX"}
	differs("options", other)
	other = source()
	other.Capability = [2]int{8, 0}
	differs("architecture", other)
	k.version = [2]int32{12, 5}
	differs("compiler", source())
	write("main.cu", "#include NAME\n")
	differs("an include whose name a macro makes", source())
	differs("is never cached", source())
}

func TestPTXIsMadeWhereItIsWanted(t *testing.T) {
	k := newFake(t)
	c := k.open(t, "off")
	r, err := c.Compile(context.Background(), Source{Code: []byte("code"), Capability: [2]int{9, 0}, PTX: true})
	require.NoError(t, err)
	require.True(t, r.PTX)
	require.Equal(t, "compute_90", r.Architecture)
}

func TestDamagedEntriesAreRebuilt(t *testing.T) {
	k := newFake(t)
	folder := t.TempDir()
	s := Source{Name: "m", Code: []byte("code")}
	want := compile(t, k.open(t, folder), s)
	entries, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	whole, err := os.ReadFile(entries[0])
	require.NoError(t, err)
	for i := 0; i <= len(whole); i++ {
		damaged := append([]byte{}, whole...)
		if i < len(whole) {
			damaged[i] ^= 0x10
		}
		if i%3 == 0 {
			damaged = whole[:min(i, len(whole)-1)]
		}
		if i == len(whole) {
			damaged = append(append([]byte{}, whole...), 0)
		}
		require.NoError(t, os.WriteFile(entries[0], damaged, 0o644))
		r := compile(t, k.open(t, folder), s)
		require.False(t, r.Cached, "damaged at byte %d", i)
		require.Equal(t, want.Code, r.Code)
	}
	require.True(t, compile(t, k.open(t, folder), s).Cached)
}

func TestCacheStaysSmall(t *testing.T) {
	k := newFake(t)
	c := k.open(t, t.TempDir())
	c.cache.Limit = 2000
	for i := range 30 {
		compile(t, c, Source{Code: fmt.Appendf(nil, "code %d %s", i, strings.Repeat("x", 200))})
	}
	entries, err := os.ReadDir(c.cache.Folder)
	require.NoError(t, err)
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		total += info.Size()
	}
	require.LessOrEqual(t, total, int64(2000))
	require.NotEmpty(t, entries)
}

func TestCacheThatCannotBeWrittenIsNone(t *testing.T) {
	k := newFake(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	c := k.open(t, filepath.Join(file, "folder"))
	require.False(t, compile(t, c, Source{Code: []byte("code")}).Cached)
	require.False(t, compile(t, c, Source{Code: []byte("code")}).Cached)
}

func TestConcurrentCompilations(t *testing.T) {
	k := newFake(t)
	folder := t.TempDir()
	var wait sync.WaitGroup
	for i := range 8 {
		c := k.open(t, folder)
		wait.Go(func() {
			for j := range 20 {
				r, err := c.Compile(context.Background(), Source{Code: fmt.Appendf(nil, "code %d", (i+j)%5), Capability: [2]int{9, 0}})
				if err != nil || !strings.HasPrefix(string(r.Code), fmt.Sprintf("--gpu-architecture=sm_90 CODE %d", (i+j)%5)) {
					t.Errorf("%v %v", r, err)
				}
			}
		})
	}
	wait.Wait()
	left, err := filepath.Glob(filepath.Join(folder, "new-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOpenFailures(t *testing.T) {
	k := newFake(t)
	_, err := open(func(name string) (uintptr, error) {
		if name == "nvrtcGetCUBIN" {
			return 0, errors.New("no such symbol")
		}
		return k.resolve(name)
	}, nil, nil)
	require.ErrorIs(t, err, ErrNoCompiler)
	require.EqualError(t, err, "no CUDA C compiler (libnvrtc): the library has no nvrtcGetCUBIN; CUDA 11.2 or newer is needed")
}

func TestToolkit(t *testing.T) {
	t.Setenv("CUDA_HOME", "")
	t.Setenv("CUDA_PATH", t.TempDir())
	require.Equal(t, toolkit(os.Getenv("CUDA_PATH")), find("", "", os.Getenv))
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "include", "cccl"), 0o755))
	t.Setenv("CUDA_HOME", home)
	p := find("/does/not/exist", "", os.Getenv)
	k := newFake(t)
	c, err := open(k.resolve, p.include, nil)
	require.NoError(t, err)
	compile(t, c, Source{Path: "here/x.cu"})
	require.Equal(t, []string{"--gpu-architecture=sm_90", "--include-path=here", "--include-path=" + home + "/include", "--include-path=" + home + "/include/cccl"}, k.options)
	require.Contains(t, p.candidates(), home+"/lib64/libnvrtc.so.12")
}

func TestTheLibraryIsOpenedOnlyToCompile(t *testing.T) {
	k := newFake(t)
	store, folder := cache.Open("nvrtc", t.TempDir()), t.TempDir()
	library := filepath.Join(folder, "libnvrtc.so.12")
	require.NoError(t, os.WriteFile(library, []byte("library"), 0o644))
	candidates := []string{"libnvrtc.so", library}
	var opened [][]string
	var failure error
	o := opener{func(uintptr) string { return library }, func(names ...string) (dl.Resolver, error) {
		opened = append(opened, names)
		return k.resolve, failure
	}}
	start := func() *Compiler {
		c, err := choose(candidates, nil, store, o)
		require.NoError(t, err)
		require.Equal(t, [2]int{12, 4}, c.version)
		require.Equal(t, []int{50, 80, 90}, c.Architectures())
		return c
	}
	source := Source{Name: "m.cu", Code: []byte("code"), Capability: [2]int{9, 0}}
	require.False(t, compile(t, start(), source).Cached)
	require.Equal(t, [][]string{candidates}, opened)
	require.True(t, compile(t, start(), source).Cached)
	require.Len(t, opened, 1, "what is cached needs no library")
	c := start()
	source.Code = []byte("other code")
	require.False(t, compile(t, c, source).Cached)
	source.Code = []byte("yet other code")
	require.False(t, compile(t, c, source).Cached)
	require.Equal(t, [][]string{candidates, {library}}, opened)

	require.NoError(t, os.WriteFile(library, []byte("another library"), 0o644))
	start()
	require.Equal(t, [][]string{candidates, {library}, candidates}, opened, "the file has changed")
	start()
	require.Len(t, opened, 3)
	t.Setenv("LD_LIBRARY_PATH", folder)
	start()
	require.Len(t, opened, 4, "the loader looks elsewhere")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "libnvrtc.so"), nil, 0o644))
	start()
	require.Len(t, opened, 5, "the loader finds another file")

	failure = errors.New("it is damaged")
	source.Code = []byte("new code")
	_, err := start().Compile(context.Background(), source)
	require.ErrorIs(t, err, ErrNoCompiler)
	require.EqualError(t, err, "m.cu: no CUDA C compiler (libnvrtc): it is damaged")
	store = nil
	_, err = choose(candidates, nil, store, o)
	require.EqualError(t, err, "no CUDA C compiler (libnvrtc): it is damaged; install the CUDA toolkit (or its libnvrtc), or compile to PTX beforehand")
}

func TestFilesOfAddresses(t *testing.T) {
	lib, err := dl.Open("libc.so.6")
	require.NoError(t, err)
	address, err := lib.Symbol("getpid")
	require.NoError(t, err)
	require.Contains(t, fileAt(address), "libc")
	require.Empty(t, fileAt(1))
}
