// Tests of matrix instructions: mma of what ldmatrix loads, wmma; and of conversions of small floats in both directions.

package simt_test

import (
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// half is a small whole number as a float16.
func half(n int) uint16 {
	b := math.Float32bits(float32(n))
	if n == 0 {
		return 0
	}
	return uint16(b>>31<<15 | (b>>23&0xff-112)<<10 | b>>13&0x3ff)
}

// A 16 x 16 matrix times a 16 x 8 one, both in row-major order: ldmatrix transposes the second.
func TestMatrixProduct(t *testing.T) {
	p := program(t, ".shared .align 16 .b8 a[512]; .shared .align 16 .b8 b[256];\n"+`
.visible .entry k(.param .u64 left, .param .u64 right, .param .u64 out) {
.reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<8>;
ld.param.u64 %rd1, [left]; ld.param.u64 %rd2, [right]; ld.param.u64 %rd3, [out]; mov.u32 %r1, %tid.x;
mul.wide.u32 %rd4, %r1, 16; add.u64 %rd5, %rd1, %rd4; shl.b32 %r2, %r1, 4; mov.u32 %r3, a; add.u32 %r4, %r3, %r2;
ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd5]; st.shared.v4.u32 [%r4], {%r5, %r6, %r7, %r8};
mul.wide.u32 %rd4, %r1, 8; add.u64 %rd5, %rd2, %rd4; shl.b32 %r2, %r1, 3; mov.u32 %r9, b; add.u32 %r4, %r9, %r2;
ld.global.v2.u32 {%r5, %r6}, [%rd5]; st.shared.v2.u32 [%r4], {%r5, %r6};
bar.warp.sync 0xffffffff;
and.b32 %r10, %r1, 15; shl.b32 %r10, %r10, 5; shr.u32 %r11, %r1, 4; shl.b32 %r11, %r11, 4; add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, %r3;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r12, %r13, %r14, %r15}, [%r10];
and.b32 %r10, %r1, 15; shl.b32 %r10, %r10, 4; add.u32 %r10, %r10, %r9;
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r16, %r17}, [%r10];
mov.f32 %f1, 0f00000000;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f4, %f5, %f6, %f7}, {%r12, %r13, %r14, %r15}, {%r16, %r17}, {%f1, %f1, %f1, %f1};
shr.u32 %r20, %r1, 2; and.b32 %r21, %r1, 3; shl.b32 %r20, %r20, 5; shl.b32 %r21, %r21, 3; add.u32 %r20, %r20, %r21; cvt.u64.u32 %rd6, %r20; add.u64 %rd6, %rd3, %rd6;
st.global.v2.f32 [%rd6], {%f4, %f5}; st.global.v2.f32 [%rd6+256], {%f6, %f7};
ret;
}
`)
	left, right, out := onHeap[uint16](256+64), onHeap[uint16](128+64), onHeap[float32](128+32)
	for i := range 256 {
		left[i] = half(i*7%11 - 5)
	}
	for i := range 128 {
		right[i] = half(i*5%13 - 6)
	}
	arg := func(p unsafe.Pointer, n int64) simt.Arg {
		return simt.Arg{Bits: uint64(uintptr(p)), Pointer: true, Bytes: n}
	}
	l := simt.Launch{Block: [3]uint32{32, 1, 1}, Check: simt.CheckFull,
		Args: []simt.Arg{arg(unsafe.Pointer(&left[0]), 512), arg(unsafe.Pointer(&right[0]), 256), arg(unsafe.Pointer(&out[0]), 512)}}
	fault := launch(t, p, "k", l)
	require.Nil(t, fault, "%v", fault)
	for i := range 16 {
		for j := range 8 {
			want := float32(0)
			for k := range 16 {
				want += float32((i*16+k)*7%11-5) * float32((k*8+j)*5%13-6)
			}
			require.Equal(t, want, out[i*8+j], "row %d column %d", i, j)
		}
	}
	runtime.KeepAlive([]any{left, right, out})
}

// Every 8-bit float survives the conversion to f16 and back.
func TestSmallFloatsThereAndBack(t *testing.T) {
	for _, format := range []string{"e4m3x2", "e5m2x2"} {
		p := program(t, entry(`
			mul.lo.u32 %r1, %me, 257; cvt.u16.u32 %h1, %r1; cvt.rn.f16x2.`+format+` %r2, %h1; cvt.rn.satfinite.`+format+`.f16x2 %h2, %r2;
			cvt.u32.u16 %r3, %h2;`+put("%r3")))
		out, fault := run(t, p, block(256), 256)
		require.Nil(t, fault, "%v", fault)
		for i, got := range out {
			low := i & 0x7f
			if format == "e4m3x2" && low == 0x7f || format == "e5m2x2" && low > 0x7c {
				continue // a NaN has several bit patterns
			}
			want := uint32(i * 257)
			if format == "e5m2x2" && low == 0x7c { // infinity becomes the largest number
				want -= 257
			}
			require.Equal(t, want, got, "%s %#x", format, i)
		}
	}
}

func TestVectorRegistersAndParts(t *testing.T) {
	p := program(t, entry(`
		.reg .v4.b32 %q; .reg .v2.b32 %s;
		mov.v4.b32 %q, {1, 2, 3, %me}; mov.v2.b32 %s, {%q.w, %q.z}; mov.b64 %rd1, %s; mov.b64 {%r1, %r2}, %rd1;
		shl.b32 %r1, %r1, 8; add.u32 %r1, %r1, %r2; add.u32 %r1, %q.x, %r1;`+put("%r1")))
	out, fault := run(t, p, block(64), 64)
	require.Nil(t, fault, "%v", fault)
	for i, got := range out {
		require.Equal(t, uint32(i<<8+3+1), got)
	}
}

func TestPartsOfWords(t *testing.T) {
	for _, c := range []struct {
		code string
		want uint32
	}{
		{"vadd.u32.u32.u32 %r3, %r1.b0, %r2.b1;", 0xf0 + 0x80},
		{"vadd.s32.s32.s32 %r3, %r1.b0, %r2.b1;", 0xffffff70},
		{"vadd.u32.u32.u32.sat %r3.b2, %r1.b0, %r2.b1, %r1;", 0x12ff56f0},
		{"vsub.s32.u32.u32.sat %r3, %r1.h0, %r2.h1;", 0xffffd7ef},
		{"vabsdiff.u32.u32.u32.add %r3, %r1.b3, %r2.b3, 5;", 0x7f - 0x12 + 5},
		{"vmin.s32.s32.s32 %r3, %r1.b0, %r2.b2;", 0xfffffff0},
		{"vmax.u32.u32.u32 %r3, %r1.b0, %r2.b2;", 0xf0},
		{"vshl.u32.u32.u32.wrap %r3, %r1, 33;", 0x2468ade0},
		{"vshr.u32.u32.u32.clamp %r3, %r1, 33;", 0},
		{"vset.u32.u32.gt %r3, %r1.b0, %r2.b2;", 1},
		{"vmad.u32.u32.u32.shr7 %r3, %r1.b0, %r2.b1, 256;", (0xf0*0x80 + 256) >> 7},
		{"vadd4.u32.u32.u32 %r3, %r1, %r2, 0;", 0x9135d6f1},
		{"vabsdiff4.u32.u32.u32.add %r3, %r1, %r2, 10;", 0x6d + 0x33 + 0x2a + 0xef + 10},
		{"vadd2.u32.u32.u32.sat %r3, %r1, %r2, 0;", 0x9135d6f1},
		{"cvt.pack.sat.u8.s32.b32 %r3, -5, 300, 0x1234;", 0x123400ff},
		{"set.gt.f16x2.f16x2 %r3, 0x3c004000, 0x40003c00;", 0x00003c00},
	} {
		p := program(t, entry("mov.u32 %r1, 0x123456f0; mov.u32 %r2, 0x7f018001;\n"+c.code+put("%r3")))
		out, fault := run(t, p, block(32), 32)
		require.Nil(t, fault, "%v", fault)
		require.Equal(t, c.want, out[7], "%s: %#x", c.code, out[7])
	}
}

// wholeMatrix is a matrix of small integers, by rows.
func wholeMatrix(rows, columns, seed int) []float64 {
	m := make([]float64, rows*columns)
	for i := range m {
		m[i] = float64((i*7+seed)%11 - 5)
	}
	return m
}

// wmmaType is how numbers of a type lie in memory and registers.
type wmmaType struct {
	name  string
	bytes int
	put   func(p unsafe.Pointer, v float64)
	get   func(p unsafe.Pointer) float64
	reg   string
}

var wmmaTypes = map[string]wmmaType{
	"f16":  {"f16", 2, func(p unsafe.Pointer, v float64) { *(*uint16)(p) = half(int(v)) }, func(p unsafe.Pointer) float64 { return float64(smallInteger(*(*uint16)(p))) }, "%r"},
	"bf16": {"bf16", 2, func(p unsafe.Pointer, v float64) { *(*uint16)(p) = uint16(math.Float32bits(float32(v)) >> 16) }, nil, "%r"},
	"tf32": {"tf32", 4, func(p unsafe.Pointer, v float64) { *(*float32)(p) = float32(v) }, nil, "%r"},
	"f32":  {"f32", 4, func(p unsafe.Pointer, v float64) { *(*float32)(p) = float32(v) }, func(p unsafe.Pointer) float64 { return float64(*(*float32)(p)) }, "%f"},
	"f64":  {"f64", 8, func(p unsafe.Pointer, v float64) { *(*float64)(p) = v }, func(p unsafe.Pointer) float64 { return *(*float64)(p) }, "%g"},
	"s8":   {"s8", 1, func(p unsafe.Pointer, v float64) { *(*int8)(p) = int8(v) }, nil, "%r"},
	"s32":  {"s32", 4, func(p unsafe.Pointer, v float64) { *(*int32)(p) = int32(v) }, func(p unsafe.Pointer) float64 { return float64(*(*int32)(p)) }, "%r"},
}

// smallInteger is the value of an f16 that is a whole number below 2048.
func smallInteger(v uint16) int {
	if v&0x7fff == 0 {
		return 0
	}
	n := int(v&0x3ff|0x400) << 5 >> (5 + 25 - int(v>>10&31))
	if v>>15 != 0 {
		return -n
	}
	return n
}

func TestProductsByWmma(t *testing.T) {
	for _, c := range []struct {
		m, n, k        int
		a, b           string
		c, d           string
		na, nb, nc, nd int // registers
		word           string
	}{
		{16, 16, 16, "f16", "f16", "f32", "f32", 8, 8, 8, 8, ".f32.f32"},
		{32, 8, 16, "f16", "f16", "f16", "f32", 8, 8, 4, 8, ".f32.f16"},
		{8, 32, 16, "f16", "f16", "f16", "f16", 8, 8, 4, 4, ".f16.f16"},
		{16, 16, 16, "bf16", "bf16", "f32", "f32", 4, 4, 8, 8, ".f32.bf16.bf16.f32"},
		{16, 16, 8, "tf32", "tf32", "f32", "f32", 4, 4, 8, 8, ".f32.tf32.tf32.f32"},
		{32, 8, 16, "s8", "s8", "s32", "s32", 4, 1, 8, 8, ".s32.s8.s8.s32"},
		{8, 8, 4, "f64", "f64", "f64", "f64", 1, 1, 2, 2, ".f64.f64.f64.f64"},
	} {
		for _, layout := range []string{"row", "col"} {
			shape := fmt.Sprintf("m%dn%dk%d", c.m, c.n, c.k)
			list := func(t string, first, n int) string {
				var all []string
				for i := range n {
					all = append(all, fmt.Sprintf("%s%d", wmmaTypes[t].reg, first+i))
				}
				return "{" + strings.Join(all, ", ") + "}"
			}
			other := map[string]string{"row": "col", "col": "row"}[layout]
			ld := func(l string, rows, columns int) int { // with two elements between
				if l == "row" {
					return columns + 2
				}
				return rows + 2
			}
			p := program(t, fmt.Sprintf(`.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{ .reg .b32 %%r<64>, %%ld; .reg .b64 %%rd<9>; .reg .f32 %%f<64>; .reg .f64 %%g<64>;
ld.param.u64 %%rd1, [a]; ld.param.u64 %%rd2, [b]; ld.param.u64 %%rd3, [c]; ld.param.u64 %%rd4, [d]; mov.u32 %%ld, %d;
wmma.load.a.sync.aligned.%s.%s.global.%s %s, [%%rd1], %%ld;
wmma.load.b.sync.aligned.%s.%s.%s %s, [%%rd2], %d;
wmma.load.c.sync.aligned.%s.%s.global.%s %s, [%%rd3], %d;
wmma.mma.sync.aligned.%s.%s.%s%s%s %s, %s, %s, %s;
wmma.store.d.sync.aligned.%s.%s.global.%s [%%rd4], %s, %d;
ret; }`, ld(layout, c.m, c.k), layout, shape, c.a, list(c.a, 0, c.na), other, shape, c.b, list(c.b, 10, c.nb), ld(other, c.k, c.n), layout, shape, c.c, list(c.c, 20, c.nc),
				ld(layout, c.m, c.n), layout, other, shape, map[bool]string{true: ".rn"}[c.a == "f64"], c.word, list(c.d, 30, c.nd), list(c.a, 0, c.na), list(c.b, 10, c.nb), list(c.c, 20, c.nc),
				other, shape, c.d, list(c.d, 30, c.nd), ld(other, c.m, c.n)))
			store := func(name, l string, rows, columns int, values []float64) ([]uint64, simt.Arg) {
				memory := onHeap[uint64](2048)
				for i := range rows * columns {
					row, column := i/columns, i%columns
					at := row*ld(l, rows, columns) + column
					if l == "col" {
						at = column*ld(l, rows, columns) + row
					}
					wmmaTypes[name].put(unsafe.Add(unsafe.Pointer(&memory[0]), at*wmmaTypes[name].bytes), values[i])
				}
				return memory, simt.Arg{Bits: uint64(uintptr(unsafe.Pointer(&memory[0]))), Pointer: true, Bytes: 8 * 2048}
			}
			left, right, added := wholeMatrix(c.m, c.k, 1), wholeMatrix(c.k, c.n, 2), wholeMatrix(c.m, c.n, 3)
			ma, aa := store(c.a, layout, c.m, c.k, left)
			mb, ab := store(c.b, other, c.k, c.n, right)
			mc, ac := store(c.c, layout, c.m, c.n, added)
			md, ad := store(c.d, other, c.m, c.n, added)
			fault := launch(t, p, "k", simt.Launch{Block: [3]uint32{32, 1, 1}, Check: simt.CheckFull, Args: []simt.Arg{aa, ab, ac, ad}})
			require.Nil(t, fault, "%v", fault)
			for i := range c.m * c.n {
				row, column := i/c.n, i%c.n
				want := added[i]
				for k := range c.k {
					want += left[row*c.k+k] * right[k*c.n+column]
				}
				at := row*ld(other, c.m, c.n) + column
				if other == "col" {
					at = column*ld(other, c.m, c.n) + row
				}
				require.Equal(t, want, wmmaTypes[c.d].get(unsafe.Add(unsafe.Pointer(&md[0]), at*wmmaTypes[c.d].bytes)), "%s.%s%s: row %d, column %d", shape, layout, c.word, row, column)
			}
			runtime.KeepAlive([]any{ma, mb, mc})
		}
	}
}

// Every element of every type lies in the fragments of mma.m16n8 as PTX draws them: a lane holds some in a row of A and in a column of B, four
// such lanes follow each other, and further registers hold the lower rows of A and the rest of the row.
func TestProductsOfEveryElement(t *testing.T) {
	integer := func(v int) uint32 { return uint32(v) }
	tiny := func(table ...uint32) func(v int) uint32 {
		return func(v int) uint32 { return table[max(v, -v)] | map[bool]uint32{true: 0x80}[v < 0] }
	}
	for _, c := range []struct {
		k                int
		a, b             string
		width            int // bits of an element
		encode           func(v int) uint32
		least, greatest  int
		floats           bool
		accumulate, word string
	}{
		{32, "s8", "s8", 8, integer, -128, 127, false, "s32", ""}, {32, "u8", "u8", 8, integer, 0, 255, false, "s32", ""}, {32, "u8", "s8", 8, integer, 0, 127, false, "s32", ""},
		{16, "s8", "s8", 8, integer, -128, 127, false, "s32", ""}, {64, "s4", "s4", 4, integer, -8, 7, false, "s32", ""}, {64, "u4", "u4", 4, integer, 0, 15, false, "s32", ""},
		{32, "s4", "s4", 4, integer, -8, 7, false, "s32", ".satfinite"},
		{16, "bf16", "bf16", 16, func(v int) uint32 { return math.Float32bits(float32(v)) >> 16 }, -20, 20, true, "f32", ""},
		{8, "bf16", "bf16", 16, func(v int) uint32 { return math.Float32bits(float32(v)) >> 16 }, -20, 20, true, "f32", ""},
		{8, "f16", "f16", 16, func(v int) uint32 { return uint32(half(v)) }, -20, 20, true, "f32", ""},
		{8, "f16", "f16", 16, func(v int) uint32 { return uint32(half(v)) }, -5, 5, true, "f16", ""},
		{16, "f16", "f16", 16, func(v int) uint32 { return uint32(half(v)) }, -5, 5, true, "f16", ""},
		{8, "tf32", "tf32", 32, func(v int) uint32 { return math.Float32bits(float32(v)) }, -20, 20, true, "f32", ""},
		{4, "tf32", "tf32", 32, func(v int) uint32 { return math.Float32bits(float32(v)) }, -20, 20, true, "f32", ""},
		{32, "e4m3", "e4m3", 8, tiny(0, 0x38, 0x40, 0x44, 0x48), -4, 4, true, "f32", ""}, {32, "e5m2", "e5m2", 8, tiny(0, 0x3c, 0x40, 0x42, 0x44), -4, 4, true, "f32", ""},
	} {
		each := 32 / c.width // elements of a register
		parts := c.k / (4 * each)
		value := func(seed, i int) int { return c.least + (i*7919+seed*104729)%(c.greatest-c.least+1) }
		left, right, added := func(row, k int) int { return value(1, row*c.k+k) }, func(k, column int) int { return value(2, k*8+column) }, func(row, column int) int { return row*8 + column - 60 }
		number := func(v int) uint32 {
			if c.floats {
				return math.Float32bits(float32(v))
			}
			return uint32(v)
		}
		const words = 4 + 2 + 4
		in := onHeap[uint32](32 * words)
		for lane := range 32 {
			pack := func(at func(i int) int) (register uint32) {
				for i := range each {
					register |= c.encode(at(i)) & uint32(1<<c.width-1) << (c.width * i)
				}
				return register
			}
			for r := range 2 * parts {
				in[lane*words+r] = pack(func(i int) int { return left(lane/4+r%2*8, r/2*4*each+lane%4*each+i) })
			}
			for r := range parts {
				in[lane*words+4+r] = pack(func(i int) int { return right(r*4*each+lane%4*each+i, lane/4) })
			}
			for i := range 4 {
				if v := added(lane/4+i/2*8, lane%4*2+i%2); c.accumulate == "f16" {
					in[lane*words+6+i/2] |= uint32(half(v)) << (16 * (i % 2))
				} else {
					in[lane*words+6+i] = number(v)
				}
			}
		}
		list := func(first, n int) string {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf("%%r%d", first+i))
			}
			return "{" + strings.Join(all, ", ") + "}"
		}
		sums := map[string]int{"s32": 4, "f32": 4, "f16": 2}[c.accumulate] // registers of the accumulators
		loads := ""
		for i := range words {
			loads += fmt.Sprintf("ld.global.u32 %%r%d, [%%rd1+%d]; ", 10+i, 4*i)
		}
		code := ".visible .entry k(.param .u64 in, .param .u64 out)\n{ .reg .b32 %r<40>; .reg .b64 %rd<9>;\nld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, " + fmt.Sprint(4*words) +
			", %rd1; mad.wide.u32 %rd2, %r1, 16, %rd2; " + loads + fmt.Sprintf("\nmma.sync.aligned.m16n8k%d.row.col%s.%s.%s.%s.%[3]s %[6]s, %s, %s, %s;\n", c.k, c.word, c.accumulate, c.a, c.b, list(30, sums), list(10, 2*parts), list(14, parts), list(16, sums)) +
			"st.global.v4.u32 [%rd2], {%r30, %r31, %r32, %r33}; ret; }\n"
		out := onHeap[uint32](32 * 4)
		arg := func(p unsafe.Pointer, n int64) simt.Arg {
			return simt.Arg{Bits: uint64(uintptr(p)), Pointer: true, Bytes: n}
		}
		fault := launch(t, program(t, code), "k", simt.Launch{Block: [3]uint32{32, 1, 1}, Args: []simt.Arg{arg(unsafe.Pointer(&in[0]), 4*32*words), arg(unsafe.Pointer(&out[0]), 512)}})
		require.Nil(t, fault, "%v", fault)
		for lane := range 32 {
			for i := range 4 {
				row, column := lane/4+i/2*8, lane%4*2+i%2
				want := added(row, column)
				for k := range c.k {
					want += left(row, k) * right(k, column)
				}
				got, wanted := out[4*lane+i], number(want)
				if c.accumulate == "f16" {
					got, wanted = out[4*lane+i/2]>>(16*(i%2))&0xffff, uint32(half(want))
				}
				require.Equal(t, wanted, got, "k%d of %s and %s: row %d, column %d", c.k, c.a, c.b, row, column)
			}
		}
		runtime.KeepAlive(in)
	}
}

// Products of single bits count the bits in which a row and a column differ, or those that both have.
func TestProductsOfBits(t *testing.T) {
	for operation, count := range map[string]func(a, b uint32) int{
		"xor": func(a, b uint32) int { return bits.OnesCount32(a ^ b) }, "and": func(a, b uint32) int { return bits.OnesCount32(a & b) },
	} {
		p := program(t, entry("mul.lo.u32 %r1, %me, 0x9e3779b9; xor.b32 %r2, %r1, 0x5bd1e995; mul.lo.u32 %r2, %r2, 0x85ebca6b; neg.s32 %r3, %me; add.u32 %r4, %me, 100;"+
			"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32."+operation+".popc {%r5, %r6}, {%r1}, {%r2}, {%r3, %r4};\nmul.wide.u32 %rd1, %me, 8; add.u64 %rd1, %out, %rd1; st.global.v2.u32 [%rd1], {%r5, %r6};"))
		out, fault := run(t, p, block(32), 64)
		require.Nil(t, fault)
		left := func(lane int) uint32 { return uint32(lane) * 0x9e3779b9 }
		right := func(lane int) uint32 { return (left(lane) ^ 0x5bd1e995) * 0x85ebca6b }
		for lane := range 32 {
			for i, want := range []int{-lane, lane + 100} {
				row, column := lane/4, lane%4*2+i
				for k := range 4 { // 32 bits each
					want += count(left(4*row+k), right(4*column+k))
				}
				require.EqualValues(t, want, int32(out[2*lane+i]), "%s: row %d, column %d", operation, row, column)
			}
		}
	}
}

// The fragments of mma.m8n8k4 of f16 as PTX draws them: quads 0 to 3 of the lower half with those of the upper one.
func TestProductsByQuads(t *testing.T) {
	for _, layouts := range [][2]string{{"row", "col"}, {"row", "row"}, {"col", "row"}, {"col", "col"}} {
		for _, accumulate := range []string{"f32", "f16"} {
			sums, added := "{%f20, %f21, %f22, %f23, %f24, %f25, %f26, %f27}", "{%f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17}"
			if accumulate == "f16" {
				sums, added = "{%f20, %f21, %f22, %f23}", "{%f10, %f11, %f12, %f13}"
			}
			p := program(t, `.visible .entry k(.param .u64 in, .param .u64 out)
{ .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .b32 %f<40>;
ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 16, %rd1; mad.wide.u32 %rd2, %r1, 32, %rd2;
ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1]; ld.global.v4.b32 {%f10, %f11, %f12, %f13}, [%rd2]; ld.global.v4.b32 {%f14, %f15, %f16, %f17}, [%rd2+16];
mma.sync.aligned.m8n8k4.`+layouts[0]+"."+layouts[1]+"."+accumulate+".f16.f16."+accumulate+" "+sums+", {%r2, %r3}, {%r4, %r5}, "+added+`;
st.global.v4.b32 [%rd2], {%f20, %f21, %f22, %f23}; st.global.v4.b32 [%rd2+16], {%f24, %f25, %f26, %f27};
ret; }`)
			in, out := onHeap[uint16](32*8), onHeap[uint32](32*8)
			var left, right [4][8][8]float32 // by rows
			for lane := range 32 {
				quad, upper := lane%16/4, lane/16*4
				for i := range 4 {
					a, b := (lane*5+i*3)%9-4, (lane*3+i*7)%11-5
					in[lane*8+i], in[lane*8+4+i] = half(a), half(b)
					if layouts[0] == "row" {
						left[quad][lane%4+upper][i] = float32(a)
					} else {
						left[quad][i+upper][lane%4] = float32(a)
					}
					if layouts[1] == "col" {
						right[quad][i][lane%4+upper] = float32(b)
					} else {
						right[quad][lane%4][i+upper] = float32(b)
					}
				}
				for i := range 8 {
					if accumulate == "f16" {
						out[lane*8+i/2] |= uint32(half(lane-10*i)) << (16 * (i % 2))
					} else {
						out[lane*8+i] = math.Float32bits(float32(lane - 10*i))
					}
				}
			}
			arg := func(p unsafe.Pointer, n int64) simt.Arg {
				return simt.Arg{Bits: uint64(uintptr(p)), Pointer: true, Bytes: n}
			}
			fault := launch(t, p, "k", simt.Launch{Block: [3]uint32{32, 1, 1}, Args: []simt.Arg{arg(unsafe.Pointer(&in[0]), 512), arg(unsafe.Pointer(&out[0]), 1024)}})
			require.Nil(t, fault, "%v", fault)
			for lane := range 32 {
				for i := range 8 {
					row, column := lane&1+i&2+lane/16*4, i&4+lane&2+i&1
					if accumulate == "f16" { // a row each
						row, column = lane%4+lane/16*4, i
					}
					want := float32(lane - 10*i)
					for k := range 4 {
						want += left[lane%16/4][row][k] * right[lane%16/4][k][column]
					}
					got, wanted := out[lane*8+i], math.Float32bits(want)
					if accumulate == "f16" {
						got, wanted = out[lane*8+i/2]>>(16*(i%2))&0xffff, uint32(half(int(want)))
					}
					require.Equal(t, wanted, got, "%v: lane %d, element %d of %s", layouts, lane, i, accumulate)
				}
			}
			runtime.KeepAlive(in)
		}
	}
}

// The lower 13 bits of a tf32 do not count.
func TestLowBitsOfTF32(t *testing.T) {
	var results [2][]uint32
	for k, low := range []string{"0", "0x1fff"} {
		p := program(t, entry(`cvt.rn.f32.u32 %f9, %me; mov.b32 %r1, %f9; or.b32 %r1, %r1, `+low+`; mov.b32 %r9, %f9;
			mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r1}, {%r1}, {%f9,%f9,%f9,%f9}; mov.b32 %r2, %f1;`+put("%r2")))
		out, fault := run(t, p, block(32), 32)
		require.Nil(t, fault, "%v", fault)
		results[k] = out
	}
	require.Equal(t, results[0], results[1])
	require.NotZero(t, results[0][9])
}

// Matrices of four and of single bits are 16 bytes a row of A and a column of B.
func TestProductsOfSmallElementsByWmma(t *testing.T) {
	for _, c := range []struct {
		k        int
		t, word  string
		multiply func(a, b uint64) int32 // of one byte
	}{
		{32, "s4", "wmma.mma.sync.aligned", func(a, b uint64) int32 {
			low := func(v uint64) int32 { return int32(v<<28) >> 28 }
			return low(a)*low(b) + low(a>>4)*low(b>>4)
		}},
		{32, "u4", "wmma.mma.sync.aligned", func(a, b uint64) int32 { return int32(a&15*(b&15) + a>>4*(b>>4)) }},
		{128, "b1", "wmma.mma.xor.popc.sync.aligned", func(a, b uint64) int32 { return int32(bits.OnesCount64(a ^ b)) }},
		{128, "b1", "wmma.mma.and.popc.sync.aligned", func(a, b uint64) int32 { return int32(bits.OnesCount64(a & b)) }},
	} {
		shape := fmt.Sprintf("m8n8k%d", c.k)
		p := program(t, fmt.Sprintf(`.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d)
{ .reg .b32 %%r<9>; .reg .b64 %%rd<9>;
ld.param.u64 %%rd1, [a]; ld.param.u64 %%rd2, [b]; ld.param.u64 %%rd4, [d];
wmma.load.a.sync.aligned.row.%[1]s.global.%[2]s {%%r0}, [%%rd1], %[3]d;
wmma.load.b.sync.aligned.col.%[1]s.global.%[2]s {%%r1}, [%%rd2];
wmma.load.c.sync.aligned.row.%[1]s.global.s32 {%%r2, %%r3}, [%%rd4];
%[4]s.row.col.%[1]s.s32.%[2]s.%[2]s.s32 {%%r4, %%r5}, {%%r0}, {%%r1}, {%%r2, %%r3};
wmma.store.d.sync.aligned.row.%[1]s.global.s32 [%%rd4], {%%r4, %%r5}, 8;
ret; }`, shape, c.t, c.k, c.word))
		left, right, out := onHeap[byte](128), onHeap[byte](128), onHeap[int32](64)
		for i := range 128 {
			left[i], right[i] = byte(i*73+11), byte(i*151+89)
		}
		for i := range out {
			out[i] = int32(i - 30)
		}
		arg := func(p unsafe.Pointer, n int64) simt.Arg {
			return simt.Arg{Bits: uint64(uintptr(p)), Pointer: true, Bytes: n}
		}
		fault := launch(t, p, "k", simt.Launch{Block: [3]uint32{32, 1, 1}, Check: simt.CheckFull,
			Args: []simt.Arg{arg(unsafe.Pointer(&left[0]), 128), arg(unsafe.Pointer(&right[0]), 128), arg(unsafe.Pointer(&out[0]), 256)}})
		require.Nil(t, fault, "%s of %s: %v", c.word, c.t, fault)
		for i, got := range out {
			want := int32(i - 30)
			for k := range 16 {
				want += c.multiply(uint64(left[i/8*16+k]), uint64(right[i%8*16+k]))
			}
			require.Equal(t, want, got, "%s of %s: row %d, column %d", c.word, c.t, i/8, i%8)
		}
	}
}
