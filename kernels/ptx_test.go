// Committed PTX: that it belongs to its source, that old drivers load it, that its entries are the table's.

package kernels

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/internal/ptx"
)

func TestPTXBelongsToSource(t *testing.T) {
	sources, err := ptx.Sources(cudaFiles)
	require.NoError(t, err)
	files, err := ptxFiles.ReadDir("ptx")
	require.NoError(t, err)
	require.Len(t, files, len(sources), "one PTX file for each source")
	_, lookErr := exec.LookPath(ptx.Compiler)
	for _, source := range sources {
		stamp, err := ptx.Stamp(cudaFiles, source)
		require.NoError(t, err)
		committed, err := ptxFiles.ReadFile(ptx.Output(source))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(committed), stamp), "%s is older than %s: run go generate ./kernels", ptx.Output(source), source)
		if lookErr != nil || os.Getenv("CI") == "" {
			continue // the hash ties the two together; compiling again takes half a minute of a core
		}
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			made, err := exec.Command(ptx.Compiler, append(ptx.Flags(), source, "-o", "-")...).Output()
			require.NoError(t, err)
			assert.Equal(t, string(committed), stamp+string(made), source)
		})
	}
}

func TestPTXHeader(t *testing.T) {
	header := libraryPTX().header
	m := regexp.MustCompile(`^\.version ([0-9]+)\.([0-9]+)\n\.target sm_([0-9]+)\n\.address_size 64\n$`).FindStringSubmatch(header)
	require.NotNil(t, m, header)
	assert.True(t, m[1] < "7" || m[1] == "7" && m[2] == "0", "PTX ISA above 7.0")
	assert.LessOrEqual(t, m[3], "60")
}

func TestPTXEntriesAreTheTables(t *testing.T) {
	text := libraryPTX()
	seen := map[string]bool{}
	param := regexp.MustCompile(`\.param \.(?:align \d+ \.)?([a-z])(\d+) `)
	for _, versions := range library().byName {
		for _, k := range versions {
			if seen[k.entry] {
				continue
			}
			seen[k.entry] = true
			body, ok := text.entries[k.entry]
			if !assert.True(t, ok, "no PTX for %s", k.entry) {
				continue
			}
			var sizes []string
			for _, m := range param.FindAllStringSubmatch(body[:strings.IndexByte(body, '{')], -1) {
				sizes = append(sizes, m[1]+m[2])
			}
			var want []string
			for _, p := range k.params {
				switch {
				case p.Buffer:
					want = append(want, "u64")
				case p.DType.Float():
					want = append(want, p.DType.String())
				default:
					want = append(want, map[int32]string{4: "u32", 8: "u64"}[p.Size])
				}
			}
			assert.Equal(t, want, sizes, k.entry)
			assert.NotContains(t, body, ".local", k.entry+" spills to local memory")
			assert.NotContains(t, body, "call.uni", k.entry+" calls a function")
		}
	}
	for _, name := range text.names {
		assert.True(t, seen[name], "no row for entry %s", name)
	}
	for name, declaration := range text.symbols {
		assert.NotRegexp(t, `^\s*(\.visible )?\.global`, declaration, name+" is writable and shared by all launches")
	}
}
