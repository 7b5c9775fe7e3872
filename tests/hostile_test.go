// Hostile callers: every exported function and method of the public packages is called with arguments that no caller should pass. They
// may refuse them with an error; they must not panic, and must not hang.

package tests

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostileSeeds is how many seeds are tried: 8, or as many as DAGRUN_HOSTILE says.
func hostileSeeds(t *testing.T) uint64 {
	text := os.Getenv("DAGRUN_HOSTILE")
	if text == "" {
		return 8
	}
	n, err := strconv.ParseUint(text, 10, 32)
	require.NoError(t, err, "DAGRUN_HOSTILE")
	return n
}

func TestNothingPanicsOnHostileArguments(t *testing.T) {
	failed := map[string]bool{} // each function once
	calls, refused := 0, 0
	for seed := range hostileSeeds(t) {
		h := newHostile(seed)
		end := h.subjects(t)
		for _, f := range h.functions() {
			for range 6 {
				h.call(t, f.name, f.of, seed, failed, &calls, &refused)
			}
		}
		for _, subject := range h.order() {
			for m := range subject.NumMethod() {
				method := subject.Type().Method(m)
				name := subject.Type().String() + "." + method.Name
				if dangerous[name] || subject.Kind() == reflect.Pointer && subject.IsNil() && promoted(subject.Type(), method.Name) {
					continue
				}
				for range 3 {
					h.call(t, name, subject.Method(m), seed, failed, &calls, &refused)
				}
			}
		}
		end()
	}
	t.Logf("%d calls, %d of them refused with an error, %d functions and methods failed", calls, refused, len(failed))
	require.Greater(t, calls, 1000*int(hostileSeeds(t)))
	require.Greater(t, refused, 100*int(hostileSeeds(t)))
}

// promoted reports whether a method belongs to a struct's embedded pointer, which cannot be reached through a nil pointer to the struct.
func promoted(of reflect.Type, method string) bool {
	for i := range of.Elem().NumField() {
		if f := of.Elem().Field(i); f.Anonymous && f.Type.Kind() == reflect.Pointer {
			if _, has := f.Type.MethodByName(method); has {
				return true
			}
		}
	}
	return false
}

var (
	errorType   = reflect.TypeFor[error]()
	contextType = reflect.TypeFor[context.Context]()
)

// call calls a function once and checks how it ends. Its results are used too: an error must have a text.
func (h *hostile) call(t *testing.T, name string, f reflect.Value, seed uint64, failed map[string]bool, calls, refused *int) {
	if failed[name] {
		return
	}
	var args []reflect.Value
	shown := make([]string, f.Type().NumIn())
	for i := range shown {
		in := f.Type().In(i)
		if f.Type().IsVariadic() && i == len(shown)-1 {
			in = in.Elem()
			for range h.IntN(3) {
				args = append(args, h.value(in, 4))
			}
			continue
		}
		args = append(args, h.value(in, 4))
	}
	// A call that is asked for a billion replays does them until its context ends.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	for i := range args {
		if args[i].Type() == contextType && h.IntN(8) > 0 {
			args[i] = reflect.ValueOf(&ctx).Elem()
		}
	}
	*calls++
	done := make(chan string, 1)
	go func() {
		problem := ""
		defer func() { done <- problem }()
		defer func() {
			if p := recover(); p != nil {
				problem = fmt.Sprintf("panic: %v\n%s", p, ownFrames(string(debug.Stack())))
			}
		}()
		for _, result := range f.Call(args) {
			if err, ok := result.Interface().(error); ok && result.Type().Implements(errorType) && !(result.Kind() == reflect.Pointer && result.IsNil()) {
				*refused++
				if err.Error() == "" {
					problem = "an error without a text"
				}
			}
		}
	}()
	problem := ""
	select {
	case problem = <-done:
	case <-time.After(2 * time.Minute):
		problem = "it hangs"
	}
	if problem != "" {
		failed[name] = true
		for _, a := range args {
			text := fmt.Sprintf("%+v", a)
			shown = append(shown, text[:min(len(text), 300)])
		}
		t.Errorf("%s, seed %d, of %q: %s", name, seed, shown, problem)
	}
}

// ownFrames returns the lines of a stack that are in this module's sources, without those of the test.
func ownFrames(stack string) string {
	var own []string
	for _, line := range strings.Split(stack, "\n") {
		if _, place, ours := strings.Cut(line, "/dagrun/"); strings.HasPrefix(line, "\t") && !strings.Contains(line, "hostile_test") && (ours || strings.Contains(line, ".go:")) && !strings.Contains(line, "/go/") {
			own = append(own, strings.TrimSpace(max(place, line)))
		}
	}
	return strings.Join(own[:min(len(own), 4)], "\n")
}

// Every exported function and every exported type with methods must be among those that are called, so that additions are tested too.
func TestHostileCallersKnowEverythingExported(t *testing.T) {
	h := newHostile(0)
	end := h.subjects(t)
	defer end()
	known := map[string]bool{}
	for _, f := range h.functions() {
		known[f.name] = true
	}
	for _, subject := range h.order() {
		known[strings.TrimPrefix(subject.Type().String(), "*")] = true
	}
	for _, folder := range publicPackages(t) {
		files := token.NewFileSet()
		paths, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, path, nil, 0)
			require.NoError(t, err)
			for _, declared := range file.Decls {
				f, ok := declared.(*ast.FuncDecl)
				if !ok || !f.Name.IsExported() {
					continue
				}
				of := file.Name.Name + "." + f.Name.Name
				if f.Recv != nil {
					if of = file.Name.Name + "." + receiver(f); !ast.IsExported(receiver(f)) {
						continue
					}
				}
				if !known[of] && !dangerous[of] {
					t.Errorf("%s: nothing calls %s with hostile arguments: add it to functions or subjects in hostile_subjects_test.go", folder, of)
					known[of] = true
				}
			}
		}
	}
}

func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// publicPackages are the folders that others can import, except those that need a GPU, a compiler or a test to run in, the cache, which
// writes files, and the packages that read and run PTX, whose own fuzz tests feed them hostile text.
func publicPackages(t *testing.T) []string {
	var folders []string
	for name := range packages(t) {
		switch {
		case name == "." || strings.Contains("/"+name+"/", "/internal/") || strings.HasPrefix(name, "cmd") || strings.HasPrefix(name, "tests") || strings.HasPrefix(name, ".ci"):
		case slices.Contains([]string{"cudart/conformance", "cudart/driver", "cudart/nvml", "cudart/cupti", "cudart/host/simt", "kernels/library/ptx", "runtime/cache"}, name):
		case strings.HasPrefix(name, "internal/ptx"), strings.HasPrefix(name, "kernels/source"):
		default:
			folders = append(folders, name)
		}
	}
	slices.Sort(folders)
	require.NotEmpty(t, folders)
	return folders
}
