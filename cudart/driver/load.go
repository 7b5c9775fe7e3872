// Loading code into the driver, and finding kernels in it.

package driver

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/launch"
)

const jitLogBytes = 16 << 10

// loadImage loads code of some name on a device.
func (p *Platform) loadImage(d *device, name string, kind launch.Kind, image []byte) (uintptr, error) {
	// The driver reads PTX as a C string, and binaries according to the sizes in their headers.
	terminated := append(append(make([]byte, 0, len(image)+1), image...), 0)
	infoLog, errorLog := make([]byte, jitLogBytes), make([]byte, jitLogBytes)
	// The addresses of the logs are passed as numbers. held keeps the logs on the heap and alive.
	options := [4]uint32{jitInfoLog, jitInfoLogBytes, jitErrorLog, jitErrorLogBytes}
	values := [4]uintptr{
		uintptr(unsafe.Pointer(&infoLog[0])), uintptr(len(infoLog)),
		uintptr(unsafe.Pointer(&errorLog[0])), uintptr(len(errorLog)),
	}
	s, err := p.sequence(d)
	if err != nil {
		return 0, err
	}
	defer s.release()
	s.held = append(s.held, unsafe.Pointer(&infoLog[0]), unsafe.Pointer(&errorLog[0]))
	s.callPointers(cuModuleLoadDataEx, s.out(0), unsafe.Pointer(&terminated[0]), 4, unsafe.Pointer(&options[0]), unsafe.Pointer(&values[0]))
	if err := s.run(); err != nil {
		return 0, loadFailure(err, d, name, kind, image, cString(errorLog))
	}
	return uintptr(s.outs[0]), nil
}

// loadFailure adds to the error of a failed load what to do about it.
func loadFailure(err error, d *device, name string, kind launch.Kind, image []byte, log string) error {
	failure, ok := err.(*cudart.Error)
	if !ok {
		return err
	}
	have := fmt.Sprintf("sm_%d%d", d.info.Capability[0], d.info.Capability[1])
	var lines []string
	if log = strings.TrimSpace(log); log != "" {
		lines = append(lines, log)
	}
	switch failure.Code {
	case codeNoBinary:
		switch target := ptxTarget(image); {
		case kind == launch.PTX && target != "":
			lines = append(lines, fmt.Sprintf("the PTX is for %s and the device is %s; compile it for %s or older", target, have, have))
		case kind == launch.Cubin:
			lines = append(lines, fmt.Sprintf("a cubin runs only on the architecture it was built for, and the device is %s; build it with -arch=%s, or ship PTX", have,
				have))
		default:
			lines = append(lines, fmt.Sprintf("the file holds no code for %s; add it, or PTX for %s or older", have, have))
		}
	case codeUnsupportedPTX:
		lines = append(lines, fmt.Sprintf("the PTX comes from a newer toolkit than the driver (CUDA %s) supports; update the driver or compile with an older toolkit",
			d.info.Driver))
	case codeInvalidPTX:
		if target := ptxTarget(image); targetNumber(target) > targetNumber(have) {
			lines = append(lines, fmt.Sprintf("the PTX is for %s and the device is %s; compile it for %s or older", target, have, have))
		}
	case codeInvalidImage:
		lines = append(lines, "the file is incomplete, or is not PTX, a cubin or a fatbin that this driver can read")
	}
	failure.Detail = strings.Join(lines, "\n")
	return fmt.Errorf("module %s: %w", name, failure)
}

// findKernel returns the handle of a kernel in loaded code.
func (p *Platform) findKernel(d *device, module uintptr, entry string) (uintptr, error) {
	name := append([]byte(entry), 0)
	s, err := p.sequence(d)
	if err != nil {
		return 0, err
	}
	defer s.release()
	s.callPointers(cuModuleGetFunction, s.out(0), module, unsafe.Pointer(&name[0]))
	if err := s.run(); err != nil {
		return 0, err
	}
	return uintptr(s.outs[0]), nil
}

func cString(buffer []byte) string {
	text, _, _ := strings.Cut(string(buffer), "\x00")
	return text
}
