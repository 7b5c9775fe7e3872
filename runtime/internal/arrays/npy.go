// Array files: .npy of NumPy and raw .bin. Whole arrays only.

package arrays

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
)

// npyDescr maps element types to NumPy's names. bf16 is not NumPy's: it is stored as two raw bytes, as ml_dtypes does.
var npyDescr = map[dag.DType]string{
	dag.F16: "<f2", dag.BF16: "|V2", dag.F32: "<f4", dag.F64: "<f8",
	dag.I8: "|i1", dag.I16: "<i2", dag.I32: "<i4", dag.I64: "<i8",
	dag.U8: "|u1", dag.U16: "<u2", dag.U32: "<u4", dag.U64: "<u8", dag.Bool: "|b1",
	dag.C64: "<c8", dag.C128: "<c16",
}

// Files is where a pipeline's array files are: relative names start from Dir, and only those below Folder may be used, if it is not nil.
type Files struct {
	Dir    string
	Folder *files.Folder
}

// outside reports whether a file is outside of the pipeline's folder. Messages do not quote it.
func (a Files) outside(path string) bool { return a.Dir != "" && files.Foreign(a.Dir, path) }

// InDir resolves a name of the pipeline file against the file's directory.
func InDir(dir, name string) string {
	if filepath.IsAbs(name) || dir == "" {
		return name
	}
	return filepath.Join(dir, name)
}

// read reads a file into memory. Its element type and number of elements must match the buffer, and for .npy also its shape.
func (a Files) read(ctx context.Context, name string, t dag.DType, shape []int64, memory []byte) error {
	path := InDir(a.Dir, name)
	file, err := a.Folder.Open(ctx, path)
	if err != nil {
		return files.CannotRead(path, err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<20)
	if err := checkHeader(r, path, t, shape); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if a.outside(path) {
			return fmt.Errorf("%s is no .npy file of elements of type %s and shape %s; more is not shown, because it is outside of the pipeline's folder",
				path, t, shapeText(shape))
		}
		return err
	}
	if n, err := io.ReadFull(r, memory); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return wrongLength(path, int64(n), int64(len(memory)))
		}
		return err
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return wrongLength(path, math.MaxInt64, int64(len(memory)))
	}
	return nil
}

// numeric are the types of arrays that NumPy can convert to others.
var numeric = regexp.MustCompile(`^[<>|=][biufc][0-9]+$`)

// checkHeader reads the header of a .npy file; a raw file has none.
func checkHeader(r io.Reader, path string, t dag.DType, shape []int64) error {
	if !strings.EqualFold(filepath.Ext(path), ".npy") {
		return nil
	}
	descr, got, err := readNpyHeader(r)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	want, dims, err := npyOf(t, shape)
	if err != nil {
		return err
	}
	if descr != want && !(len(descr) == 3 && len(want) == 3 && descr[1:] == want[1:] && t.Component().Size() == 1) {
		hint := ""
		if numeric.MatchString(descr) {
			hint = fmt.Sprintf("; in NumPy, a.astype(%q) converts an array a", want)
		}
		return fmt.Errorf("%s has elements of type %q, but the buffer has %s (%q)%s", path, descr, t, want, hint)
	}
	if !sameShape(got, dims) {
		return fmt.Errorf("%s has shape %s, but the buffer has %s", path, shapeText(got), shapeText(dims))
	}
	return nil
}

func wrongLength(path string, has, wants int64) error {
	if has < wants {
		return fmt.Errorf("%s is too short: it has %d bytes of data, but the buffer has %d", path, has, wants)
	}
	return fmt.Errorf("%s is too long: it has more data than the %d bytes of the buffer", path, wants)
}

// sameShape compares shapes. A single element has the same shape in any number of dimensions.
func sameShape(a, b []int64) bool {
	if len(a) != len(b) {
		return count(a) == 1 && count(b) == 1
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func count(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

func shapeText(shape []int64) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = strconv.FormatInt(d, 10)
	}
	if len(parts) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// Write writes memory to a file, as .npy or raw according to its extension.
func (a Files) Write(ctx context.Context, path string, t dag.DType, shape []int64, memory []byte) error {
	return a.Folder.Save(ctx, path, func(w io.Writer) error {
		if strings.EqualFold(filepath.Ext(path), ".npy") {
			header, err := npyHeader(t, shape)
			if err != nil {
				return err
			}
			if _, err := w.Write(header); err != nil {
				return err
			}
		}
		_, err := w.Write(memory)
		return err
	})
}

func npyHeader(t dag.DType, shape []int64) ([]byte, error) {
	descr, dims, err := npyOf(t, shape)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shapeText(dims))
	pad := 64 - (10+len(text)+1)%64
	if pad == 64 {
		pad = 0
	}
	text += strings.Repeat(" ", pad) + "\n"
	var b bytes.Buffer
	b.WriteString(npyMagic + "\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(text))))
	b.WriteString(text)
	return b.Bytes(), nil
}

// npyOf is how NumPy sees a buffer: it has complex numbers, and an array of vectors is one of numbers with a last dimension for the components.
func npyOf(t dag.DType, shape []int64) (descr string, dims []int64, err error) {
	if n := t.Components(); n > 1 && !t.Complex() {
		t, shape = t.Component(), append(slices.Clone(shape), int64(n))
	}
	descr, ok := npyDescr[t]
	if !ok {
		return "", nil, fmt.Errorf("elements of type %s cannot be in a .npy file", t)
	}
	return descr, shape, nil
}
