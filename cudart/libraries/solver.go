// cuSOLVER. As for cuBLAS, what is lower in our matrix is upper in its.

package libraries

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/dl"
)

var solverFunctions = []string{"cusolverDnCreate", "cusolverDnDestroy", "cusolverGetProperty", "cusolverDnSetStream",
	"cusolverDnSpotrf_bufferSize", "cusolverDnDpotrf_bufferSize", "cusolverDnSpotrf", "cusolverDnDpotrf"}

var solverStatuses = map[uint32]string{1: "CUSOLVER_STATUS_NOT_INITIALIZED", 2: "CUSOLVER_STATUS_ALLOC_FAILED", 3: "CUSOLVER_STATUS_INVALID_VALUE",
	4: "CUSOLVER_STATUS_ARCH_MISMATCH", 5: "CUSOLVER_STATUS_MAPPING_ERROR", 6: "CUSOLVER_STATUS_EXECUTION_FAILED", 7: "CUSOLVER_STATUS_INTERNAL_ERROR",
	9: "CUSOLVER_STATUS_NOT_SUPPORTED"}

func newSolver(l *Library) (*Session, error) {
	handle := new(uintptr)
	if err := l.call("cusolverDnCreate", solverStatuses, dl.Pointer(handle)); err != nil {
		return nil, err
	}
	s := &Session{lib: l, handle: *handle, calls: map[string]func(*Session, *Arguments) error{"potrf": solverPotrf}}
	s.close = func(s *Session) error { return s.solver("cusolverDnDestroy") }
	return s, nil
}

func solverVersion(l *Library) (string, error) {
	return l.property("cusolverGetProperty", solverStatuses)
}

func (s *Session) solver(function string, args ...dl.Argument) error {
	return s.lib.call(function, solverStatuses, append([]dl.Argument{dl.Number(s.handle)}, args...)...)
}

func solverPotrf(s *Session, a *Arguments) error {
	if err := s.solver("cusolverDnSetStream", dl.Number(a.Stream)); err != nil {
		return err
	}
	need := new(int32)
	if err := s.solver(a.typed("cusolverDnSpotrf_bufferSize", "cusolverDnDpotrf_bufferSize"), a.flipped("uplo"), a.number("a.rows"), a.pointer("a"), a.length("a"),
		dl.Pointer(need)); err != nil {
		return err
	}
	element := int64(4)
	if a.double() {
		element = 8
	}
	if have := a.value("workspace").Bytes; int64(*need)*element > have {
		return fmt.Errorf("this version of cuSOLVER needs %d bytes of workspace for a matrix of %d rows, and %d are planned", int64(*need)*element,
			a.integer("a.rows"), have)
	}
	return s.solver(a.typed("cusolverDnSpotrf", "cusolverDnDpotrf"), a.flipped("uplo"), a.number("a.rows"), a.pointer("a"), a.length("a"),
		a.pointer("workspace"), dl.Number(int(*need)), a.pointer("status"))
}
