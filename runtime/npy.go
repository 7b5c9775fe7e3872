// Array files: .npy of NumPy and raw .bin. Whole arrays only; a file is written beside its name and renamed.

package runtime

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// npyDescr maps element types to NumPy's names. bf16 is not NumPy's: it is stored as two raw bytes, as ml_dtypes does.
var npyDescr = map[dag.DType]string{
	dag.F16: "<f2", dag.BF16: "|V2", dag.F32: "<f4", dag.F64: "<f8",
	dag.I8: "|i1", dag.I16: "<i2", dag.I32: "<i4", dag.I64: "<i8",
	dag.U8: "|u1", dag.U16: "<u2", dag.U32: "<u4", dag.U64: "<u8", dag.Bool: "|b1",
}

// readArray reads a file into memory. The element type and the number of elements must be the buffer's; a .npy's shape too.
func readArray(path string, t dag.DType, shape []int64, memory []byte) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<20)
	if strings.EqualFold(filepath.Ext(path), ".npy") {
		descr, got, err := readNpyHeader(r)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if want := npyDescr[t]; descr != want && !(len(descr) == 3 && descr[1:] == want[1:] && t.Size() == 1) {
			return fmt.Errorf("%s holds elements of type %q, the buffer has %s (%q)", path, descr, t, want)
		}
		if !sameShape(got, shape) {
			return fmt.Errorf("%s has shape %s, the buffer has %s", path, shapeText(got), shapeText(shape))
		}
	}
	if n, err := io.ReadFull(r, memory); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s is too short: %d bytes of data, the buffer has %d", path, n, len(memory))
		}
		return err
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return fmt.Errorf("%s is too long: more than the %d bytes of the buffer", path, len(memory))
	}
	return nil
}

// sameShape treats a single element as equal in every number of dimensions.
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

// writeArray writes memory as path's extension says, .npy or raw.
func writeArray(path string, t dag.DType, shape []int64, memory []byte) error {
	return WriteFile(path, func(w io.Writer) error {
		if strings.EqualFold(filepath.Ext(path), ".npy") {
			if _, err := w.Write(npyHeader(t, shape)); err != nil {
				return err
			}
		}
		_, err := w.Write(memory)
		return err
	})
}

func npyHeader(t dag.DType, shape []int64) []byte {
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", npyDescr[t], shapeText(shape))
	pad := 64 - (10+len(text)+1)%64
	if pad == 64 {
		pad = 0
	}
	text += strings.Repeat(" ", pad) + "\n"
	var b bytes.Buffer
	b.WriteString(npyMagic + "\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(text))))
	b.WriteString(text)
	return b.Bytes()
}

// WriteFile writes a file beside its name and renames it, so that a failure leaves what was there before.
func WriteFile(path string, write func(io.Writer) error) error {
	err := writeBeside(path, write)
	if err == nil {
		return nil
	}
	// The system's error has the name of the file beside, which tells nobody anything.
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("cannot write %s: %w", path, err)
}

func writeBeside(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	w := bufio.NewWriterSize(file, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	keep = true
	return nil
}
