// Package cubin holds machine code of the library's kernels, which GPUs of some architectures run as it is. It is made from the library's PTX,
// which all other GPUs load: their driver compiles it, 2 to 9 ms for a kilobyte.
//
// There is an archive for each architecture, and only the kernels that a program launches are unpacked from it. With each of them the archive has
// the hash of the PTX that it was made from. Machine code that was made from other PTX is never used, and a test fails while there is any.
package cubin

import (
	"embed"
	"strconv"
	"strings"
	"sync"
)

//go:embed *.zip
var archives embed.FS

// Architectures lists those that there is machine code for.
var Architectures = sync.OnceValue(func() []string {
	files, err := archives.ReadDir(".")
	if err != nil {
		panic(err) // what is embedded can be read
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".zip"))
	}
	return names
})

// number is 90 for sm_90, and 0 for what is no architecture.
func number(architecture string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(architecture, "sm_"))
	if err != nil {
		return 0
	}
	return n
}

// For returns the machine code for GPUs of a compute capability, nil if there is none.
func For(capability [2]int) *Archive {
	name := choose(Architectures(), capability)
	if name == "" {
		return nil
	}
	load, ok := opened.Load(name)
	if !ok {
		load, _ = opened.LoadOrStore(name, sync.OnceValue(func() *Archive {
			data, err := archives.ReadFile(name + ".zip")
			if err != nil {
				panic(err)
			}
			a, err := Read(data)
			if err != nil {
				panic("kernels/library/cubin: " + name + ": " + err.Error())
			}
			a.Architecture = name
			return a
		}))
	}
	return load.(func() *Archive)()
}

// opened holds, by architecture, a func() *Archive that reads the list of its kernels once.
var opened sync.Map

// choose returns the architecture whose code a GPU runs, "" if there is none. GPUs run code for the same major number whose minor number is not
// above theirs: 8.0, 8.6 and 8.9 run sm_80. 7.2 and 8.7 are systems on a chip, which run only code made for them.
func choose(architectures []string, capability [2]int) string {
	best, chosen := -1, ""
	for _, name := range architectures {
		major, minor := number(name)/10, number(name)%10
		onChip := capability == [2]int{7, 2} || capability == [2]int{8, 7}
		if number(name) > 0 && major == capability[0] && minor > best && (minor == capability[1] || minor < capability[1] && !onChip) {
			best, chosen = minor, name
		}
	}
	return chosen
}
