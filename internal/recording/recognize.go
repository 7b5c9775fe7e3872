// Telling recordings from other files.

package recording

import (
	"io"
	"os"
	"slices"
)

// Recognize tells whether a name is that of a recording: a file that begins like one, or one whose parts were never packed.
func Recognize(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		folder, inside := os.Stat(PartsFolder(name))
		return inside == nil && folder.IsDir()
	}
	return info.Mode().IsRegular() && begins(name, recordingMagic, formatMagic)
}

// RecognizePlanned tells whether a name is that of a file of a planned graph.
func RecognizePlanned(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && begins(name, plannedMagic)
}

func begins(name string, magics ...string) bool {
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, len(recordingMagic))
	_, err = io.ReadFull(file, begin)
	return err == nil && slices.Contains(magics, string(begin))
}
