// Tests of which form of a kernel a launch gets, by its shape.

package library

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

func TestFormsByShape(t *testing.T) {
	for _, c := range []struct {
		kernel  string
		types   string
		tiles   bool
		numbers map[string]int64
		entry   string
	}{
		{"gemm", "f32", false, map[string]int64{"m": 32, "n": 32, "k": 32}, "dagrun_gemm_f32"},
		{"gemm", "f32", false, map[string]int64{"m": 4096, "n": 4096, "k": 8}, "dagrun_gemm_large_f32"},
		{"gemm", "f16", false, map[string]int64{"m": 4096, "n": 16, "k": 8}, "dagrun_gemm_thin16_f16"},
		{"gemm", "f64", false, map[string]int64{"m": 4096, "n": 4096, "k": 8}, "dagrun_gemm_f64"},
		{"gemm", "f32", true, map[string]int64{"m": 40000, "n": 64, "k": 8}, "dagrun_gemm_ld_f32"},
		{"gemm", "f32", true, map[string]int64{"m": 40000, "n": 12, "k": 8}, "dagrun_gemm_ld_thin12_f32"},
		{"matmul", "i32 f32", false, map[string]int64{"m": 40000, "n": 17, "k": 8}, "dagrun_matmul_thin32_i32_f32"},
		{"matmul", "f32 f32", false, map[string]int64{"m": 40000, "n": 64, "k": 8}, "dagrun_matmul_thin64_f32_f32"},
		{"matmul", "f32 f32", false, map[string]int64{"m": 40000, "n": 64, "k": 8, "ta": 1}, "dagrun_matmul_f32_f32"},
		{"matmul_standardised", "f32 f32", false, map[string]int64{"m": 100, "n": 9, "k": 8}, "dagrun_matmul_standardised_thin12_f32_f32"},
		{"syrk", "f32", false, map[string]int64{"n": 2000, "k": 8}, "dagrun_syrk_large_f32"},
		{"syrk", "f32", true, map[string]int64{"n": 8, "k": 8}, "dagrun_syrk_ld_f32"},
		{"row_sum", "f32", false, map[string]int64{"rows": 100, "cols": 16}, "dagrun_row_sum_few_f32"},
		{"row_sum", "f32", false, map[string]int64{"rows": 100, "cols": 0}, "dagrun_row_sum_some_f32"},
		{"row_sum", "f64", false, map[string]int64{"rows": 16897, "cols": 128}, "dagrun_row_sum_to128_f64"},
		{"row_sum", "f64", false, map[string]int64{"rows": 16896, "cols": 128}, "dagrun_row_sum_warp_f64"},
		{"row_max", "f32", false, map[string]int64{"rows": 100, "cols": 2049}, "dagrun_row_max_f32"},
		{"row_max", "f32", false, map[string]int64{"rows": 100, "cols": 65537}, "dagrun_row_max_long_f32"},
		{"row_log_sum_exp", "f32", false, map[string]int64{"rows": 100, "cols": 65537}, "dagrun_row_log_sum_exp_f32"},
		{"add_bias", "f32", false, map[string]int64{"rows": 100, "cols": 17}, "dagrun_add_bias_f32"},
		{"softmax", "f32", false, map[string]int64{"rows": 100, "cols": 0}, "dagrun_softmax_few_f32"},
		{"softmax", "f32", false, map[string]int64{"rows": 100, "cols": 17}, "dagrun_softmax_to32_f32"},
		{"softmax", "f64", false, map[string]int64{"rows": 100, "cols": 4096}, "dagrun_softmax_to4096_f64"},
		{"softmax", "f64", false, map[string]int64{"rows": 100, "cols": 4097}, "dagrun_softmax_f64"},
		{"column_standardise", "f32 f32", false, map[string]int64{"rows": 100, "cols": 12}, "dagrun_column_standardise_by4_f32_f32"},
		{"column_sums", "i32", false, map[string]int64{"rows": 100, "cols": 10}, "dagrun_column_sums_by2_i32"},
		{"column_sums", "i32", false, map[string]int64{"rows": 100, "cols": 7}, "dagrun_column_sums_i32"},
	} {
		k := versionOf(t, c.kernel, c.types)
		if c.tiles {
			k = k.tiles
		}
		args := k.arguments(c.numbers)
		form := k.Form(args)
		assert.Equal(t, c.entry, form.Entry(), "%v", c.numbers)
		assert.Equal(t, k.Params(), form.Params()[:len(k.Params())])
		_, err := form.Describe(form.(*libraryKernel).withScratch(args))
		assert.NoError(t, err, c.entry)
	}
}

// versionOf finds a kernel by its types as its entry names them.
func versionOf(t *testing.T, name, types string) *libraryKernel {
	for _, k := range kernelTable().byName[name] {
		if k.types.suffix() == "_"+strings.ReplaceAll(types, " ", "_") {
			return k
		}
	}
	require.Fail(t, "no such version", "%s %s", name, types)
	return nil
}

// arguments gives each buffer memory of its own, and each number a value, 0 if it has none.
func (k *libraryKernel) arguments(numbers map[string]int64) []dag.Arg {
	args := make([]dag.Arg, len(k.params))
	for i, p := range k.params {
		args[i] = dag.Arg{IsBuffer: p.Buffer, Mode: p.Mode, DType: p.DType}
		if p.Buffer {
			args[i].Range = dag.Range{Buffer: dag.BufferID(i), Hi: 1 << 40}
		} else {
			args[i].Bits = uint64(numbers[p.Name])
		}
	}
	return args
}

// A form that is loaded may be launched again with other numbers.
func TestFormsRefuseWhatTheyCannotCompute(t *testing.T) {
	k := versionOf(t, "matmul", "f32 f32")
	form := k.Form(k.arguments(map[string]int64{"m": 100, "n": 10, "k": 8}))
	_, err := form.Describe(k.arguments(map[string]int64{"m": 70000, "n": 12, "k": 30}))
	require.NoError(t, err)
	_, err = form.Describe(k.arguments(map[string]int64{"m": 100, "n": 13, "k": 8}))
	require.EqualError(t, err, "argument n is 13, but this form of the kernel computes at most 12 columns")
	_, err = form.Describe(k.arguments(map[string]int64{"m": 100, "n": 10, "k": 8, "ta": 1}))
	require.EqualError(t, err, "argument ta is 1, but this form of the kernel computes only with 0")
}
