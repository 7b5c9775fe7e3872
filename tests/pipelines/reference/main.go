// Computes the expected results of pipelines without a closed form, in float64 and with separate formulas: nothing here calls a kernel of
// the library. Writes the .npy files that the pipelines' expect names.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// references make the contents of a file from a size; the name of the file is NAME-SIZE.npy.
var references = map[string]func(size int) ([]float64, []int){
	"img":       imageReference,
	"dl":        networkReference,
	"inception": inceptionReference,
}

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: reference img|dl|inception SIZE FOLDER"))
	}
	make, ok := references[os.Args[1]]
	if !ok {
		fail(fmt.Errorf("no reference %q: want img, dl or inception", os.Args[1]))
	}
	size, err := strconv.Atoi(os.Args[2])
	if err != nil || size < 1 || size > 1<<16 {
		fail(fmt.Errorf("size %q: want a number from 1 to 65536", os.Args[2]))
	}
	values, shape := make(size)
	file := filepath.Join(os.Args[3], fmt.Sprintf("%s-%d.npy", os.Args[1], size))
	if err := os.WriteFile(file, npy(values, shape), 0o644); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "reference:", err)
	os.Exit(2)
}
