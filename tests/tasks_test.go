// A test of the page that says where a change goes: its files exist, and a reader of ARCHITECTURE.md finds their folders.

package tests

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTasksNameFilesThatExist(t *testing.T) {
	architecture := page(t, "ARCHITECTURE.md")
	require.Contains(t, links(architecture), "docs/tasks.md")
	_, table, found := strings.Cut(page(t, "docs/tasks.md"), "\n|---|---|\n")
	require.True(t, found)
	tasks := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, tasks, 10)
	for _, task := range tasks {
		files := regexp.MustCompile("`((?:[\\w.-]+/)+[\\w.-]+)`").FindAllStringSubmatch(task, -1)
		require.NotEmpty(t, files, task)
		for _, file := range files {
			_, err := os.Stat(filepath.Join("..", filepath.FromSlash(file[1])))
			require.NoError(t, err, task)
			folder := path.Dir(file[1])
			if folder == "docs" {
				continue
			}
			if base := path.Base(folder); base == "cuda" || base == "testdata" { // named in the row of the folder around them
				folder = path.Dir(folder)
			}
			require.Regexp(t, "`"+regexp.QuoteMeta(folder)+"[/`]", architecture, "ARCHITECTURE.md does not lead to %s", folder)
		}
	}
}
