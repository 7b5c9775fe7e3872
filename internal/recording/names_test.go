// Tests of what a mangled name tells, and of how a place is named.

package recording_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

func TestConstParameters(t *testing.T) {
	for _, c := range []struct {
		name       string
		parameters int
		want       []bool
	}{
		{"add", 2, nil},
		{"_Z3addPKfPf", 2, []bool{true, false}},
		{"_Z3addPKfPfi", 3, []bool{true, false, false}},
		{"_Z3addPKfPf", 1, []bool{true}},
		{"_Z3addiPKd", 2, []bool{false, true}},
		{"_Z3addPVKf", 1, []bool{true}},
		{"_Z3addPKU10__restrictf", 1, []bool{true}},
		{"_Z3addPK6float4PKf", 2, nil}, // a type of its own: from there on, nothing is known
		{"_Z3addPKfPK6float4PKf", 3, []bool{true}},
		{"_ZN1a3addEPKf", 1, nil},
		{"_Z3addPKfS0_", 2, []bool{true}},
		{"_Z99add", 1, nil},
		{"_Z3addPK", 1, []bool{}},
		{"_Z3addKf", 1, []bool{false}},
	} {
		got := recording.ConstParameters(c.name, c.parameters)
		if len(c.want) == 0 {
			require.Empty(t, got, c.name)
			continue
		}
		require.Equal(t, c.want, got, c.name)
	}
}

func TestPlainName(t *testing.T) {
	for mangled, want := range map[string]string{
		"add":                                 "add",
		"_Z3addPKfPf":                         "add",
		"_ZN2at6native6reduceIfEEvPf":         "reduce",
		"_ZN2at6native12_GLOBAL__N_16reduceE": "reduce",
		"_ZNK2at3addEv":                       "add",
		"_Z":                                  "_Z",
		"_Z9999999999999add":                  "_Z9999999999999add",
		"copy":                                "copy",
		"_Z10add_floatsv":                     "add_floats",
		"_Z9add_float":                        "add_float",
		"_Z4add":                              "_Z4add",
	} {
		require.Equal(t, want, recording.PlainName(mangled), mangled)
	}
}

func TestPlaceText(t *testing.T) {
	library := recording.Frame{File: "/usr/lib/torch/functional.py", Line: 9, Package: true, Python: true}
	user := recording.Frame{File: "/home/me/seed.py", Line: 4, Python: true}
	caller := recording.Frame{File: "/home/me/main.py", Line: 1, Python: true}
	machine := recording.Frame{File: "/opt/app/bin/solve", Offset: 0x1234}
	text := func(frames ...recording.Frame) string {
		return (&recording.Process{Places: map[uint64][]recording.Frame{1: frames}}).PlaceText(1)
	}
	require.Empty(t, (&recording.Process{}).PlaceText(1))
	require.Equal(t, "seed.py:4", text(library, user, caller))
	require.Equal(t, "functional.py:9", text(library))
	require.Equal(t, "solve+0x1234", text(machine))
	require.Equal(t, "main.py:1", text(machine, caller), "a line says more than an address")
}
