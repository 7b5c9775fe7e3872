// Measures the page in a real browser: how long it takes to open, and to draw a frame while someone moves and zooms.

package pictures

import (
	"bytes"
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/picture"
)

// atOnce makes frames run at once, so that the time of an event includes that of its drawing.
const atOnce = `<script>requestAnimationFrame=(f)=>f(performance.now());</script>`

// moves zooms in, moves, and zooms out again, by one event at a time, and lets the browser paint each frame before the next.
const moves = `(() => {
const canvas = document.getElementById("timeline"), box = canvas.getBoundingClientRect(), pen = canvas.getContext("2d");
const opened = performance.now(), frames = {};
const event = (kind, more) => {
  const start = performance.now();
  canvas.dispatchEvent(new WheelEvent("wheel", {clientX: box.left + box.width / 2, clientY: box.top + 60, bubbles: true, cancelable: true, ...more}));
  pen.getImageData(0, 0, 1, 1);
  (frames[kind] = frames[kind] || []).push(performance.now() - start);
};
for (let k = 0; k < 60; k++) event("zoom", {ctrlKey: true, deltaY: -20});
for (let k = 0; k < 60; k++) event("move", {shiftKey: true, deltaY: k < 30 ? 40 : -40});
for (let k = 0; k < 60; k++) event("zoom", {ctrlKey: true, deltaY: 20});
for (let k = 0; k < 60; k++) event("whole", {ctrlKey: true, deltaY: k % 2 ? 20 : -20});
const pre = document.createElement("pre");
pre.id = "selftest";
pre.textContent = JSON.stringify({opened, frames});
document.body.append(pre);
})();`

// A page with 20,000 nodes and a measured replay. The metrics are milliseconds: until the page is open, and of the median and slowest frames.
func BenchmarkPageInABrowser(b *testing.B) {
	d := draw(b, "stencil", stencil(b, 50, 400), "list")
	var page bytes.Buffer
	require.NoError(b, d.schedule.WritePage(&page, picture.PageOptions{Measured: d.course(1)}))
	text := strings.Replace(page.String(), "<head>", "<head>"+atOnce, 1)
	at := strings.LastIndex(text, "</body>")
	file := filepath.Join(b.TempDir(), "page.html")
	require.NoError(b, os.WriteFile(file, []byte(text[:at]+"<script>"+moves+"</script>"+text[at:]), 0o600))
	var opened []float64
	frames := map[string][]float64{}
	for b.Loop() {
		dom := string(visitNow(b, file, "--window-size=1300,1000", "--dump-dom"))
		_, rest, ok := strings.Cut(dom, `<pre id="selftest">`)
		require.True(b, ok, "the script in the page did not end")
		result, _, _ := strings.Cut(rest, "</pre>")
		var got struct {
			Opened float64
			Frames map[string][]float64
		}
		require.NoError(b, json.Unmarshal([]byte(html.UnescapeString(result)), &got))
		opened = append(opened, got.Opened)
		for kind, all := range got.Frames {
			frames[kind] = append(frames[kind], all...)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(opened), "open-ms")
	for _, kind := range []string{"whole", "zoom", "move"} {
		b.ReportMetric(median(frames[kind]), kind+"-ms")
		b.ReportMetric(slices.Max(frames[kind]), kind+"-slowest-ms")
	}
	b.Logf("%d nodes, %d waits, %d bytes of page", d.graph.Len(), d.plan.Stats.Waits, page.Len())
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
