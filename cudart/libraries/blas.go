// cuBLAS. Its matrices are column by column, and ours row by row: what lies in memory as our matrix is its transposed one. So products swap
// their factors, and triangles and sides change places; nothing is copied.

package libraries

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/dl"
)

var blasFunctions = []string{"cublasCreate_v2", "cublasDestroy_v2", "cublasGetProperty", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSetMathMode",
	"cublasSgemm_v2", "cublasDgemm_v2", "cublasSgemmStridedBatched", "cublasDgemmStridedBatched", "cublasSsyrk_v2", "cublasDsyrk_v2",
	"cublasStrsm_v2", "cublasDtrsm_v2"}

var blasStatuses = map[uint32]string{1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED", 7: "CUBLAS_STATUS_INVALID_VALUE",
	8: "CUBLAS_STATUS_ARCH_MISMATCH", 11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED", 14: "CUBLAS_STATUS_INTERNAL_ERROR",
	15: "CUBLAS_STATUS_NOT_SUPPORTED", 16: "CUBLAS_STATUS_LICENSE_ERROR"}

// The math modes of cublasSetMathMode.
const (
	blasDefaultMath = 0
	blasTF32Math    = 3
)

func newBlas(l *Library) (*Session, error) {
	handle := new(uintptr)
	if err := l.call("cublasCreate_v2", blasStatuses, dl.Pointer(handle)); err != nil {
		return nil, err
	}
	s := &Session{lib: l, handle: *handle, calls: map[string]func(*Session, *Arguments) error{"gemm": blasGemm, "gemm_batched": blasGemmBatched,
		"syrk": blasSyrk, "trsm": blasTrsm}}
	s.close = func(s *Session) error { return s.blas("cublasDestroy_v2") }
	return s, nil
}

// blasVersion asks for the major and minor version and the patch level.
func blasVersion(l *Library) (string, error) { return l.property("cublasGetProperty", blasStatuses) }

// property asks a library for its version in three numbers.
func (l *Library) property(function string, statuses map[uint32]string) (string, error) {
	var parts [3]int32
	for k := range parts {
		value := new(int32)
		if err := l.call(function, statuses, dl.Number(k), dl.Pointer(value)); err != nil {
			return "", err
		}
		parts[k] = *value
	}
	return fmt.Sprintf("%d.%d.%d", parts[0], parts[1], parts[2]), nil
}

func (s *Session) blas(function string, args ...dl.Argument) error {
	return s.lib.call(function, blasStatuses, append([]dl.Argument{dl.Number(s.handle)}, args...)...)
}

// begin sets the stream, and after it the workspace, which a new stream resets.
func (s *Session) begin(a *Arguments, math int) error {
	if err := s.blas("cublasSetStream_v2", dl.Number(a.Stream)); err != nil {
		return err
	}
	if err := s.blas("cublasSetWorkspace_v2", a.pointer("workspace"), dl.Number(int(a.value("workspace").Bytes))); err != nil {
		return err
	}
	return s.blas("cublasSetMathMode", dl.Number(math))
}

// typed is the name of a function for the call's element type.
func (a *Arguments) typed(single, double string) string {
	if a.double() {
		return double
	}
	return single
}

// flipped is 1 for the first of two choices and 0 for the second: what is lower in our matrix is upper in cuBLAS's.
func (a *Arguments) flipped(name string) dl.Argument { return dl.Number(1 - int(a.integer(name))) }

// beginProduct is begin in the math mode that the call asks for.
func (s *Session) beginProduct(a *Arguments) error {
	if a.integer("math") != 0 {
		return s.begin(a, blasTF32Math)
	}
	return s.begin(a, blasDefaultMath)
}

func blasGemm(s *Session, a *Arguments) error {
	if err := s.beginProduct(a); err != nil {
		return err
	}
	k := a.number("a.columns")
	if a.integer("ta") != 0 {
		k = a.number("a.rows")
	}
	return s.blas(a.typed("cublasSgemm_v2", "cublasDgemm_v2"), a.number("tb"), a.number("ta"), a.number("c.columns"), a.number("c.rows"), k, a.scalar("alpha"),
		a.pointer("b"), a.length("b"), a.pointer("a"), a.length("a"), a.scalar("beta"), a.pointer("c"), a.length("c"))
}

func blasGemmBatched(s *Session, a *Arguments) error {
	if err := s.beginProduct(a); err != nil {
		return err
	}
	batches := a.integer("batches")
	rows := func(name string) int { return int(a.integer(name+".rows") / batches) }
	stride := func(name string) dl.Argument { return dl.Number(rows(name) * int(a.integer(name+".ld"))) }
	k := a.number("a.columns")
	if a.integer("ta") != 0 {
		k = dl.Number(rows("a"))
	}
	return s.blas(a.typed("cublasSgemmStridedBatched", "cublasDgemmStridedBatched"), a.number("tb"), a.number("ta"), a.number("c.columns"), dl.Number(rows("c")),
		k, a.scalar("alpha"),
		a.pointer("b"), a.length("b"), stride("b"), a.pointer("a"), a.length("a"), stride("a"), a.scalar("beta"), a.pointer("c"), a.length("c"), stride("c"),
		dl.Number(int(batches)))
}

func blasSyrk(s *Session, a *Arguments) error {
	if err := s.begin(a, blasDefaultMath); err != nil {
		return err
	}
	k := a.number("a.columns")
	if a.integer("ta") != 0 {
		k = a.number("a.rows")
	}
	return s.blas(a.typed("cublasSsyrk_v2", "cublasDsyrk_v2"), a.flipped("uplo"), a.flipped("ta"), a.number("c.rows"), k, a.scalar("alpha"),
		a.pointer("a"), a.length("a"), a.scalar("beta"), a.pointer("c"), a.length("c"))
}

func blasTrsm(s *Session, a *Arguments) error {
	if err := s.begin(a, blasDefaultMath); err != nil {
		return err
	}
	return s.blas(a.typed("cublasStrsm_v2", "cublasDtrsm_v2"), a.flipped("side"), a.flipped("uplo"), a.number("ta"), a.number("unit"),
		a.number("b.columns"), a.number("b.rows"), a.scalar("alpha"), a.pointer("a"), a.length("a"), a.pointer("b"), a.length("b"))
}
