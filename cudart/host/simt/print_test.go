// Tests of what kernels print, against what C's printf makes of the same, and of failed assertions.

package simt_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

func TestPrintsLikeC(t *testing.T) {
	f64 := func(v float64) string { return fmt.Sprintf("0x%x", math.Float64bits(v)) }
	for _, c := range []struct {
		format string
		values string // what is stored, each as size:value
		want   string
		count  uint32 // of the arguments
	}{
		{"plain", "", "plain", 0},
		{"%d|%i|%u", "4:-5 4:7 4:0xffffffff", "-5|7|4294967295", 3},
		{"%ld|%lli|%lu|%zu|%jd|%td", "8:-5 8:7 8:0xffffffffffffffff 8:3 8:-4 8:5", "-5|7|18446744073709551615|3|-4|5", 6},
		{"%d %ld %d", "4:1 8:2 4:3", "1 2 3", 3}, // the second is aligned
		{"%hd", "4:12", "12", 1},
		{"%x|%X|%o|%#x|%lx", "4:255 4:255 4:8 4:255 8:0x123456789a", "ff|FF|10|0xff|123456789a", 5},
		{"%5d|%-5d|%05d|%+d|% d", "4:42 4:42 4:42 4:42 4:42", "   42|42   |00042|+42| 42", 5},
		{"%*d|%-*d", "4:5 4:42 4:5 4:42", "   42|42   ", 2},
		{"%.*f", "4:2 8:" + f64(1.2345), "1.23", 1},
		{"%f|%.1f|%8.2f|%F", "8:" + f64(1.5) + " 8:" + f64(2.25) + " 8:" + f64(-3.14159) + " 8:" + f64(1), "1.500000|2.2|   -3.14|1.000000", 4},
		{"%e|%.2E", "8:" + f64(12345.678) + " 8:" + f64(0.00012), "1.234568e+04|1.20E-04", 2},
		{"%g|%g|%g|%G|%.3g", "8:" + f64(123456789) + " 8:" + f64(100000) + " 8:" + f64(0.1) + " 8:" + f64(1e-10) + " 8:" + f64(2.0/3), "1.23457e+08|100000|0.1|1E-10|0.667", 5},
		{"%c%c", "4:72 4:0x169", "Hi", 2},
		{"%p", "8:0x7f00", "0x7f00", 1},
		{"100%%|%d%%", "4:5", "100%|5%", 1},
		{"%q|%d", "4:5", "%q|5", 2},
		{"at the end %", "", "at the end %", 0},
		{"at the end %5.l", "", "at the end %5.l", 0},
	} {
		var body strings.Builder
		body.WriteString(".local .align 8 .b8 room[64]; .reg .b64 %room; mov.u64 %room, room;\n")
		at := 0
		for _, one := range strings.Fields(c.values) {
			size := int(one[0] - '0')
			at = (at + size - 1) / size * size
			fmt.Fprintf(&body, "st.local.b%d [%%room+%d], %s;\n", 8*size, at, one[2:])
			at += size
		}
		body.WriteString(`cvta.local.u64 %rd2, %room; mov.u64 %rd3, format; cvta.global.u64 %rd3, %rd3;
			{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd3; st.param.b64 [a], %rd2; call.uni (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }` + put("%r1"))
		p := program(t, ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"+text("format", c.format)+entry(body.String()))
		printed := ""
		l := block(1)
		l.Print = func(text string) { printed += text }
		out, fault := run(t, p, l, 1)
		require.Nil(t, fault, c.format)
		require.Equal(t, c.want, printed, c.format)
		require.Equal(t, c.count, out[0], "%s: the number of arguments", c.format)
		l.Print = nil
		_, fault = run(t, p, l, 1)
		require.Nil(t, fault, "nobody wants to see it")
	}
}

func TestFailedAssertionsSayWhichAndWhere(t *testing.T) {
	p := program(t, ".extern .func __assertfail(.param .b64 what, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);\n"+
		text("what", "i < n")+text("file", "scan.cu")+entry(`
			setp.ne.u32 %p1, %me, 5; @%p1 bra OK;
			mov.u64 %rd1, what; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, file; cvta.global.u64 %rd2, %rd2;
			{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %rd1; st.param.b64 [b], %rd2; st.param.b32 [c], 17; st.param.b64 [d], %rd1; st.param.b64 [e], 1;
			  call.uni __assertfail, (a, b, c, d, e); }
			OK:`))
	_, fault := run(t, p, block(32), 1)
	require.NotNil(t, fault)
	require.Equal(t, simt.Trapped, fault.Kind)
	require.Contains(t, fault.Error(), `thread (5,0,0): the assertion "i < n" failed (scan.cu:17)`)
}
