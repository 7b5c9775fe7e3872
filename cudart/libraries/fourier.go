// cuFFT. A plan belongs to a shape and stays with the session, because captured kernels use its tables; its workspace and stream are set for each
// call.

package libraries

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/internal/dl"
)

var fourierFunctions = []string{"cufftCreate", "cufftDestroy", "cufftGetProperty", "cufftSetAutoAllocation", "cufftSetWorkArea", "cufftSetStream",
	"cufftMakePlanMany64", "cufftExecC2C", "cufftExecR2C", "cufftExecC2R", "cufftExecZ2Z", "cufftExecD2Z", "cufftExecZ2D"}

var fourierStatuses = map[uint32]string{1: "CUFFT_INVALID_PLAN", 2: "CUFFT_ALLOC_FAILED", 3: "CUFFT_INVALID_TYPE", 4: "CUFFT_INVALID_VALUE",
	5: "CUFFT_INTERNAL_ERROR", 6: "CUFFT_EXEC_FAILED", 7: "CUFFT_SETUP_FAILED", 8: "CUFFT_INVALID_SIZE", 9: "CUFFT_UNALIGNED_DATA", 11: "CUFFT_INVALID_DEVICE",
	14: "CUFFT_NOT_IMPLEMENTED",
	16: "CUFFT_NOT_SUPPORTED"}

// fourierKind is one of cuFFT's types of transforms, in both precisions.
type fourierKind struct {
	types     [2]int // cufftType
	functions [2]string
	wide      string // the argument whose rows are as long as the transform
}

var fourierKinds = map[string]fourierKind{
	"c2c": {[2]int{0x29, 0x69}, [2]string{"cufftExecC2C", "cufftExecZ2Z"}, "x"},
	"r2c": {[2]int{0x2a, 0x6a}, [2]string{"cufftExecR2C", "cufftExecD2Z"}, "x"},
	"c2r": {[2]int{0x2c, 0x6c}, [2]string{"cufftExecC2R", "cufftExecZ2D"}, "y"},
}

func newFourier(l *Library) (*Session, error) {
	s := &Session{lib: l, calls: map[string]func(*Session, *Arguments) error{}, plans: map[fourierShape]fourierPlan{}, prepare: fourierPrepare}
	for name := range fourierKinds {
		s.calls[name] = fourierCall
	}
	s.close = func(s *Session) error {
		var errs []error
		for _, plan := range s.plans {
			errs = append(errs, l.call("cufftDestroy", fourierStatuses, dl.Number(int(plan.handle))))
		}
		return errors.Join(errs...)
	}
	return s, nil
}

func fourierVersion(l *Library) (string, error) {
	return l.property("cufftGetProperty", fourierStatuses)
}

// fourier is the kind of a call, and 1 if it computes in f64.
func (a *Arguments) fourier() (kind fourierKind, double int) {
	name, elements, _ := strings.Cut(a.Entry, "_")
	_, name, _ = strings.Cut(name, ".")
	if elements == "c128" {
		double = 1
	}
	return fourierKinds[name], double
}

// fourierPrepare makes the plan of a call, if there is none. That may copy tables to the device, so it is done outside of captures.
func fourierPrepare(s *Session, a *Arguments) error {
	_, err := s.fourierPlan(a)
	return err
}

func (s *Session) fourierPlan(a *Arguments) (fourierPlan, error) {
	kind, double := a.fourier()
	shape := fourierShape{kind.types[double], a.integer("dims"), a.integer("x.rows"), a.integer(kind.wide + ".columns"), a.integer("x.ld"), a.integer("y.ld")}
	if plan, made := s.plans[shape]; made {
		return plan, nil
	}
	call := func(function string, args ...dl.Argument) error {
		return s.lib.call(function, fourierStatuses, args...)
	}
	handle := new(int32)
	if err := call("cufftCreate", dl.Pointer(handle)); err != nil {
		return fourierPlan{}, err
	}
	plan := fourierPlan{handle: *handle}
	rank, batch, distances := 1, shape.rows, [2]int64{shape.lengthOfX, shape.lengthOfY}
	lengths, ofX, ofY := &[2]int64{shape.columns}, &[2]int64{shape.lengthOfX}, &[2]int64{shape.lengthOfY}
	if shape.dims == 2 {
		rank, batch, distances = 2, 1, [2]int64{shape.rows * shape.lengthOfX, shape.rows * shape.lengthOfY}
		*lengths, *ofX, *ofY = [2]int64{shape.rows, shape.columns}, [2]int64{shape.rows, shape.lengthOfX}, [2]int64{shape.rows, shape.lengthOfY}
	}
	bytes := new(uint64)
	err := call("cufftSetAutoAllocation", dl.Number(int(plan.handle)), dl.Number(0))
	if err == nil {
		err = call("cufftMakePlanMany64", dl.Number(int(plan.handle)), dl.Number(rank), dl.Pointer(lengths), dl.Pointer(ofX), dl.Number(1),
			dl.Number(int(distances[0])), dl.Pointer(ofY), dl.Number(1), dl.Number(int(distances[1])), dl.Number(shape.kind), dl.Number(int(batch)), dl.Pointer(bytes))
	}
	if err != nil {
		return fourierPlan{}, errors.Join(err, call("cufftDestroy", dl.Number(int(plan.handle))))
	}
	plan.bytes = int64(*bytes)
	s.plans[shape] = plan
	return plan, nil
}

func fourierCall(s *Session, a *Arguments) error {
	plan, err := s.fourierPlan(a)
	if err != nil {
		return err
	}
	if have := a.value("workspace").Bytes; plan.bytes > have {
		return fmt.Errorf("this version of cuFFT needs %d bytes of workspace for a matrix of %d x %d, and %d are planned", plan.bytes, a.integer("x.rows"),
			a.integer("x.columns"), have)
	}
	handle := dl.Number(int(plan.handle))
	if err := s.lib.call("cufftSetStream", fourierStatuses, handle, dl.Number(a.Stream)); err != nil {
		return err
	}
	if err := s.lib.call("cufftSetWorkArea", fourierStatuses, handle, a.pointer("workspace")); err != nil {
		return err
	}
	kind, double := a.fourier()
	args := []dl.Argument{handle, a.pointer("x"), a.pointer("y")}
	if kind.types[0] == fourierKinds["c2c"].types[0] {
		direction := -1
		if a.integer("inverse") != 0 {
			direction = 1
		}
		args = append(args, dl.Number(direction))
	}
	return s.lib.call(kind.functions[double], fourierStatuses, args...)
}
