package recording

import "fmt"

// LeastWords is how many words a record of a kind has at least, behind the common words of calls.
func LeastWords(k Kind) int { return shapes[k].words }

// KnownKinds is how many kinds this version knows.
func KnownKinds() int {
	n := 0
	for k := range shapes {
		if Kind(k).known() {
			n++
		}
	}
	return n
}

// OpenBytes opens a recording that is in memory.
func OpenBytes(name string, b []byte) (*Archive, error) { return openBytes(name, &mapping{bytes: b}) }

// Forget removes from a process where its blobs can be loaded, and where its records lie in the file.
func Forget(p *Process) {
	p.held, p.fail = nil, nil
	for _, list := range p.Functions {
		for k := range list {
			list[k].Offset = 0
		}
	}
	for k := range p.Graphs {
		p.Graphs[k].Offset = 0
	}
	for k := range p.Modules {
		p.Modules[k].unpack, p.Modules[k].Offset = nil, 0
	}
	for k := range p.Contents {
		p.Contents[k].unpack, p.Contents[k].Offset = nil, 0
	}
}

// SectionHeader is the size of a section's header.
const SectionHeader = sectionHeader

// SaidOfSections are what docs/recording.md must say of a recording.
func SaidOfSections() []string {
	return []string{
		fmt.Sprintf("Recordings have version %d and parts version %d, and dagrun reads parts of version %d too.", recordingVersion, formatVersion, formatVersion-1),
		fmt.Sprintf("%d bytes of header: the magic `%s`", recordingHeader, recordingMagic),
		fmt.Sprintf("The magic is `%s`", plannedMagic),
		fmt.Sprintf("header of %d bytes", sectionHeader), fmt.Sprintf("| 0 | %d | `%s` |", len(sectionMagic), sectionMagic),
		fmt.Sprintf("method: %d as it is, %d deflate", methodStored, methodDeflate), fmt.Sprintf("at most %d times as many", packing),
		fmt.Sprintf("| %d | program |", sectionMeta), fmt.Sprintf("| %d | process |", sectionProcess), fmt.Sprintf("| %d | records |", sectionRecords),
		fmt.Sprintf("| %d | blob |", sectionBlob), fmt.Sprintf("| %d | index |", sectionIndex),
		fmt.Sprintf("The last %d bytes are the offset of the index, and the magic `%s`", endBytes, endMagic),
		fmt.Sprintf("blocks of %d bytes", blockBytes), fmt.Sprintf("begins with the magic `%s`, a block with `%s`", formatMagic, blockMagic),
	}
}
