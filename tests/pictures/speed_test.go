// Measures the page in a real browser: how long it takes to open, and to draw a frame while someone moves and zooms.

package pictures

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/picture"
)

// moves waits until the page has filled in what is below the window, then zooms in, moves, and zooms out again, by one event per frame, and
// sends what it has measured: when the page was drawn and when it was complete, from the navigation on, the times between frames, and what
// the page takes for a frame, the canvas included.
const moves = `(async () => {
const opened = performance.now(), frame = requestAnimationFrame.bind(window);
await new Promise((done) => frame(() => setTimeout(() => setTimeout(done))));
const complete = performance.now(), canvas = document.getElementById("timeline"), box = canvas.getBoundingClientRect(), pen = canvas.getContext("2d");
const next = () => new Promise((done) => frame(done)), between = {}, work = {};
let kind = "";
requestAnimationFrame = (f) => frame((t) => {
  const start = performance.now();
  f(t);
  pen.getImageData(0, 0, 1, 1);
  (work[kind] = work[kind] || []).push(performance.now() - start);
});
const event = async (name, more) => {
  kind = name;
  const start = performance.now();
  canvas.dispatchEvent(new WheelEvent("wheel", {clientX: box.left + box.width / 2, clientY: box.top + 60, bubbles: true, cancelable: true, ...more}));
  await next();
  (between[kind] = between[kind] || []).push(performance.now() - start);
};
await next();
for (let k = 0; k < 60; k++) await event("zoom", {ctrlKey: true, deltaY: -20});
for (let k = 0; k < 60; k++) await event("move", {shiftKey: true, deltaY: k < 30 ? 40 : -40});
for (let k = 0; k < 60; k++) await event("zoom", {ctrlKey: true, deltaY: 20});
for (let k = 0; k < 60; k++) await event("whole", {ctrlKey: true, deltaY: k % 2 ? 20 : -20});
await fetch("/result", {method: "POST", body: JSON.stringify({opened, complete, between, work})});
})();`

// first is a page that leads to the other when the browser has started and rests: its start is not the page's.
const first = `<!DOCTYPE html><title>wait</title><script>addEventListener("load", () => setTimeout(() => { location = "/page"; }, 1500));</script>`

// seen is what the script above sends.
type seen struct {
	Opened, Complete float64
	Between, Work    map[string][]float64
}

// watch opens a page from a server of its own, whose policy must not keep the script from sending its result.
func watch(b *testing.B, page string) seen {
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)
	page = policy.ReplaceAllString(page, "")
	at := strings.LastIndex(page, "</body>")
	page = page[:at] + "<script>" + moves + "</script>" + page[at:]
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	results := make(chan seen, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var got seen
			if json.NewDecoder(r.Body).Decode(&got) == nil {
				results <- got
			}
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		text := page
		if r.URL.Path == "/" {
			text = first
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	home, err := os.MkdirTemp(b.TempDir(), "browser")
	require.NoError(b, err)
	command := exec.CommandContext(ctx, browser(b), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
		"--user-data-dir="+home, "--force-device-scale-factor=1", "--window-size=1300,1000", "--remote-debugging-port=0", server.URL)
	require.NoError(b, command.Start())
	defer func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	}()
	select {
	case got := <-results:
		return got
	case <-ctx.Done():
		require.Fail(b, "the script in the page did not end")
		return seen{}
	}
}

// A page with 20,000 nodes and a measured replay. The metrics are milliseconds: until the page is drawn and until it is complete, what a
// frame takes (median and slowest), and the time between two frames (median), which is 16.7 at 60 frames per second.
func BenchmarkPageInABrowser(b *testing.B) {
	d := draw(b, "stencil", stencil(b, 50, 400), "list")
	var page bytes.Buffer
	require.NoError(b, d.schedule.WritePage(&page, picture.PageOptions{Measured: d.course(1)}))
	var opened, complete []float64
	work, between := map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		got := watch(b, page.String())
		opened = append(opened, got.Opened)
		complete = append(complete, got.Complete)
		for _, kind := range []string{"whole", "zoom", "move"} {
			work[kind] = append(work[kind], got.Work[kind]...)
			between[kind] = append(between[kind], got.Between[kind]...)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(opened), "open-ms")
	b.ReportMetric(slices.Min(opened), "open-least-ms")
	b.ReportMetric(slices.Max(opened), "open-most-ms")
	b.ReportMetric(median(complete), "complete-ms")
	for _, kind := range []string{"whole", "zoom", "move"} {
		b.ReportMetric(median(work[kind]), kind+"-ms")
		b.ReportMetric(slices.Max(work[kind]), kind+"-slowest-ms")
		b.ReportMetric(median(between[kind]), kind+"-between-ms")
	}
	b.Logf("%d nodes, %d waits, %d bytes of page", d.graph.Len(), d.plan.Stats.Waits, page.Len())
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
