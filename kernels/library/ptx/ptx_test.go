// Tests of the committed PTX: old drivers load it, modules of single kernels are complete, and launches share no memory through it.

package ptx

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// allFiles unpacks every file that entries.txt names, and the functions.
func allFiles(t *testing.T) map[string]*text {
	all := map[string]*text{functions: file(functions)}
	for _, name := range index().in {
		all[name] = file(name)
	}
	names, err := files.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, names, len(all)+1, "a file that entries.txt does not name")
	return all
}

func TestPTXHeader(t *testing.T) {
	for name, f := range allFiles(t) {
		m := regexp.MustCompile(`^\.version ([0-9]+)\.([0-9]+)\n\.target sm_([0-9]+)\n\.address_size 64\n$`).FindStringSubmatch(f.header)
		require.NotNil(t, m, name+": "+f.header)
		assert.True(t, m[1] < "7" || m[1] == "7" && m[2] == "0", "PTX ISA above 7.0")
		assert.LessOrEqual(t, m[3], "60")
		assert.Equal(t, file(functions).header, f.header, "modules are put together from several files under one header")
	}
}

func TestListAndFilesAgree(t *testing.T) {
	var names []string
	for name, f := range allFiles(t) {
		for _, entry := range f.names {
			assert.Equal(t, name, index().in[entry], entry)
		}
		names = append(names, f.names...)
	}
	assert.ElementsMatch(t, names, index().names)
}

func TestEntriesStayInRegistersAndShareNothing(t *testing.T) {
	shared := map[string]string{}
	for _, f := range allFiles(t) {
		for entry, body := range f.entries {
			assert.NotContains(t, body, ".local", entry+" spills to local memory")
			assert.NotContains(t, body, "call.uni", entry+" calls a function")
		}
		for name, declaration := range f.symbols {
			assert.NotRegexp(t, `^\s*(\.visible )?\.global`, declaration, name+" is writable and shared by all launches")
			if other, twice := shared[name]; twice {
				assert.Equal(t, other, declaration, "%s differs between files, so modules of both cannot be put together", name)
			}
			shared[name] = declaration
		}
	}
}

func TestModulesHaveWhatTheyName(t *testing.T) {
	code := string(Entries("dagrun_reduce_sum_f32", "dagrun_sin_f32", "no_such_kernel", "dagrun_sin_f32"))
	assert.Equal(t, 2, strings.Count(code, ".entry"))
	assert.Less(t, strings.Index(code, "dagrun_reduce_sum_f32("), strings.Index(code, "dagrun_sin_f32("), "in the order asked for")
	assert.Contains(t, code, "two_over_pi[")
	assert.True(t, strings.HasPrefix(code, ".version "))
	assert.Equal(t, file(functions).header, string(Entries("no_such_kernel")))
	assert.Equal(t, len(index().names), strings.Count(string(Entries()), ".entry "))
}
