// An open library and its sessions: a session is a handle in one context, with which calls are made.

package libraries

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
)

// vendor is one library.
type vendor struct {
	title     string   // "cuBLAS"
	files     []string // newest first
	needs     []string // files of other libraries that it links to, opened first where it is opened by its path
	packages  []string // folders of pip's packages that have it or what it needs
	wheel     string   // the package of pip
	functions []string
	create    func(*Library) (*Session, error)
	version   func(*Library) (string, error)
}

// Library is an open library of a vendor.
type Library struct {
	vendor  *vendor
	address map[string]uintptr
	file    string
}

// Version is the library's version, such as 13.1.0.
func (l *Library) Version() (string, error) { return l.vendor.version(l) }

// call calls one of the library's functions, which returns a status.
func (l *Library) call(function string, statuses map[uint32]string, args ...dl.Argument) error {
	code := dl.CallWith(l.address[function], args...)
	if code == 0 {
		return nil
	}
	name := statuses[code]
	if name == "" {
		name = "status"
	}
	return fmt.Errorf("%s: %s (%d)", strings.TrimSuffix(function, "_v2"), name, code)
}

// Session is a handle of a library. All of its methods need the context that it was made in, current on the calling thread, and may not run
// at the same time.
type Session struct {
	lib    *Library
	handle uintptr
	calls  map[string]func(*Session, *Arguments) error // by name, without the library and the type
	close  func(*Session) error

	prepare func(*Session, *Arguments) error // nil: there is nothing to prepare
	plans   map[fourierShape]fourierPlan     // of cuFFT
}

// NewSession makes a handle in the current context.
func (l *Library) NewSession() (*Session, error) { return l.vendor.create(l) }

// Close gives the handle back.
func (s *Session) Close() error {
	if s == nil || s.close == nil {
		return nil
	}
	err := s.close(s)
	s.close = nil
	return err
}

// Arguments are those of one call. Names are those of its parameters.
type Arguments struct {
	Entry  string // "cublas.gemm_f32"
	Stream uintptr
	Names  []string
	Values []cudart.Value

	missing string
}

// Prepare does what a call needs that cannot be captured. The stream is not used.
func (s *Session) Prepare(a *Arguments) error {
	if s.prepare == nil {
		return nil
	}
	return s.checked(a, s.prepare)
}

// Call makes a call on a stream. Prepare comes first.
func (s *Session) Call(a *Arguments) error {
	name := a.Entry[:max(0, strings.LastIndexByte(a.Entry, '_'))]
	_, name, _ = strings.Cut(name, ".")
	call := s.calls[name]
	if call == nil {
		return fmt.Errorf("%s: unknown call %q", s.lib.vendor.title, a.Entry)
	}
	return s.checked(a, call)
}

// checked makes a part of a call, if it has the right arguments.
func (s *Session) checked(a *Arguments, part func(*Session, *Arguments) error) error {
	if len(a.Names) != len(a.Values) {
		return fmt.Errorf("call %q takes %d arguments, got %d", a.Entry, len(a.Names), len(a.Values))
	}
	err := part(s, a)
	if a.missing != "" {
		return errors.Join(fmt.Errorf("call %q has no argument %q", a.Entry, a.missing), err)
	}
	return err
}

// double reports whether the call is one for f64.
func (a *Arguments) double() bool { return strings.HasSuffix(a.Entry, "_f64") }

// value finds an argument. A name that the call lacks is noted, and Call fails.
func (a *Arguments) value(name string) *cudart.Value {
	for k := range a.Names {
		if a.Names[k] == name {
			return &a.Values[k]
		}
	}
	a.missing = name
	return &cudart.Value{}
}

// integer is the value of an i64 or a bool.
func (a *Arguments) integer(name string) int64 {
	v := a.value(name)
	if v.Size == 1 {
		return int64(v.Bits & 0xff)
	}
	return int64(v.Bits)
}

func (a *Arguments) number(name string) dl.Argument { return dl.Number(int(a.integer(name))) }

// pointer is the address of a buffer.
func (a *Arguments) pointer(name string) dl.Argument { return dl.Number(uintptr(a.value(name).Ptr)) }

// scalar is the address of a number of the element type, which the library reads during the call.
func (a *Arguments) scalar(name string) dl.Argument {
	bits := a.value(name).Bits
	return dl.Pointer(&bits)
}

// length is the distance between a matrix's rows, which libraries want to be positive.
func (a *Arguments) length(name string) dl.Argument {
	return dl.Number(int(max(1, a.integer(name+".ld"))))
}

// fourierShape is what a plan is for.
type fourierShape struct {
	kind                 int
	dims, rows, columns  int64
	lengthOfX, lengthOfY int64 // of rows, in elements
}

// fourierPlan is a plan and the workspace that it needs.
type fourierPlan struct {
	handle int32
	bytes  int64
}
