// Telling recordings from other files.

package recording

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// CutGraph splits FILE#N, the name of the Nth captured graph of a recording. For other names, and where a file has that name, N is 0.
func CutGraph(name string) (file string, n int) {
	at := strings.LastIndexByte(name, '#')
	if at < 0 {
		return name, 0
	}
	n, err := strconv.Atoi(name[at+1:])
	if _, is := os.Lstat(name); err != nil || n < 1 || is == nil {
		return name, 0
	}
	return name[:at], n
}

// Recognize tells whether a name is that of a recording, or of a captured graph of one: a file that begins like one, or one whose parts were never packed.
func Recognize(name string) bool {
	name, _ = CutGraph(name)
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
