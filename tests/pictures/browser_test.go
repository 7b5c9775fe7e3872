// Tests of the pictures in a real browser: Chromium lays them out, scripts press keys and click, and report the result. Needs Chromium.

// Package pictures tests what people look at: SVG sheets and timeline pages, drawn by a browser.
package pictures

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/analysis"
	"github.com/dagrun/dagrun/planner/picture"
	"github.com/dagrun/dagrun/planner/plan"
)

//go:embed selftest.js
var selfTest string

//go:embed svgtest.js
var svgTest string

// browser finds Chromium. DAGRUN_BROWSER names it and makes it required, as .ci/run does.
func browser(t testing.TB) string {
	if name := os.Getenv("DAGRUN_BROWSER"); name != "" {
		path, err := exec.LookPath(name)
		require.NoError(t, err, "DAGRUN_BROWSER is set, so the browser must be there")
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("NOT TESTED: pictures in a browser. Install one (Debian: apt-get install chromium) or set DAGRUN_BROWSER to its command.")
	return ""
}

// visit opens a file with a virtual clock, which ends when the page is done, and returns what Chromium prints.
func visit(t testing.TB, file string, arguments ...string) []byte {
	t.Helper()
	return visitNow(t, file, append([]string{"--virtual-time-budget=20000"}, arguments...)...)
}

// visitNow opens a file with the real clock: what Chromium prints is the page as it is when it has loaded.
func visitNow(t testing.TB, file string, arguments ...string) []byte {
	t.Helper()
	arguments = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
		"--user-data-dir=" + t.TempDir(), "--force-device-scale-factor=1"}, arguments...)
	command := exec.CommandContext(t.Context(), browser(t), append(arguments, "file://"+file)...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	require.NoError(t, err, "%s", complaint.String())
	return out
}

// catch collects a page's errors from the start. Frames become timers: a browser without a screen draws none while its clock is a
// virtual one, which it must be for a page to be done at a known time.
const catch = `<script>requestAnimationFrame=(f)=>setTimeout(()=>f(performance.now()),1);window.pageErrors=[];addEventListener("error",(e)=>window.pageErrors.push(e.message));addEventListener("securitypolicyviolation",(e)=>window.pageErrors.push("policy: "+e.violatedDirective));</script>`

// test writes a page with a test's script in it, opens it, and reads what the script found.
func test(t *testing.T, page, script string, result any, size string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(page, "<head>"))
	page = strings.Replace(page, "<head>", "<head>"+catch, 1)
	at := strings.LastIndex(page, "</body>")
	page = page[:at] + "<script>" + script + "</script>" + page[at:]
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	dom := string(visit(t, file, "--window-size="+size, "--dump-dom"))
	_, rest, ok := strings.Cut(dom, `<pre id="selftest">`)
	require.True(t, ok, "the script in the page did not end")
	text, _, _ := strings.Cut(rest, "</pre>")
	require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(text)), result))
}

// screenshot draws a page, checks that it is not blank, and saves it in the folder that DAGRUN_PICTURES names.
func screenshot(t *testing.T, page, name string, width, height int, arguments ...string) {
	t.Helper()
	folder := os.Getenv("DAGRUN_PICTURES")
	if folder == "" {
		folder = t.TempDir()
	}
	file := filepath.Join(t.TempDir(), name+".html")
	require.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	out := filepath.Join(folder, name+".png")
	visit(t, file, append(arguments, fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot="+out)...)
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	image, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, width, image.Bounds().Dx())
	colors := map[[3]uint32]int{}
	for y := 0; y < image.Bounds().Dy(); y += 2 {
		for x := 0; x < width; x += 2 {
			r, g, b, _ := image.At(x, y).RGBA()
			colors[[3]uint32{r >> 8, g >> 8, b >> 8}]++
		}
	}
	require.Greater(t, len(colors), 20, "%s is nearly blank", name)
}

// drawing is one plan of one pipeline.
type drawing struct {
	name     string
	graph    *dag.Graph
	plan     *planner.Plan
	timeline *plan.Timeline
	schedule *picture.Schedule
}

func draw(t testing.TB, name string, g *dag.Graph, strategy string) *drawing {
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: strategy})
	require.NoError(t, err)
	timeline, err := planner.Simulate(g, plan, planner.H200(), nil)
	require.NoError(t, err)
	schedule, err := picture.New(g, plan, timeline)
	require.NoError(t, err)
	return &drawing{name, g, plan, timeline, schedule}
}

// course makes up a measurement: the prediction, with starts and durations increased by amounts that depend on node and replay.
func (d *drawing) course(replays int) *picture.Course {
	c := &picture.Course{Mode: "streams", Source: "events", Device: "a made-up device", PlainUS: d.timeline.MakespanUS, TracedUS: 1.2 * d.timeline.MakespanUS}
	for r := range replays {
		spans := make([]picture.Span, len(d.timeline.Nodes))
		for i := range spans {
			s := &d.timeline.Nodes[i]
			late := 1.05 + 0.05*float64(r)
			spans[i] = picture.Span{Start: s.Start * late, End: s.Start*late + (s.End-s.Start)*(0.8+0.02*float64((i+r)%10))}
		}
		c.Replays = append(c.Replays, picture.Replay{Spans: spans, SubmitUS: 5})
	}
	return c
}

func (d *drawing) page(t *testing.T, replays int) string {
	var b bytes.Buffer
	var course *picture.Course
	if replays > 0 {
		course = d.course(replays)
	}
	require.NoError(t, d.schedule.WritePage(&b, picture.PageOptions{Measured: course}))
	return b.String()
}

// chunks is the pipeline of that name in k chunks: 3k nodes.
func chunks(t *testing.T, k int) *dag.Graph {
	source, err := os.ReadFile("../../pipelines/chunks.yaml")
	require.NoError(t, err)
	g, err := file.Parse(source, file.Options{Name: "chunks.yaml", Library: kernels.Library(), Params: []file.Override{{Name: "k", Value: strconv.Itoa(k)}}})
	require.NoError(t, err)
	return g
}

// stencil is steps of nodes, each of which needs its neighbours of the step before.
func stencil(t testing.TB, wide, steps int) *dag.Graph {
	b := dag.New("stencil")
	var before []dag.BufferID
	for s := range steps {
		var row []dag.BufferID
		for i := range wide {
			row = append(row, b.Device(fmt.Sprintf("d%d_%d", s, i), dag.F32, 1024))
			accesses := []dag.Access{b.Out(row[i])}
			for k := max(0, i-1); s > 0 && k < min(wide, i+2); k++ {
				accesses = append(accesses, b.In(before[k]))
			}
			b.Cost(b.Task(fmt.Sprintf("step.%d.%d", s, i), accesses...), float64(10+(s*wide+i)*7%13))
		}
		before = row
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// hostile is chains whose names try to be markup.
func hostile(t *testing.T, chains int) *dag.Graph {
	names := []string{`<script>pageErrors.push("ran")</script>`, `</script><img src=x onerror='pageErrors.push("ran")'>`, `"quoted" & 'single' <b>`, "🚀🧑‍🚀 שלום עולם",
		"\u202egnirts desrever", `]]> --> <!-- ${x} {{data}} %s \`, strings.Repeat("very long ", 22)}
	b := dag.New(names[0] + names[1])
	for i := range chains {
		h, d := b.Host(fmt.Sprintf("h%d", i), dag.F32, 1<<14), b.Device(names[i%len(names)]+strconv.Itoa(i), dag.F32, 1<<14)
		b.Copy(names[i%len(names)]+"u"+strconv.Itoa(i), b.Whole(d), b.Whole(h))
		b.Cost(b.Task(names[(i+1)%len(names)]+"w"+strconv.Itoa(i), b.InOut(d)), float64(2+i%9))
		b.Copy(names[(i+2)%len(names)]+"d"+strconv.Itoa(i), b.Whole(h), b.Whole(d))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func drawings(t *testing.T) []*drawing {
	var all []*drawing
	for _, k := range []int{2, 17, 167} {
		all = append(all, draw(t, fmt.Sprintf("chunks-%d", 3*k), chunks(t, k), "list"))
	}
	for _, size := range [][2]int{{3, 2}, {8, 6}, {10, 50}} {
		all = append(all, draw(t, fmt.Sprintf("stencil-%d", size[0]*size[1]), stencil(t, size[0], size[1]), "list"))
	}
	for _, n := range []int{2, 17, 167} {
		all = append(all, draw(t, fmt.Sprintf("hostile-%d", 3*n), hostile(t, n), "roundrobin"))
	}
	return all
}

func TestSVGInABrowser(t *testing.T) {
	browser(t)
	type found struct {
		Pictures []struct {
			Nodes, Arrows, Rows, Titles, Scripts int
			Outside, Overlaps, Disorder, Beyond  []string
		}
		Labels int
		Error  string
		Errors []string
	}
	var page strings.Builder
	page.WriteString("<!DOCTYPE html><html><head><meta charset=utf-8></head><body>")
	type want struct {
		name        string
		nodes, rows int
		grouped     bool
	}
	var wanted []want
	add := func(name string, o picture.SheetOptions, nodes, rows int, fill func(*picture.Sheet)) {
		sheet := picture.NewSheet(o)
		fill(sheet)
		require.NoError(t, sheet.WriteSVG(&page))
		wanted = append(wanted, want{name, nodes, rows, nodes > 80})
	}
	for _, d := range drawings(t) {
		n, rows := d.graph.Len(), len(d.plan.Streams)
		add(d.name, picture.SheetOptions{}, n, rows, func(s *picture.Sheet) { s.AddSchedule(d.schedule) })
		add(d.name+" by level", picture.SheetOptions{Axis: picture.Level}, n, rows, func(s *picture.Sheet) { s.AddSchedule(d.schedule) })
		add(d.name+" as declared", picture.SheetOptions{}, n, 0, func(s *picture.Sheet) { s.AddGraph(d.graph) })
	}
	devices := overDevices(t, 3)
	add("three devices", picture.SheetOptions{}, devices.graph.Len(), len(devices.plan.Streams), func(s *picture.Sheet) { s.AddSchedule(devices.schedule) })
	page.WriteString("</body></html>")
	var got found
	test(t, page.String(), svgTest, &got, "1600,1000")
	require.Empty(t, got.Error)
	require.Empty(t, got.Errors)
	require.Len(t, got.Pictures, len(wanted))
	for k, p := range got.Pictures {
		w := wanted[k]
		if w.grouped {
			assert.LessOrEqual(t, p.Nodes, w.nodes, w.name)
			assert.GreaterOrEqual(t, p.Nodes, w.rows, w.name)
		} else {
			assert.Equal(t, w.nodes, p.Nodes, w.name)
		}
		assert.Equal(t, p.Nodes, p.Titles, w.name)
		assert.Equal(t, w.rows, p.Rows, w.name)
		assert.Zero(t, p.Scripts, w.name)
		assert.Empty(t, p.Outside, "%s: text leaves its box (left, right, top, bottom)", w.name)
		assert.Empty(t, p.Overlaps, "%s: boxes overlap", w.name)
		assert.Empty(t, p.Disorder, "%s: boxes of a stream are not in order", w.name)
		assert.Empty(t, p.Beyond, "%s: text leaves the picture", w.name)
	}
	require.Positive(t, got.Labels)
}

type moment struct {
	From, To         float64
	Selected, Replay int
	Want             int
	At               float64
}

func (m moment) span() float64 { return m.To - m.From }

type pageFound struct {
	Error                                                                     string
	Errors                                                                    []string
	Nodes, Drawn, Overlaps, Disorder, Outside, Rows, RowCount, Gaps, WantGaps int
	CanvasWidth, PageWidth, WindowWidth, Memory, Reach, Nameless              int
	Scripts, Images, EndBy, TableSelected                                     int
	Title, Heading, Summary, Label, NodeText, ReplayText, Tip, WantTip        string
	Descending, MemoryText                                                    string
	Headers, Sorted                                                           []string
	Path                                                                      []int
	ByTime, ByName, TableActive, Found, Themed                                bool
	Waits, WantWaits                                                          int
	Findings, Choices, Restored, Swapped, SwappedHeads                        []string
	WantFindings, FirstSection                                                string
	Single                                                                    []any
	WheelScrolls, TipGone, Matches, FoundNext, FoundWraps                     bool
	Contrast                                                                  map[string]float64
	Start, ZoomedIn, Home, First, Second, Down, End, Enter, Escape            moment
	Critical, BeforePan, Panned, ReplayBefore, ReplayNext                     moment
	Clicked, Wheel, Dragged                                                   moment
}

// measured is the timeline of the last replay of the made-up measurement, or the prediction if there is none.
func (d *drawing) measured(t *testing.T, replays int) *plan.Timeline {
	if replays == 0 {
		return d.timeline
	}
	r := &analysis.Replay{SubmitUS: 5}
	for _, span := range d.course(replays).Replays[replays-1].Spans {
		r.Start, r.End = append(r.Start, span.Start), append(r.End, span.End)
	}
	timeline, err := analysis.Measured(d.graph, d.plan, nil, r)
	require.NoError(t, err)
	return timeline
}

func checkPage(t *testing.T, d *drawing, replays int) {
	var got pageFound
	test(t, d.page(t, replays), selfTest, &got, "1300,1000")
	checkFound(t, d, replays, &got)
}

func checkFound(t *testing.T, d *drawing, replays int, found *pageFound) {
	got := *found
	require.Empty(t, got.Error)
	require.Empty(t, got.Errors)
	assert.Equal(t, d.graph.Len(), got.Nodes)
	assert.Positive(t, got.Drawn)
	assert.Zero(t, got.Overlaps, "spans overlap")
	assert.Zero(t, got.Disorder)
	assert.Zero(t, got.Outside)
	assert.LessOrEqual(t, got.PageWidth, got.WindowWidth, "the page is wider than its window")
	assert.Contains(t, got.Summary, fmt.Sprintf("%d nodes on %d stream", d.graph.Len(), len(d.plan.Streams)))
	assert.Equal(t, 4, got.Scripts, "the data, the page's script and two of this test")
	assert.Zero(t, got.Images)

	assert.Less(t, got.ZoomedIn.span(), got.Start.span(), "+ zooms in")
	assert.InDelta(t, got.Start.span(), got.Home.span(), 1e-3, "Home shows all")
	assert.NotEqual(t, -1, got.First.Selected, "an arrow selects")
	assert.NotEqual(t, got.First.Selected, got.Second.Selected)
	if len(d.plan.Streams) > 1 {
		assert.NotEqual(t, d.timeline.Nodes[got.Second.Selected].Stream, d.timeline.Nodes[got.Down.Selected].Stream, "down goes to another stream")
	}
	path := d.measured(t, replays).CriticalPath()
	for k := range path {
		assert.Equal(t, int(path[k]), got.Path[k])
	}
	assert.Equal(t, int(path[len(path)-1]), got.End.Selected, "End goes to the node that ends last")
	assert.Contains(t, got.NodeText, "reason for its start")
	assert.Contains(t, got.NodeText, "critical path")
	assert.Contains(t, got.Label, "predicted ")
	if got.EndBy >= 0 {
		assert.Equal(t, got.EndBy, got.Enter.Selected, "Enter goes to what held the node")
	}
	assert.Equal(t, -1, got.Escape.Selected)
	assert.Equal(t, int(path[0]), got.Critical.Selected)
	assert.Greater(t, got.Panned.From, got.BeforePan.From, "Shift and an arrow move")
	assert.InDelta(t, got.BeforePan.span(), got.Panned.span(), 1e-3)
	if replays > 0 {
		assert.Equal(t, max(0, replays-2), got.ReplayBefore.Replay)
		assert.Equal(t, fmt.Sprintf("replay %d of %d", max(1, replays-1), replays), got.ReplayText)
		assert.Equal(t, min(replays-1, got.ReplayBefore.Replay+1), got.ReplayNext.Replay)
		assert.Contains(t, got.NodeText, "measured")
		assert.Contains(t, got.Headers, "measured us")
		assert.Equal(t, []string{"measured start ▲:ascending"}, got.Sorted)
	} else {
		assert.NotContains(t, got.NodeText, "measured")
		assert.Equal(t, []string{"predicted start ▲:ascending"}, got.Sorted)
	}

	assert.Equal(t, got.Clicked.Want, got.Clicked.Selected, "a click selects what it hits")
	assert.Contains(t, got.Tip, got.WantTip, "hovering names the node")
	assert.True(t, got.WheelScrolls, "the wheel alone is left to the browser")
	assert.True(t, got.TipGone, "the tooltip goes away")
	assert.Less(t, got.Wheel.span(), got.Home.span(), "Ctrl and the wheel zoom")
	assert.InDelta(t, got.Wheel.At, (got.Wheel.From+got.Wheel.To)/2, got.Home.span()/50, "where the pointer is")
	assert.Greater(t, got.Dragged.From, got.Wheel.From, "dragging to the left goes on in time")

	assert.Equal(t, d.graph.Len()+1, got.RowCount)
	assert.Positive(t, got.Rows)
	assert.LessOrEqual(t, got.Rows, 40, "only rows in view are in the document")
	assert.True(t, got.ByTime)
	assert.True(t, got.ByName)
	assert.Equal(t, "descending", got.Descending)
	assert.Equal(t, 1, got.TableSelected)
	assert.True(t, got.TableActive)
	assert.True(t, got.Found)
	assert.True(t, got.Matches, "matches are counted")
	assert.True(t, got.FoundNext, "Enter goes to the next match")
	assert.True(t, got.FoundWraps, "the match before the first is the last")
	assert.Equal(t, got.WantGaps, got.Gaps)
	assert.Equal(t, got.WantWaits, got.Waits, "the waits that held are listed")
	assert.Equal(t, "What binds the schedule", got.FirstSection)
	require.NotEmpty(t, got.Findings)
	assert.Contains(t, got.Findings[0], "bound by ")
	assert.Contains(t, got.Findings[0], got.WantFindings)
	if replays > 0 {
		last := fmt.Sprintf("measured, replay %d of %d", replays, replays)
		assert.Len(t, got.Choices, replays+1)
		assert.Contains(t, got.Findings[0], "measured, replay ")
		assert.Contains(t, got.Findings[1], "predicted: ")
		assert.Equal(t, []any{[]any{"predicted"}, "", 1.0}, got.Single)
		assert.Equal(t, []string{last, "predicted"}, got.Swapped)
		assert.Equal(t, []string{last, "predicted"}, got.Restored)
		assert.Contains(t, got.SwappedHeads, "predicted us")
	} else {
		assert.Equal(t, []string{"predicted"}, got.Choices)
	}
	assert.Positive(t, got.Memory)
	assert.Contains(t, got.MemoryText, "Device 0: at most ")
	assert.Greater(t, got.Reach, 10)
	assert.Zero(t, got.Nameless, "something that the Tab key comes to has no name")
	for pair, ratio := range got.Contrast {
		assert.GreaterOrEqual(t, ratio, 4.5, "contrast of %s", pair)
	}
	assert.True(t, got.Themed)
}

func TestPageInABrowser(t *testing.T) {
	browser(t)
	all := drawings(t)
	for n, k := range []int{0, 4, 8} { // 6 nodes, 48 and 501
		d := all[k]
		t.Run(d.name, func(t *testing.T) { checkPage(t, d, n+1) })
	}
	t.Run("predicted only", func(t *testing.T) { checkPage(t, all[1], 0) })
	large := draw(t, "stencil-3360", stencil(t, 42, 80), "list")
	t.Run("10080 spans", func(t *testing.T) { checkPage(t, large, 2) })
}

// Two plans on one page: the serial one above, the one with streams below, measured.
func TestPageThatComparesInABrowser(t *testing.T) {
	browser(t)
	d, serial := draw(t, "chunks", chunks(t, 6), "list"), draw(t, "chunks", chunks(t, 6), "serial")
	var page bytes.Buffer
	require.NoError(t, d.schedule.WritePage(&page, picture.PageOptions{Measured: d.course(2),
		Against: &picture.Other{Name: "serial.json", Schedule: serial.schedule, Measured: serial.course(1)}}))
	var got struct {
		Error                                   string
		Errors, Choices, Heads, Rows, Summary   []string
		UpperStreams, LowerStreams, Selected    int
		Findings, NodeText, ReplayText, Waits   string
		Overlaps                                int
		PageWidth, WindowWidth, ReplaysOfSerial int
	}
	test(t, page.String(), `(async () => {
const out = {}, $ = (id) => document.getElementById(id), canvas = $("timeline"), data = canvas.data;
const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
const pick = async (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event("change")); await frame(); };
try {
  await frame();
  out.choices = [...$("upper").options].map((o) => o.textContent);
  out.heads = [...document.querySelectorAll("#head [role=columnheader]")].map((h) => h.textContent);
  out.rows = [...new Set(canvas.drawn.map((d) => d.row.course.title))].sort();
  out.upperStreams = new Set(canvas.drawn.filter((d) => !d.row.below && d.row.key[0] === "s").map((d) => d.row.key)).size;
  out.lowerStreams = new Set(canvas.drawn.filter((d) => d.row.below && d.row.key[0] === "s").map((d) => d.row.key)).size;
  out.summary = [...document.querySelectorAll("#summary span")].map((e) => e.textContent);
  out.findings = $("findings").textContent;
  out.replayText = $("replay").textContent;
  out.waits = $("waits-text").textContent;
  canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "End", bubbles: true, cancelable: true}));
  await frame();
  out.selected = +canvas.dataset.selected;
  out.nodeText = $("node").textContent;
  await pick("lower", data.courses.length - 1);
  out.replaysOfSerial = $("replay").textContent === "replay 1 of 1" ? 1 : 0;
  let overlaps = 0;
  const last = new Map();
  for (const d of canvas.drawn) { const before = last.get(d.row); if (before && before.x + before.w > d.x + 0.51) overlaps++; last.set(d.row, d); }
  out.overlaps = overlaps;
  out.pageWidth = document.documentElement.scrollWidth;
  out.windowWidth = innerWidth;
} catch (e) { out.error = String(e && e.stack || e); }
out.errors = window.pageErrors;
const pre = document.createElement("pre");
pre.id = "selftest";
pre.textContent = JSON.stringify(out);
document.body.append(pre);
})();`, &got, "1300,1000")
	require.Empty(t, got.Error)
	require.Empty(t, got.Errors)
	require.Equal(t, []string{"predicted", "measured, replay 1 of 2", "measured, replay 2 of 2", "serial.json: predicted", "serial.json: measured, replay 1 of 1"}, got.Choices)
	require.Equal(t, []string{"measured, replay 2 of 2", "serial.json: measured, replay 1 of 1"}, got.Rows)
	require.Equal(t, []string{"node", "kind", "stream", "below", "engine", "serial.json: measured start", "serial.json: measured us", "measured start ▲", "measured us", "difference us", "waited for"}, got.Heads)
	require.Equal(t, 1, got.UpperStreams)
	require.Equal(t, len(d.plan.Streams), got.LowerStreams)
	require.Len(t, got.Summary, 2)
	require.Contains(t, got.Summary[1], "serial.json: 18 nodes on 1 stream, 0 waits; strategy serial; predicted ")
	require.Contains(t, got.Findings, "measured, replay 2 of 2: ")
	require.Contains(t, got.Findings, "serial.json: measured, replay 1 of 1: ")
	require.Equal(t, "replay 2 of 2", got.ReplayText)
	path := d.measured(t, 2).CriticalPath()
	require.Equal(t, int(path[len(path)-1]), got.Selected)
	require.Contains(t, got.NodeText, "stream 0; below: stream ")
	require.Equal(t, 1, got.ReplaysOfSerial)
	require.Zero(t, got.Overlaps)
	require.LessOrEqual(t, got.PageWidth, got.WindowWidth)
}

func TestScreenshots(t *testing.T) {
	browser(t)
	all := drawings(t)
	for _, k := range []int{0, 4, 8} {
		d := all[k]
		screenshot(t, d.page(t, 3), "page-"+d.name, 1300, 1500)
		var svg bytes.Buffer
		sheet := picture.NewSheet(picture.SheetOptions{})
		sheet.AddGraph(d.graph)
		sheet.AddSchedule(d.schedule)
		require.NoError(t, sheet.WriteSVG(&svg))
		screenshot(t, "<!DOCTYPE html><html><body style='margin:0'>"+svg.String()+"</body></html>", "svg-"+d.name, 1600, 1400)
	}
	screenshot(t, all[4].page(t, 3), "page-dark", 1300, 1500, "--blink-settings=preferredColorScheme=0")
}
