// A test of how modules are asked what their kernels do.

package file

import (
	"context"
	"errors"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/stretchr/testify/require"
)

// stopping is a module that compiles until the context ends.
type stopping struct{ fakes.Library }

func (stopping) Confirm(ctx context.Context, kernels []dag.LaunchKernel) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// Confirming may take as long as a compiler does, so whoever parses can end it, in files that the file uses too.
func TestTheContextOfParsingEndsConfirming(t *testing.T) {
	const inner = `version: 1
modules: {mine: {source: mine.cu}}
buffers: {d_x: {place: device, dtype: f32, shape: [8], init: 1}, d_y: {place: device, dtype: f32, shape: [8]}}
nodes:
  - {name: blur, kernel: mine.blur, args: [8, d_x, d_y], grid: 1, block: 32}
`
	options := testOptions()
	options.OpenModule = func(dag.Module) (dag.Library, error) { return stopping{fakes.UserKernels}, nil }
	options.ReadFile = func(string) ([]byte, error) { return []byte(inner), nil }
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))

	_, err := ParseContext(ctx, []byte(inner), options)
	require.EqualError(t, err, `p.yaml:2:11: module "mine": enough`)
	_, err = ParseFamilyContext(ctx, []byte(inner), options, 2)
	require.ErrorContains(t, err, `module "mine": enough`)
	_, err = ParseContext(ctx, []byte("version: 1\nnodes:\n  - {name: u, use: inner.yaml}\n"), options)
	require.EqualError(t, err, `inner.yaml:2:11: module "u_mine": enough (used by p.yaml:3:5 as u)`)
}

// faulty is a module that does not compile.
type faulty struct{ fakes.Library }

func (faulty) Confirm(context.Context, []dag.LaunchKernel) (string, error) {
	return "", errors.New("mine.cu:3: it does not compile")
}

func TestFaultsOfSourcesComeWithThoseOfTheFile(t *testing.T) {
	options := testOptions()
	options.OpenModule = func(dag.Module) (dag.Library, error) { return faulty{fakes.UserKernels}, nil }
	_, err := Parse([]byte(`version: 1
modules: {mine: {source: mine.cu}}
buffers: {d_x: {place: device, dtype: f32, shape: [8], init: 1}, d_y: {place: device, dtype: f32, shape: [8]}}
nodes:
  - {name: blur, kernel: mine.blur, args: [8, d_x, d_y], grid: 1, block: 32}
  - {name: wrong, memset: {to: d_z, value: 0}}
`), options)
	require.EqualError(t, err, "p.yaml:2:11: module \"mine\": mine.cu:3: it does not compile\np.yaml:6:32: unknown buffer \"d_z\"; did you mean \"d_x\"?")
}
