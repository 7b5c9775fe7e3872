// Tests of the cache: entries are read back as written, foreign files are skipped with a warning, the size is bounded, and several
// processes can use it at once.

package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var ctx = context.Background()

func nodePrint(k int) string { return Fingerprint(fmt.Append(nil, k)) }

func TestDurationsComeBack(t *testing.T) {
	f := Open(t.TempDir())
	found, err := f.Durations("gpu")
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(1): {1, 2}, nodePrint(2): {0.1}}, false))
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(1): {3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, false))
	require.NoError(t, f.KeepDurations(ctx, "another gpu", Durations{nodePrint(1): {99}}, false))
	found, err = f.Durations("gpu")
	require.NoError(t, err)
	require.Equal(t, Durations{nodePrint(1): {4, 5, 6, 7, 8, 9, 10, 11, 12}, nodePrint(2): {0.1}}, found, "the latest samples of this device")
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(2): {5}}, true))
	found, err = f.Durations("gpu")
	require.NoError(t, err)
	require.Equal(t, []float64{5}, found[nodePrint(2)], "earlier samples no longer count")
}

func TestWrongDurationsAreNotKept(t *testing.T) {
	f := Open(t.TempDir())
	for _, us := range []float64{-1, 1e16} {
		require.ErrorContains(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(1): {us}}, false), "that is no duration")
	}
	require.EqualError(t, f.KeepDurations(ctx, "gpu", Durations{"node": {1}}, false), `1 samples of "node": that is no fingerprint of a node`)
}

func choice(plan string) *Choice {
	return &Choice{Pipeline: "p", Device: "gpu", At: time.Unix(1, 0).UTC(), Tried: 3, Ways: []Way{{Threads: 1, EachUS: 5, Plan: json.RawMessage(plan)}}}
}

func TestChoicesComeBack(t *testing.T) {
	f := Open(t.TempDir())
	none, err := f.Choice("key")
	require.NoError(t, err)
	require.Nil(t, none)
	want := choice(`{"version":1}`)
	want.Machine = json.RawMessage(`{"version":1,"name":"m"}`)
	want.Drifted = 1
	want.Ways[0].RunsUS = []float64{5, 6.5}
	require.NoError(t, f.KeepChoice(ctx, "key", want))
	found, err := f.Choice("key")
	require.NoError(t, err)
	require.Equal(t, want, found)
	none, err = f.Choice("another key")
	require.NoError(t, err)
	require.Nil(t, none)
	require.NoError(t, f.ForgetChoice("key"))
	require.NoError(t, f.ForgetChoice("key"))
	none, err = f.Choice("key")
	require.NoError(t, err)
	require.Nil(t, none)
}

func TestImpossibleChoicesAreRefused(t *testing.T) {
	f := Open(t.TempDir())
	for _, change := range []func(c *Choice){
		func(c *Choice) { c.Ways = nil },
		func(c *Choice) { c.Ways[0].Threads = 100_000 },
		func(c *Choice) { c.Ways[0].EachUS = -1 },
		func(c *Choice) { c.Ways[0].RunsUS = []float64{5, -1} },
		func(c *Choice) { c.Ways[0].RunsUS = make([]float64, MostTook+1) },
		func(c *Choice) { c.Tried = -1 },
		func(c *Choice) { c.Drifted = -1 },
		func(c *Choice) { c.Machine = json.RawMessage(`"` + strings.Repeat("m", mostMachineBytes) + `"`) },
	} {
		c := choice("{}")
		change(c)
		require.ErrorIs(t, f.KeepChoice(ctx, "key", c), ErrDamaged)
		// The same with a correct checksum, from someone who knows the format.
		body, err := json.Marshal(choiceFile{choiceVersion, "key", *c})
		require.NoError(t, err)
		require.NoError(t, write(ctx, choicesKind, f.entry(choicesKind, "key"), body))
		found, err := f.Choice("key")
		require.ErrorIs(t, err, ErrDamaged)
		require.Nil(t, found)
	}
}

func TestForeignFilesAreSkippedAndNamed(t *testing.T) {
	dir := t.TempDir()
	f := Open(dir)
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(1): {1}}, false))
	folder := f.device("gpu")
	good := sealed(durationsKind, (&batch{device: "gpu", order: []string{nodePrint(2)}, took: Durations{nodePrint(2): {2}}}).encode())
	for name, c := range map[string]struct{ text, problem string }{
		"empty":     {"", "it is not a file of dagrun's"},
		"foreign":   {"hello", "it is not a file of dagrun's"},
		"newer":     {"dagrun cache 2 durations\n", "another version of dagrun wrote it"},
		"kind":      {string(sealed(choicesKind, []byte("{}"))), "another version of dagrun wrote it"},
		"short":     {"dagrun cache 1 durations\n", "it is cut short"},
		"changed":   {strings.Replace(string(good), " 2\n", " 3\n", 1), "its checksum is wrong"},
		"head":      {string(sealed(durationsKind, []byte("at noon adds \"gpu\"\n"))), "its first line is wrong"},
		"negative":  {string(sealed(durationsKind, []byte("at 1 adds \"gpu\"\n"+nodePrint(1)+" -5\n"))), "line 2 is wrong"},
		"nan":       {string(sealed(durationsKind, []byte("at 1 adds \"gpu\"\n"+nodePrint(1)+" NaN\n"))), "line 2 is wrong"},
		"huge":      {string(sealed(durationsKind, []byte("at 1 adds \"gpu\"\n"+nodePrint(1)+" 1e300\n"))), "line 2 is wrong"},
		"many":      {string(sealed(durationsKind, []byte("at 1 adds \"gpu\"\n"+nodePrint(1)+strings.Repeat(" 1", 100)+"\n"))), "line 2 is wrong"},
		"twice":     {string(sealed(durationsKind, []byte("at 1 adds \"gpu\"\n"+nodePrint(1)+" 1\n"+nodePrint(1)+" 1\n"))), "line 3 is wrong"},
		"no sample": {string(sealed(durationsKind, []byte("at 1 adds \"gpu\"\n"+nodePrint(1)+"\n"))), "line 2 is wrong"},
	} {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		found, err := f.Durations("gpu")
		require.EqualError(t, err, file+" is ignored: not usable: "+c.problem, name)
		require.Equal(t, Durations{nodePrint(1): {1}}, found)
		contents, err := f.Contents()
		require.NoError(t, err)
		require.Equal(t, []string{file + " is ignored: not usable: " + c.problem}, contents.Ignored)
		require.NoError(t, os.Remove(file))
	}
	large, err := os.Create(filepath.Join(folder, "large"))
	require.NoError(t, err)
	require.NoError(t, large.Truncate(1<<40))
	require.NoError(t, large.Close())
	_, err = f.Durations("gpu")
	require.ErrorContains(t, err, "it is larger than 16 MiB")
	require.NoError(t, os.Remove(large.Name()))
	// A folder in the place of a choice's file.
	require.NoError(t, os.MkdirAll(f.entry(choicesKind, "key"), 0o700))
	_, err = f.Choice("key")
	require.ErrorContains(t, err, "it is not a regular file")
	require.ErrorContains(t, f.KeepChoice(ctx, "key", choice("{}")), "it is not a regular file")
}

func TestFilesOfOneDeviceAreMerged(t *testing.T) {
	f := Open(t.TempDir())
	for k := range 3 * mostBatches {
		require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(k): {float64(k)}, nodePrint(-1): {float64(k)}}, false))
	}
	found, err := list(f.device("gpu"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(found), mostBatches+1)
	durations, err := f.Durations("gpu")
	require.NoError(t, err)
	require.Len(t, durations, 3*mostBatches+1)
	require.Len(t, durations[nodePrint(-1)], MostSamples)
	require.Equal(t, float64(3*mostBatches-1), durations[nodePrint(-1)][MostSamples-1])
}

func TestTheCacheIsBounded(t *testing.T) {
	dir := t.TempDir()
	for k := range 20 {
		name := filepath.Join(dir, nodePrint(k))
		require.NoError(t, os.WriteFile(name, make([]byte, 10), 0o600))
		at := time.Unix(int64(1000+k), 0)
		require.NoError(t, os.Chtimes(name, at, at))
	}
	unfinished := filepath.Join(dir, ".dagrun-killed")
	require.NoError(t, os.WriteFile(unfinished, nil, 0o600))
	require.NoError(t, os.Chtimes(unfinished, time.Unix(1, 0), time.Unix(1, 0)))
	require.NoError(t, trim(dir, 15, 1<<20))
	found, err := list(dir)
	require.NoError(t, err)
	require.Len(t, found, 15)
	require.Equal(t, nodePrint(5), found[0].Name())
	require.NoError(t, trim(dir, 15, 40))
	found, err = list(dir)
	require.NoError(t, err)
	require.Len(t, found, 4)

	f := Open(t.TempDir())
	for k := range mostDevices + 5 {
		require.NoError(t, f.KeepDurations(ctx, fmt.Sprint("gpu ", k), Durations{nodePrint(1): {1}}, false))
	}
	devices, err := f.devices()
	require.NoError(t, err)
	require.Len(t, devices, mostDevices)
}

func TestSeveralProcessesAtOnce(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 8, 12
	var group sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		group.Go(func() {
			f := Open(dir) // only the folder is shared
			for k := range each {
				errs[w] = errors.Join(errs[w], f.KeepDurations(ctx, "gpu", Durations{nodePrint(w*each + k): {1}}, false), f.KeepChoice(ctx, "key", choice(fmt.Sprintf(`{"w":%d}`, w))))
				_, err := f.Durations("gpu")
				_, choiceErr := f.Choice("key")
				errs[w] = errors.Join(errs[w], err, choiceErr)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	f := Open(dir)
	found, err := f.Durations("gpu")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(found), writers*each*9/10, "what two processes merge at once may be lost, but little of it")
	c, err := f.Choice("key")
	require.NoError(t, err)
	require.NotNil(t, c)
}

func TestContentsAndClear(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "somebody else's")
	require.NoError(t, os.WriteFile(own, nil, 0o600))
	f := Open(dir)
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(1): {1}, nodePrint(2): {1}}, false))
	require.NoError(t, f.KeepChoice(ctx, "key", choice("{}")))
	c, err := f.Contents()
	require.NoError(t, err)
	require.Equal(t, []DeviceContents{{Device: "gpu", Nodes: 2, Files: 1}}, c.Devices)
	require.Equal(t, []ChoiceContents{{Pipeline: "p", Device: "gpu", At: time.Unix(1, 0).UTC(), Tried: 3, EachUS: 5}}, c.Choices)
	require.Positive(t, c.Bytes)
	require.NoError(t, f.Clear())
	require.NoError(t, f.Clear())
	c, err = f.Contents()
	require.NoError(t, err)
	require.Empty(t, c.Devices)
	require.Empty(t, c.Choices)
	require.FileExists(t, own)
}

// A folder that a user names may hold files of theirs, even where the cache has some.
func TestOtherFilesAreNeverRemoved(t *testing.T) {
	dir := t.TempDir()
	var others []string
	for _, name := range []string{"notes/thesis.doc", "notes/.settings", "durations/mine/x", "choices/cafe", "machines/" + strings.Repeat("x", fingerprintLength)} {
		others = append(others, filepath.Join(dir, name))
		require.NoError(t, os.MkdirAll(filepath.Dir(others[len(others)-1]), 0o700))
		require.NoError(t, os.WriteFile(others[len(others)-1], make([]byte, 100), 0o600))
		require.NoError(t, os.Chtimes(others[len(others)-1], time.Unix(1, 0), time.Unix(1, 0)))
	}
	f := Open(dir)
	require.NoError(t, f.KeepNote(ctx, "key", []byte("note")))
	require.NoError(t, f.KeepChoice(ctx, "key", choice("{}")))
	require.NoError(t, f.KeepDurations(ctx, "gpu", Durations{nodePrint(1): {1}}, false))
	unfinished := filepath.Join(dir, notesKind, ".dagrun-0123")
	require.NoError(t, os.WriteFile(unfinished, nil, 0o600))
	require.NoError(t, os.Chtimes(unfinished, time.Now(), time.Now().Add(-2*longestWrite)))
	c, err := f.Contents()
	require.NoError(t, err)
	require.Len(t, c.Ignored, 4)
	require.NotContains(t, strings.Join(c.Ignored, " "), unfinished)
	require.NoError(t, trim(filepath.Join(dir, notesKind), 0, 0))
	require.NoError(t, f.Clear())
	for _, name := range others {
		require.FileExists(t, name)
	}
	left := 0
	require.NoError(t, filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if !e.IsDir() {
			left++
		}
		return err
	}))
	require.Equal(t, len(others), left)
}

func TestFoldersThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Open(dir).Usable())
	require.NoError(t, Open(filepath.Join(dir, "later")).Usable())
	require.NoError(t, Open(Off).Usable())
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), link))
	for path, want := range map[string]string{file: file + " is not a folder", link: link + " is a link that leads nowhere", filepath.Join(file, "x"): filepath.Join(file, "x") + " cannot be read: not a directory"} {
		require.EqualError(t, Open(path).Usable(), want)
		require.EqualError(t, Open(path).Clear(), want)
		_, err := Open(path).Contents()
		require.EqualError(t, err, want)
	}
	require.FileExists(t, file)
	f := Open(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, choicesKind), nil, 0o600))
	c, err := f.Contents()
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, choicesKind) + " is ignored: not a directory"}, c.Ignored)
}

func TestWhereTheCacheIs(t *testing.T) {
	t.Setenv(Variable, "/somewhere")
	require.Equal(t, "/somewhere", Open("").Path())
	require.Equal(t, "/else", Open("/else").Path())
	t.Setenv(Variable, Off)
	require.Nil(t, Open(""))
	require.Nil(t, Open(Off))
	var none *Folder
	require.Empty(t, none.Path())
	found, err := none.Durations("gpu")
	require.NoError(t, err)
	require.Nil(t, found)
	require.NoError(t, none.KeepDurations(ctx, "gpu", Durations{nodePrint(1): {1}}, false))
	require.NoError(t, none.KeepChoice(ctx, "key", choice("{}")))
	c, err := none.Choice("key")
	require.NoError(t, err)
	require.Nil(t, c)
	require.NoError(t, none.ForgetChoice("key"))
	require.NoError(t, none.Clear())
	contents, err := none.Contents()
	require.NoError(t, err)
	require.Empty(t, contents.Choices)
}

func TestNotes(t *testing.T) {
	ctx := context.Background()
	folder := Open(t.TempDir())
	note := func(key string) string {
		text, err := folder.Note(key)
		require.NoError(t, err)
		return string(text)
	}
	require.Empty(t, note("a"))
	require.NoError(t, folder.KeepNote(ctx, "a", []byte("one")))
	require.NoError(t, folder.KeepNote(ctx, "b", []byte("two")))
	require.NoError(t, folder.KeepNote(ctx, "a", []byte("three")))
	require.Equal(t, "three", note("a"))
	require.Equal(t, "two", note("b"))
	require.NoError(t, folder.KeepNote(ctx, "b", nil))
	require.NoError(t, folder.KeepNote(ctx, "b", nil), "again")
	require.Empty(t, note("b"))
	require.EqualError(t, folder.KeepNote(ctx, "b", make([]byte, 64<<10+1)), "a note of 65537 bytes: at most 65536 are possible")
	contents, err := folder.Contents()
	require.NoError(t, err)
	require.Equal(t, 1, contents.Notes)
	require.Positive(t, contents.Bytes)
	files, err := filepath.Glob(filepath.Join(folder.Path(), "notes", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte("garbage"), 0o600))
	_, err = folder.Note("a")
	require.EqualError(t, err, files[0]+" is ignored: not usable: it is not a file of dagrun's (dagrun cache --clear removes it)")
	require.NoError(t, folder.Clear())
	require.Empty(t, note("a"))
	var none *Folder
	require.NoError(t, none.KeepNote(ctx, "a", []byte("one")))
	text, err := none.Note("a")
	require.NoError(t, err)
	require.Nil(t, text)
}

func TestMachines(t *testing.T) {
	folder := Open(t.TempDir())
	machine := func(device string) string {
		text, err := folder.Machine(device)
		require.NoError(t, err)
		return string(text)
	}
	require.Empty(t, machine("gpu"))
	require.NoError(t, folder.KeepMachine(ctx, "gpu", []byte("slow")))
	require.NoError(t, folder.KeepMachine(ctx, "gpu", []byte("fast")))
	require.NoError(t, folder.KeepMachine(ctx, "another gpu", []byte("faster")))
	require.Equal(t, "fast", machine("gpu"))
	require.Equal(t, "faster", machine("another gpu"))
	require.EqualError(t, folder.KeepMachine(ctx, "gpu", make([]byte, 64<<10+1)), "a machine file of 65537 bytes: at most 65536 are possible")
	contents, err := folder.Contents()
	require.NoError(t, err)
	require.Equal(t, 2, contents.Machines)
	for k := range 40 {
		require.NoError(t, folder.KeepMachine(ctx, fmt.Sprint(k), []byte("x")))
	}
	files, err := filepath.Glob(filepath.Join(folder.Path(), "machines", "*"))
	require.NoError(t, err)
	require.Len(t, files, mostDevices)
	require.NoError(t, os.WriteFile(files[0], []byte("garbage"), 0o600))
	contents, err = folder.Contents()
	require.NoError(t, err)
	require.Equal(t, mostDevices-1, contents.Machines)
	require.Equal(t, []string{files[0] + " is ignored: not usable: it is not a file of dagrun's (dagrun cache --clear removes it)"}, contents.Ignored)
	require.NoError(t, folder.Clear())
	require.Empty(t, machine("39"))
	var none *Folder
	require.NoError(t, none.KeepMachine(ctx, "gpu", []byte("fast")))
	text, err := none.Machine("gpu")
	require.NoError(t, err)
	require.Nil(t, text)
}
