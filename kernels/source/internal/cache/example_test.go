// A runnable example: an entry that is written and read again.

package cache_test

import (
	"fmt"
	"os"

	"github.com/dagrun/dagrun/kernels/source/internal/cache"
)

func Example() {
	folder, err := os.MkdirTemp("", "cache-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	c := cache.Open("clang", folder)
	key, cacheable := cache.KeyOf("clang 14", "blur.cu", []byte("code"), []string{"-O3"}, nil)
	_, found := c.Get(key)
	fmt.Println(cacheable, found)
	c.Put(key, &cache.Entry{Code: []byte("PTX")})
	e, found := c.Get(key)
	fmt.Println(found, string(e.Code))
	// Output:
	// true false
	// true PTX
}
