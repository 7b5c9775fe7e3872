// The NCCL library: finding it, its functions, and its errors. Knows nothing of streams and devices.

// Package nccl opens NVIDIA's library for communication between GPUs (libnccl.so.2) at run time, without cgo.
package nccl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/internal/dl"
)

// ErrNoLibrary is what Open returns if there is no usable libnccl.
var ErrNoLibrary = errors.New("no NCCL (libnccl.so.2)")

// A Function is a function of the library.
type Function uint8

const (
	GetVersion Function = iota
	GetErrorString
	GetUniqueID
	CommInitRank
	CommSplit
	CommGetAsyncError
	CommAbort
	CommDestroy
	AllReduce
	Reduce
	Broadcast
	AllGather
	ReduceScatter
	Send
	Recv
	GroupStart
	GroupEnd
	required
)

const (
	// CommInitRankScalable takes a pointer to what CommInitRank takes by value; NCCL 2.23 and later have it.
	CommInitRankScalable = required + iota
	GetLastError         // NCCL 2.13 and later
	Functions            // how many there are
)

var names = [Functions]string{"ncclGetVersion", "ncclGetErrorString", "ncclGetUniqueId", "ncclCommInitRank", "ncclCommSplit",
	"ncclCommGetAsyncError", "ncclCommAbort",
	"ncclCommDestroy", "ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclAllGather", "ncclReduceScatter", "ncclSend", "ncclRecv",
	"ncclGroupStart", "ncclGroupEnd",
	"ncclCommInitRankScalable", "ncclGetLastError"}

// String returns the function's name.
func (f Function) String() string {
	if f < Functions {
		return names[f]
	}
	return fmt.Sprintf("nccl.Function(%d)", uint8(f))
}

const (
	success    = 0
	inProgress = 7
	noColor    = ^uintptr(0) // NCCL_SPLIT_NOCOLOR
)

var codeNames = []string{"ncclSuccess", "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument",
	"ncclInvalidUsage", "ncclRemoteError", "ncclInProgress", "ncclTimeout"}

// Library is an open libnccl.
type Library struct {
	address [Functions]uintptr
	name    string
	version int // 22809 is 2.28.9
}

// ID is what the ranks of a communicator have in common.
type ID [128]byte

// Comm is a communicator.
type Comm uintptr

// Error is a call that failed.
type Error struct {
	Function Function
	Code     uint64
	Text     string // what NCCL says about the code
	Last     string // NCCL's last error on this rank, "" if it has none
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s (%d)", e.Function, e.CodeName(), e.Code)
	if e.Text != "" {
		text += ": " + e.Text
	}
	if e.Last != "" {
		text += ": " + e.Last
	}
	return text
}

// CodeName is the name of the code.
func (e *Error) CodeName() string {
	if e.Code < uint64(len(codeNames)) {
		return codeNames[e.Code]
	}
	return "ncclResult_t"
}

// Open finds the library: DAGRUN_NCCL if it is set, then the dynamic loader's search path, then a CUDA toolkit, conda, and the packages of pip.
func Open(getenv func(string) string) (*Library, error) {
	files := candidates(getenv)
	lib, err := dl.Open(files...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; install it (libnccl2, or pip install nvidia-nccl-cu13), or set DAGRUN_NCCL to the file", ErrNoLibrary, err)
	}
	return Resolve(lib.Symbol, lib.Name)
}

// Resolve finds the functions of a library that is open.
func Resolve(resolve dl.Resolver, name string) (*Library, error) {
	l := &Library{name: name}
	if missing := resolve.Fill(l.address[:required], names[:required]); missing != "" {
		return nil, fmt.Errorf("%w: %s has no %s; NCCL 2.18 or newer is needed", ErrNoLibrary, name, missing)
	}
	for f := required; f < Functions; f++ {
		if address, err := resolve(names[f]); err == nil {
			l.address[f] = address
		}
	}
	version := new(int32)
	if err := l.check(GetVersion, dl.CallWith(l.address[GetVersion], dl.Pointer(version))); err != nil {
		return nil, err
	}
	l.version = int(*version)
	return l, nil
}

// candidates are the files to open, in order.
func candidates(getenv func(string) string) []string {
	const name = "libnccl.so.2"
	if file := getenv("DAGRUN_NCCL"); file != "" {
		return []string{file}
	}
	files := []string{name}
	for _, root := range []string{getenv("NCCL_HOME"), getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda", "/usr/local/nccl", getenv("CONDA_PREFIX")} {
		if filepath.IsAbs(root) {
			files = append(files, filepath.Join(root, "lib64", name), filepath.Join(root, "lib", name))
		}
	}
	for _, root := range []string{getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), filepath.Join(getenv("HOME"), ".local"), "/usr/local", "/usr", "/opt/conda"} {
		if !filepath.IsAbs(root) {
			continue
		}
		for _, packages := range []string{"site-packages", "dist-packages"} {
			found, _ := filepath.Glob(filepath.Join(root, "lib", "python3*", packages, "nvidia", "nccl", "lib", name)) // the pattern is well-formed
			files = append(files, found...)
		}
	}
	exists := files[:1]
	for _, file := range files[1:] {
		if _, err := os.Stat(file); err == nil {
			exists = append(exists, file)
		}
	}
	return exists
}

// Version is the library's version, such as "2.28.9".
func (l *Library) Version() string {
	major := 10000
	if l.version < major { // before 2.9
		major = 1000
	}
	return fmt.Sprintf("%d.%d.%d", l.version/major, l.version%major/100, l.version%100)
}

// Name is the file that was opened.
func (l *Library) Name() string { return l.name }

// Address returns a function's address, for a table of calls.
func (l *Library) Address(f Function) uintptr { return l.address[f] }

// Failure returns the error of a call that returned a code.
func (l *Library) Failure(f Function, code uint64) *Error {
	e := &Error{Function: f, Code: code}
	if at := dl.CallAddress(l.address[GetErrorString], dl.Number(uintptr(code))); at != 0 {
		e.Text = dl.TextAt(at)
	}
	if l.address[GetLastError] != 0 {
		if at := dl.CallAddress(l.address[GetLastError], dl.Number(0)); at != 0 {
			e.Last = strings.TrimSpace(dl.TextAt(at))
		}
	}
	return e
}

func (l *Library) check(f Function, code uint32) error {
	if code == success {
		return nil
	}
	return l.Failure(f, uint64(code))
}

// UniqueID makes an ID. One rank makes it for all.
func (l *Library) UniqueID() (*ID, error) {
	id := new(ID)
	return id, l.check(GetUniqueID, dl.CallWith(l.address[GetUniqueID], dl.Pointer(id)))
}

// Init makes this rank's communicator on the device whose context is current, and returns when all ranks have done so.
func (l *Library) Init(ranks, rank int, id *ID) (Comm, error) {
	comm := new(Comm)
	if f := CommInitRankScalable; l.address[f] != 0 {
		err := l.check(f, dl.CallWith(l.address[f], dl.Pointer(comm), dl.Number(ranks), dl.Number(rank), dl.Number(1), dl.Pointer(id), dl.Number(0)))
		return *comm, err
	}
	args := []dl.Argument{dl.Pointer(comm), dl.Number(ranks)}
	switch runtime.GOARCH {
	case "amd64": // a structure of this size is passed on the stack, after the arguments in the six registers
		args = append(args, dl.Number(rank), dl.Number(0), dl.Number(0), dl.Number(0))
		for k := 0; k < len(id); k += 8 {
			args = append(args, dl.Number(*(*uintptr)(unsafe.Pointer(&id[k]))))
		}
	default: // its address is passed
		args = append(args, dl.Pointer(id), dl.Number(rank))
	}
	return *comm, l.check(CommInitRank, dl.CallWith(l.address[CommInitRank], args...))
}

// Split makes a communicator of the ranks of comm that give the same color, ordered by key. All ranks of comm call it. With a negative
// color, this rank gets none.
func (l *Library) Split(comm Comm, color, key int) (Comm, error) {
	sub := new(Comm)
	c := uintptr(color)
	if color < 0 {
		c = noColor
	}
	err := l.check(CommSplit, dl.CallWith(l.address[CommSplit], dl.Number(comm), dl.Number(c), dl.Number(key), dl.Pointer(sub), dl.Number(0)))
	return *sub, err
}

// AsyncError returns what has gone wrong since the last call, such as a lost connection to another rank.
func (l *Library) AsyncError(comm Comm) error {
	code := new(uint32)
	if err := l.check(CommGetAsyncError, dl.CallWith(l.address[CommGetAsyncError], dl.Number(comm), dl.Pointer(code))); err != nil {
		return err
	}
	if *code == inProgress {
		return nil
	}
	return l.check(CommGetAsyncError, *code)
}

// Abort ends the communication that is running and destroys the communicator. It waits for graphs with its communication to be destroyed.
func (l *Library) Abort(comm Comm) error {
	return l.check(CommAbort, dl.CallWith(l.address[CommAbort], dl.Number(comm)))
}

// Destroy destroys a communicator whose communication has finished.
func (l *Library) Destroy(comm Comm) error {
	return l.check(CommDestroy, dl.CallWith(l.address[CommDestroy], dl.Number(comm)))
}
