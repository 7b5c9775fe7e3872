// Tests of the command as users type it: every script in testdata/script runs the built command and checks its output and exit status.
// Needs no GPU.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/source/clang"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
	"github.com/dagrun/dagrun/runtime/cache"
)

func TestMain(m *testing.M) {
	if os.Getenv(cache.Variable) == "" {
		os.Setenv(cache.Variable, cache.Off) // no test learns from the user's own cache, or adds to it
	}
	testscript.Main(m, map[string]func(){"dagrun": main})
}

// selfAsCommand is the path of the test's own program under the name that makes it the command.
func selfAsCommand(t testing.TB) string {
	t.Helper()
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(t.TempDir(), "dagrun")
	if err := os.Symlink(test, self); err != nil {
		t.Fatal(err)
	}
	return self
}

// spinning is a pipeline whose replay takes 20 ms on any machine, so that 80 replays take longer than the second after which progress shows.
func spinning(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spin.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nname: spin\nnodes:\n  - {name: spin, kernel: spin, args: [20000]}\n"), 0o644))
	return file
}

// raceDetector says whether this program was built with it.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// haveCompiler reports whether the CPU device can compile CUDA C here. Where a compiler is required, it must be able to.
func haveCompiler() bool {
	if _, err := nvrtc.Open(nvrtc.Options{}); err == nil || os.Getenv("DAGRUN_PTX_COMPILER") != "" {
		return true
	}
	_, err := clang.Open(clang.Options{})
	return err == nil
}

// confines reports whether --confined can run compilers here.
var confines = func() bool { return false }

// logPartial names the scripts of which lines are left out here because a program is missing.
func logPartial(t *testing.T) {
	var missing []string
	if !haveCompiler() {
		missing = append(missing, "[compiler]")
	}
	if _, err := exec.LookPath("dot"); err != nil {
		missing = append(missing, "[exec:dot]")
	}
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		for _, condition := range missing {
			if strings.Contains(string(text), "\n"+condition+" ") {
				t.Logf("NOT ALL TESTED: %s/%s (lines with %s)", t.Name(), strings.TrimSuffix(filepath.Base(script), ".txtar"), condition)
			}
		}
	}
}

func TestScripts(t *testing.T) {
	pipelines, err := filepath.Abs("../../pipelines")
	if err != nil {
		t.Fatal(err)
	}
	recordings, err := filepath.Abs("../../internal/recording/order/testdata/recordings")
	if err != nil {
		t.Fatal(err)
	}
	graphs, err := filepath.Abs("internal/replan/testdata")
	if err != nil {
		t.Fatal(err)
	}
	logPartial(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("DAGRUN_UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PIPELINES", pipelines)
			env.Setenv("RECORDINGS", recordings)
			env.Setenv("GRAPHS", graphs)
			env.Setenv("NO_COLOR", "")
			env.Setenv(cache.Variable, filepath.Join(env.WorkDir, ".cache")) // never the user's own
			env.Setenv("GORACE", "atexit_sleep_ms=0")                        // under -race each process would sleep for a second at its end
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "race":
				return raceDetector(), nil
			case "compiler": // a compiler of CUDA C
				return haveCompiler(), nil
			case "clang":
				_, err := clang.Open(clang.Options{})
				return err == nil, nil
			case "confines": // compilers
				return confines(), nil
			case "nvrtc":
				_, err := nvrtc.Open(nvrtc.Options{})
				return err == nil, nil
			}
			return false, fmt.Errorf("there is no condition %q", name)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status":  status,
			"appears": appears,
		},
	})
}

// status runs a command and checks its exit status: status 2 dagrun run missing.yaml.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// appears waits for a file that a command in the background writes when it reaches a certain point.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears file")
	}
	name := ts.MkAbs(args[0])
	for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(time.Millisecond) {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 {
			return
		}
	}
	ts.Fatalf("%s did not appear", args[0])
}
