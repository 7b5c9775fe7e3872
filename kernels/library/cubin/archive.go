// An archive: the machine code of each kernel, with the hashes of what it was made from. It is a zip file, which other tools read too.

package cubin

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
)

// Archive is the machine code of kernels for one architecture.
type Archive struct {
	Architecture string // "sm_90"
	Maker        string // the compiler, its version and its options
	kernels      map[string]*zip.File
}

// Read reads the list of an archive's kernels.
func Read(data []byte) (*Archive, error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	a := &Archive{Maker: r.Comment, kernels: make(map[string]*zip.File, len(r.File))}
	for _, f := range r.File {
		a.kernels[f.Name] = f
	}
	return a, nil
}

// Kernels is how many kernels the archive has, each form counted.
func (a *Archive) Kernels() int {
	if a == nil {
		return 0
	}
	return len(a.kernels)
}

// Kernel returns the machine code of a kernel whose PTX is this, and whether it waits for the launches before it, which is then asked for or takes no time.
// An error says why there is none.
func (a *Archive) Kernel(entry string, ptx []byte, waiting bool) (code []byte, waits bool, err error) {
	if a == nil {
		return nil, false, fmt.Errorf("there is no machine code for %s", entry)
	}
	f := a.kernels[entry]
	if f == nil || waiting {
		f, waits = a.kernels[waitingFolder+entry], true
	}
	if f == nil {
		return nil, false, fmt.Errorf("%s has no machine code for %s", entry, a.Architecture)
	}
	if from, _, _ := strings.Cut(f.Comment, " "); from != sum(ptx) {
		return nil, false, fmt.Errorf("the machine code of %s was made from other PTX", entry)
	}
	code, err = unpack(f)
	return code, waits, err
}

// Compiled returns the machine code of a kernel if the compiler made it from the same text, and nil otherwise.
func (a *Archive) Compiled(k Made) []byte {
	if a == nil {
		return nil
	}
	f := a.kernels[k.name()]
	if f == nil || f.Comment != k.comment() {
		return nil
	}
	code, err := unpack(f)
	if err != nil {
		return nil
	}
	return code
}

func unpack(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Made is a kernel for an archive. The text that was compiled is its PTX, unless it was changed to wait for the launches before it.
type Made struct {
	Entry           string
	Waits           bool
	PTX, Text, Code []byte
}

// waitingFolder is the folder in an archive of the kernels that wait.
const waitingFolder = "waiting/"

func (k *Made) name() string {
	if k.Waits {
		return waitingFolder + k.Entry
	}
	return k.Entry
}

// comment is what an archive says of a kernel: the hashes of its PTX and of the text that was compiled.
func (k *Made) comment() string { return sum(k.PTX) + " " + sum(k.Text) }

// Write makes an archive of kernels, in their order.
func Write(maker string, kernels []Made) ([]byte, error) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestCompression) })
	if err := w.SetComment(maker); err != nil {
		return nil, err
	}
	for _, k := range kernels {
		f, err := w.CreateHeader(&zip.FileHeader{Name: k.name(), Method: zip.Deflate, Comment: k.comment()})
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(k.Code); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return archive.Bytes(), err
}

func sum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
