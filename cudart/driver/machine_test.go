// Tests of machine code that comes with PTX: when it is loaded, and when the PTX is.

//go:build linux && (amd64 || arm64)

package driver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/launch"
)

// both is a module with PTX and machine code of two kernels.
func both() *launch.Module {
	return &launch.Module{Name: "both", Kind: launch.PTX, Code: []byte(".version 6.0\n.target sm_52\n.address_size 64\n.visible .entry blur()\n{\nret;\n}\n"),
		Machine: func(capability [2]int, waiting bool) (*launch.Machine, error) {
			return &launch.Machine{Architecture: "sm_90", Kernels: []launch.MachineKernel{{Entry: "blur", Cubin: []byte("1"), Waits: waiting}, {Entry: "sharpen", Cubin: []byte("2"), Waits: true}}}, nil
		}}
}

func loads(d *fakeDriver) (n int) {
	for _, c := range d.log {
		if c.f == cuModuleLoadDataEx {
			n++
		}
	}
	return n
}

func TestMachineCodeIsLoadedInsteadOfPTX(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	for _, waiting := range []bool{false, true} {
		d.log = nil
		code := both()
		code.Waiting = waiting
		m, err := p.Load(context.Background(), 0, code)
		require.NoError(t, err)
		require.Equal(t, 2, loads(d), "one for each kernel")
		require.Equal(t, "machine code for sm_90", m.(*module).Origin())
		require.NotEqual(t, m.(*module).holding("blur"), m.(*module).holding("sharpen"))
		k, err := m.Kernel("sharpen")
		require.NoError(t, err)
		require.True(t, k.Attributes().WaitsFirst)
		k, err = m.Kernel("blur")
		require.NoError(t, err)
		require.Equal(t, waiting, k.Attributes().WaitsFirst)
		d.failOn[cuModuleGetFunction] = codeNotFound
		_, err = m.Kernel("edges")
		require.ErrorContains(t, err, `the module has no kernel "edges"; it has blur, sharpen`)
		delete(d.failOn, cuModuleGetFunction)
		require.NoError(t, m.Close())
	}
	require.NoError(t, p.Close())
	d.clean(t)
}

func TestPTXIsLoadedWhereThereIsNoMachineCode(t *testing.T) {
	of := func(machine *launch.Machine, err error) *launch.Module {
		code := both()
		code.Machine = func(capability [2]int, _ bool) (*launch.Machine, error) {
			require.Equal(t, [2]int{9, 0}, capability)
			return machine, err
		}
		return code
	}
	for _, c := range []struct {
		code *launch.Module
		want string
	}{
		{of(nil, errors.New("it is Monday")), "PTX, because it is Monday"},
		{of(nil, nil), "PTX, because there is no machine code"},
		{of(&launch.Machine{}, nil), "PTX, because there is no machine code"},
	} {
		d := newFakeDriver(t)
		p := d.open(t)
		m, err := p.Load(context.Background(), 0, c.code)
		require.NoError(t, err)
		require.Equal(t, 1, loads(d))
		require.Equal(t, c.want, m.(*module).Origin())
		require.NoError(t, m.Close())
		require.NoError(t, p.Close())
		d.clean(t)
	}
}

func TestUsersForcePTX(t *testing.T) {
	t.Setenv("CUDA_FORCE_PTX_JIT", "1")
	d := newFakeDriver(t)
	p := d.open(t)
	m, err := p.Load(context.Background(), 0, both())
	require.NoError(t, err)
	require.Equal(t, "PTX, because CUDA_FORCE_PTX_JIT is 1", m.(*module).Origin())
	require.NoError(t, m.Close())
	require.NoError(t, p.Close())
	d.clean(t)
}

// If the driver refuses one of the kernels, those before it are unloaded and the PTX is loaded.
func TestDriverRefusesMachineCode(t *testing.T) {
	for nth := range 2 {
		d := newFakeDriver(t)
		p := d.open(t)
		require.NoError(t, p.Prepare(0))
		d.log = nil
		m, err := p.Load(context.Background(), 0, both())
		require.NoError(t, err)
		require.NoError(t, m.Close())
		var at []int // which calls load
		for k, c := range d.log {
			if c.f == cuModuleLoadDataEx {
				at = append(at, k+1)
			}
		}
		d.calls, d.failAt, d.failCode = 0, at[nth], codeNoBinary
		m, err = p.Load(context.Background(), 0, both())
		require.NoError(t, err)
		origin := m.(*module).Origin()
		require.Contains(t, origin, "PTX, because module both: cuModuleLoadDataEx: CUDA_ERROR_FAKE (209)")
		require.Contains(t, origin, "a cubin runs only on the architecture it was built for")
		require.NoError(t, m.Close())
		require.NoError(t, p.Close())
		d.clean(t)
	}
}

// Code that may wait does where launches can overlap, and is plain elsewhere.
func TestCodeThatMayWaitDoes(t *testing.T) {
	const text = ".version 6.0\n.target sm_52\n.address_size 64\n.visible .entry blur()\n{\nret;\n}\n"
	for _, c := range []struct {
		text    string
		missing string
		waits   bool
	}{
		{text, "", true},
		{text, "cuLaunchKernelEx", false},
		{strings.Replace(text, "64", "32", 1), "", false}, // whose form that waits is refused
	} {
		d := newFakeDriver(t)
		d.missing[c.missing] = true
		p := d.open(t)
		m, err := p.Load(context.Background(), 0, &launch.Module{Name: "map", Kind: launch.PTX, Code: []byte(c.text), MayWait: true})
		require.NoError(t, err)
		require.Equal(t, c.waits, m.(*module).Waits())
		k, err := m.Kernel("blur")
		require.NoError(t, err)
		require.Equal(t, c.waits, k.Attributes().WaitsFirst)
		require.NoError(t, m.Close())
		require.NoError(t, p.Close())
		d.clean(t)
	}
}
