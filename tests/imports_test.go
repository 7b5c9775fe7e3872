// Tests of the layout of the module: which top-level folder may import which, what the core imports of the packages around it, and how many layers of packages a folder has.

package tests

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/dagrun/dagrun"

// rooms are the top-level folders in the order in which data passes through them. A package imports its own room and those before it;
// internal/ holds packages that belong to no room.
var rooms = []string{"internal", "dag", "planner", "kernels", "cudart", "runtime", "cmd"}

func TestRoomsImportOnlyRoomsAboveThem(t *testing.T) {
	seen := map[string]bool{}
	for name, imports := range packages(t) {
		room := roomOf(name)
		at := slices.Index(rooms, room)
		if at < 0 {
			continue
		}
		seen[room] = true
		for other := range imports {
			to := slices.Index(rooms, roomOf(other))
			require.GreaterOrEqual(t, to, 0, "%s imports %s, which is in no room", name, other)
			require.LessOrEqual(t, to, at, "%s imports %s, which is in a room after it", name, other)
		}
	}
	for _, room := range rooms[1:] {
		require.True(t, seen[room], "no source was read in %s/", room)
	}
}

func roomOf(name string) string { return strings.SplitN(name, "/", 2)[0] }

// fronts are packages for programs that embed dagrun, which put the core and satellites together. The core imports none of them.
var fronts = []string{"kernels", "runtime"}

// satellites are the packages around the core: it works without them, and they can come and go. Packages below one belong to it. Every other package
// of the rooms above cmd/ is of the core, but for fronts.
var satellites = []string{
	"dag/exchange", "dag/file",
	"planner/spread", "planner/internal/placement", "planner/internal/plantest", "planner/proof/ranks", "planner/proof/spread", "planner/analysis", "planner/picture",
	"internal/ptx", "kernels/source", "kernels/calls", "kernels/library/internal",
	"cudart/conformance", "cudart/cupti", "cudart/fault", "cudart/host/simt", "cudart/libraries", "cudart/nvml", "cudart/recorder", "cudart/world",
	"internal/recording", "internal/happens",
	"runtime/learn", "runtime/cache", "runtime/internal/played",
}

// coreImportsSatellites are the imports that still go the wrong way: the command, or who embeds the core, should hand in what the satellite does.
// The list only shrinks.
var coreImportsSatellites = []string{
	"cudart/driver imports cudart/libraries",
	"cudart/driver imports cudart/world",
	"cudart/driver imports internal/ptx",
	"cudart/host imports cudart/host/simt",
	"cudart/host imports cudart/world",
}

func TestTheCoreImportsNoSatellite(t *testing.T) {
	all := packages(t)
	satellite := func(name string) bool {
		return slices.ContainsFunc(satellites, func(s string) bool { return name == s || strings.HasPrefix(name, s+"/") })
	}
	for _, name := range satellites {
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(other string) bool { return other == name || strings.HasPrefix(other, name+"/") }), "there is no %s", name)
	}
	var wrong []string
	for name, imports := range all {
		if at := slices.Index(rooms, roomOf(name)); at < 1 || rooms[at] == "cmd" || satellite(name) || slices.Contains(fronts, name) {
			continue
		}
		for other := range imports {
			if satellite(other) || slices.Contains(fronts, other) {
				wrong = append(wrong, name+" imports "+other)
			}
		}
	}
	slices.Sort(wrong)
	require.Equal(t, coreImportsSatellites, wrong, "the core may import no more satellites than the list says; remove from it what is no longer true")
}

// Devices are given compilers by those who open them, so that a program that compiles nothing contains none.
func TestDevicesReachNoCompiler(t *testing.T) {
	all := packages(t)
	for _, device := range []string{"cudart", "cudart/driver", "cudart/host"} {
		require.NotEmpty(t, all[device])
		for below := range reached(all, device) {
			require.False(t, strings.HasPrefix(below+"/", "kernels/source/"), "%s reaches %s", device, below)
		}
	}
}

// A package on floor one imports no package of its room; any other is one floor above the highest that it imports. The limits keep
// rooms small enough to remember.
func TestRoomsHaveFewFloors(t *testing.T) {
	const most = 6
	all := packages(t)
	floors := map[string]int{}
	var floor func(name string) int
	floor = func(name string) int {
		if at, done := floors[name]; done {
			return at
		}
		floors[name] = 1
		for other := range all[name] {
			if roomOf(other) == roomOf(name) {
				floors[name] = max(floors[name], floor(other)+1)
			}
		}
		return floors[name]
	}
	for _, room := range []string{"planner", "kernels"} {
		require.Contains(t, all, room)
		for name := range all {
			if roomOf(name) == room {
				require.LessOrEqual(t, floor(name), most, "%s", name)
			}
		}
	}
}

// commandImports lists for each package of the command which others of it that package may import. Families of commands (catalog, editing, measuring,
// planning, running) import none of each other: what two of them need is in a package below.
var commandImports = map[string][]string{
	"flags":      {},
	"cli":        {"flags"},
	"session":    {"cli", "editor", "flags", "replan", "tasks"},
	"runs":       {"cli", "flags", "session"},
	"pictures":   {"cli", "flags", "runs"},
	"recordings": {"cli", "flags", "replan", "session"},
	"exported":   {"cli", "flags", "graphfile", "pictures", "session"},
	"catalog":    {"cli", "flags", "recordings", "runs", "session"},
	"editing":    {"cli", "editor", "flags", "session"},
	"measuring":  {"cli", "flags", "pictures", "recordings", "replan", "runs", "session"},
	"planning":   {"cli", "exported", "flags", "pictures", "recordings", "session"},
	"running":    {"cli", "exported", "flags", "runs", "session"},
}

func TestFamiliesOfCommandsDoNotImportEachOther(t *testing.T) {
	const folder = "cmd/dagrun/internal/"
	all := packages(t)
	for name, allowed := range commandImports {
		require.NotEmpty(t, all[folder+name], "no source was read in %s", name)
		for other := range all[folder+name] {
			if other, of := strings.CutPrefix(other, folder); of {
				require.Contains(t, allowed, other, "%s imports it", name)
			}
		}
	}
}

// The proof checks what the rest of the planner makes. A bug in a function that both used would escape the proof, so the proof imports only
// the graph and the plan, and the packages that make plans do not import the proof.
func TestTheProofSharesNothingWithTheMaker(t *testing.T) {
	const proof = "planner/proof"
	all := packages(t)
	require.NotEmpty(t, all[proof])
	for other := range all[proof] {
		require.Contains(t, []string{"dag", "planner/plan"}, other, "%s imports it", proof)
	}
	for below := range reached(all, proof) { // planted holds switches with which tests plant faults in the planner
		require.True(t, !strings.HasPrefix(below, "planner") || below == "planner/plan" || below == "planner/internal/planted", "%s reaches %s", proof, below)
	}
	makers := 0
	for maker := range all {
		if maker != "planner/model" && !strings.HasPrefix(maker, "planner/internal/") {
			continue
		}
		makers++
		require.NotContains(t, reached(all, maker), proof, maker)
	}
	require.Greater(t, makers, 5)
}

// What replays plans is handed them: it neither makes plans nor learns which are good.
func TestTheEngineMakesNoPlans(t *testing.T) {
	all := packages(t)
	const engine = "runtime/internal/engine"
	require.NotEmpty(t, all[engine])
	for other := range reached(all, engine) {
		require.True(t, !strings.HasPrefix(other, "planner") || slices.Contains([]string{"planner/plan", "planner/proof", "planner/internal/planted"}, other), "%s reaches %s", engine, other)
		require.True(t, !strings.HasPrefix(other, "runtime") || strings.HasPrefix(other, "runtime/internal/"), "%s reaches %s", engine, other)
	}
}

// reached returns the packages that one imports, directly or indirectly.
func reached(all map[string]map[string]bool, from string) map[string]bool {
	found := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		for other := range all[name] {
			if !found[other] {
				found[other] = true
				follow(other)
			}
		}
	}
	follow(from)
	return found
}

// packages returns this module's packages by folder, each with the folders of the packages that it imports, without tests.
func packages(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	walkSources(t, func(file, _ string, imports []string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		name := path.Dir(file)
		if all[name] == nil {
			all[name] = map[string]bool{}
		}
		for _, other := range imports {
			if folder, ours := strings.CutPrefix(other, module+"/"); ours {
				all[name][folder] = true
			}
		}
	})
	return all
}

// plannerImports lists for each package of the planner which others of this module it may import. The proof imports nothing that makes
// plans, because it could not find bugs in shared code.
var plannerImports = map[string][]string{
	"planner/effort":           {},
	"planner/internal/pack":    {"planner/effort", "planner/internal/chance"},
	"planner/internal/chance":  {},
	"planner/internal/planted": {},
	"planner/internal/scratch": {},
	"planner/internal/sets":    {},
	"planner/internal/shop":    {"planner/effort", "planner/internal/chance", "planner/internal/scratch", "planner/internal/sets"},
	"planner/plan":             {"dag", "dag/outline", "internal/jsontext", "internal/words", "planner/internal/planted"},
	"planner/proof":            {"dag", "planner/plan"},
	"planner/proof/ranks":      {"dag", "dag/file"},
	"planner/proof/spread":     {"dag", "planner/plan", "planner/proof"},
	"planner/model":            {"dag", "internal/jsontext", "internal/words", "planner/internal/scratch", "planner/internal/shop", "planner/plan"},
	"planner/internal/order":   {"planner/internal/scratch", "planner/plan"},
	"planner/internal/layout": {"dag", "planner/effort", "planner/internal/order", "planner/internal/pack", "planner/internal/planted",
		"planner/internal/scratch", "planner/plan"},
	"planner/internal/place": {"dag", "planner/effort", "planner/internal/chance", "planner/internal/planted", "planner/internal/scratch", "planner/internal/shop", "planner/model", "planner/plan"},
	"planner/internal/placement": {"dag", "internal/words", "planner/effort", "planner/internal/planted", "planner/internal/scratch", "planner/internal/sets", "planner/model",
		"planner/plan"},
	"planner/internal/plantest":           {"dag", "planner/model", "planner/plan"},
	"planner/internal/plantest/instances": {},
	"planner/internal/plantest/planned":   {"dag", "planner/internal/place", "planner/model", "planner/plan"},
	"planner": {"dag", "internal/words", "planner/effort", "planner/internal/layout", "planner/internal/place",
		"planner/model", "planner/plan", "planner/proof"},
	"planner/spread":   {"dag", "internal/words", "planner", "planner/internal/place", "planner/internal/placement", "planner/model", "planner/plan", "planner/proof/spread"},
	"planner/analysis": {"dag", "internal/words", "planner/model", "planner/plan", "planner/proof"},
	"planner/picture":  {"dag", "internal/words", "planner/analysis", "planner/model", "planner/plan", "planner/proof"},
}

func TestPlannerPackagesImportOnlyWhatTheyMay(t *testing.T) {
	seen := map[string]bool{}
	walkSources(t, func(file, room string, imports []string) {
		if room != "planner" || strings.HasSuffix(file, "_test.go") {
			return
		}
		from := path.Dir(file)
		allowed, known := plannerImports[from]
		require.True(t, known, "%s is in a package of the planner that has no list of imports", file)
		seen[from] = true
		for _, name := range imports {
			if rest, ours := strings.CutPrefix(name, module+"/"); ours {
				require.Contains(t, allowed, rest, "%s imports %s", file, name)
			}
		}
	})
	for from := range plannerImports {
		require.True(t, seen[from], "no source was read in %s/", from)
	}
}

func TestTestHelpersOfThePlannerAreForTests(t *testing.T) {
	walkSources(t, func(file, _ string, imports []string) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "planner/internal/plantest/") {
			return
		}
		for _, name := range imports {
			require.NotContains(t, name, "/plantest", "%s imports a package for tests", file)
		}
	})
}

func TestNothingImportsC(t *testing.T) {
	walkSources(t, func(file, _ string, imports []string) {
		require.NotContains(t, imports, "C", "%s uses cgo", file)
	})
}

// walkSources calls a function with every Go file of the module, its first folder and its imports.
func walkSources(t *testing.T, do func(file, room string, imports []string)) {
	t.Helper()
	root := ".."
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && strings.HasPrefix(entry.Name(), ".") || entry.IsDir() && entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		var imports []string
		for _, spec := range parsed.Imports {
			value, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, value)
		}
		file := filepath.ToSlash(relative)
		do(file, strings.SplitN(file, "/", 2)[0], imports)
		return nil
	})
	require.NoError(t, err)
}
