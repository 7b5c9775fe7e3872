// Telling recordings from other files.

package recording

import (
	"io"
	"os"
)

// Recognize tells whether a name is that of a recording: a file that begins like one, or one whose parts were never packed.
func Recognize(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		folder, inside := os.Stat(PartsFolder(name))
		return inside == nil && folder.IsDir()
	}
	if !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, len(recordingMagic))
	_, err = io.ReadFull(file, begin)
	return err == nil && (string(begin) == recordingMagic || string(begin) == formatMagic)
}
