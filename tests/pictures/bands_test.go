// Pages and sheets of several devices and ranks in a browser: the rows of each are a band with a title.

package pictures

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner/picture"
	"github.com/dagrun/dagrun/planner/spread"
)

// overDevices draws pipelines/spread.yaml over several devices.
func overDevices(t *testing.T, devices int) *drawing {
	source, err := os.ReadFile("../../pipelines/spread.yaml")
	require.NoError(t, err)
	g, err := file.Parse(source, file.Options{Name: "spread.yaml", Library: kernels.Library()})
	require.NoError(t, err)
	s, err := spread.New(context.Background(), g, spread.Options{Devices: devices})
	require.NoError(t, err)
	return draw(t, fmt.Sprintf("spread-%d", devices), s.Graph, "list")
}

// bandTest writes down the bands of a page, and where the arrow keys go from the first stream.
const bandTest = `(async () => {
const out = {}, $ = (id) => document.getElementById(id), canvas = $("timeline"), data = canvas.data;
const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
const key = async (k) => { canvas.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true, cancelable: true})); await frame(); };
try {
  await frame();
  out.bands = canvas.bands.map((b) => b.name + ": " + b.rows.join(", "));
  out.apart = canvas.bands.every((b, k, all) => !k || all[k - 1].bottom <= b.top);
  await key("ArrowRight");
  const plan = data.plans[0], seen = [];
  for (let k = 0; k < plan.streams.length; k++) { seen.push(plan.streams[plan.stream[+canvas.dataset.selected]]); await key("ArrowDown"); }
  out.keys = seen;
  out.idle = [...document.querySelectorAll("#gaps tbody tr")].map((tr) => tr.cells[0].textContent);
  out.pageWidth = document.documentElement.scrollWidth;
  out.windowWidth = innerWidth;
} catch (e) { out.error = String(e && e.stack || e); }
out.errors = window.pageErrors;
const pre = document.createElement("pre");
pre.id = "selftest";
pre.textContent = JSON.stringify(out);
document.body.append(pre);
})();`

type bandsFound struct {
	Error                     string
	Errors, Bands, Keys, Idle []string
	Apart                     bool
	PageWidth, WindowWidth    int
}

// wantBands lists the streams of each band, each band's engines after them.
func wantBands(d *drawing) (bands, order []string) {
	busy, _ := d.timeline.Engines(0)
	for _, b := range d.plan.Bands() {
		text := b.Title() + ": "
		for _, s := range b.Streams {
			text += fmt.Sprintf("stream %d, ", s)
			order = append(order, fmt.Sprintf("stream %d, %s", s, b.Title()))
		}
		var engines []string
		for _, e := range busy {
			if e.Device == b.Device {
				engines = append(engines, "engine "+e.Engine.String())
			}
		}
		bands = append(bands, text+strings.Join(engines, ", "))
	}
	return bands, order
}

func TestBandsOfDevicesInABrowser(t *testing.T) {
	browser(t)
	d := overDevices(t, 2)
	bands, order := wantBands(d)
	var got bandsFound
	test(t, d.page(t, 2), bandTest, &got, "1300,1000")
	require.Empty(t, got.Error)
	require.Empty(t, got.Errors)
	require.Equal(t, bands, got.Bands)
	require.True(t, got.Apart)
	require.Equal(t, order, got.Keys, "the arrow keys go from band to band")
	require.Contains(t, strings.Join(got.Idle, "; "), "compute, device 1")
	require.LessOrEqual(t, got.PageWidth, got.WindowWidth)
	checkPage(t, d, 2)
}

func TestBandsOfRanksInABrowser(t *testing.T) {
	browser(t)
	d := draw(t, "chunks", chunks(t, 2), "list")
	var page bytes.Buffer
	require.NoError(t, picture.WriteRanksPage(&page, []picture.Rank{{Name: "rank 0", Schedule: d.schedule}, {Name: "rank 1", Schedule: d.schedule}}))
	var got bandsFound
	test(t, page.String(), bandTest, &got, "1300,1000")
	require.Empty(t, got.Error)
	require.Empty(t, got.Errors)
	streams := ""
	for k := range d.plan.Streams {
		streams += fmt.Sprintf("stream %d, ", k)
	}
	require.Equal(t, []string{"rank 0: " + streams + "engine compute, engine h2d, engine d2h", "rank 1: " + streams + "engine compute, engine h2d, engine d2h"}, got.Bands)
	require.True(t, got.Apart)
	require.Equal(t, "rank 1, stream 0", got.Keys[len(d.plan.Streams)])
}

// rankTest scrolls to each band, points at a node of the last, zooms, and goes to the replay before.
const rankTest = `(async () => {
const out = {}, $ = (id) => document.getElementById(id), canvas = $("timeline"), data = canvas.data;
const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
try {
  await frame();
  out.summary = [...document.querySelectorAll("#summary details > *")].map((e) => e.textContent);
  out.heads = [...document.querySelectorAll("#findings > div > dl dt")].map((e) => e.textContent);
  out.folded = [...document.querySelectorAll("#findings details dt")].map((e) => e.textContent);
  out.courses = [$("upper").selectedOptions[0].textContent, $("lower").selectedOptions[0].textContent];
  out.seen = [];
  for (const band of canvas.bands) {
    $("scroller").scrollTop = band.top - 30;
    await frame();
    out.seen.push([...new Set(canvas.drawn.map((d) => data.unit + " " + data.nodes.device[d.node]))].includes(band.name));
  }
  const box = canvas.getBoundingClientRect(), last = canvas.drawn.filter((d) => data.nodes.device[d.node] === canvas.bands.length - 1 && d.y > 30 && d.y < canvas.clientHeight - 30).sort((a, b) => b.w - a.w)[0];
  const at = {clientX: box.left + Math.max(190, last.x + last.w / 2), clientY: box.top + last.y + last.h / 2, bubbles: true, cancelable: true, pointerId: 1};
  for (let k = 0; k < 20 && $("tip").hidden; k++) {
    canvas.dispatchEvent(new PointerEvent("pointermove", at));
    await frame();
  }
  out.tip = $("tip").textContent;
  out.pointed = data.nodes.name[last.node];
  const span = () => +canvas.dataset.to - +canvas.dataset.from, before = span();
  canvas.dispatchEvent(new WheelEvent("wheel", {...at, ctrlKey: true, deltaY: -100}));
  await frame();
  out.zoomed = span() < before;
  out.replay = [$("replay").textContent];
  $("replay-before").click();
  await frame();
  out.replay.push($("replay").textContent);
} catch (e) { out.error = String(e && e.stack || e); }
out.errors = window.pageErrors;
const pre = document.createElement("pre");
pre.id = "selftest";
pre.textContent = JSON.stringify(out);
document.body.append(pre);
})();`

// The page of a run shows each rank, and folds what would push the timeline out of sight: what the ranks before the last are bound by.
func TestPageOfMeasuredRanksInABrowser(t *testing.T) {
	browser(t)
	d := draw(t, "chunks", chunks(t, 4), "list")
	var ranks []picture.Rank
	for k := range 8 {
		ranks = append(ranks, picture.Rank{Name: fmt.Sprintf("rank %d", k), Schedule: d.schedule, Measured: d.course(2), Began: []float64{float64(10 * (k % 6)), 500}})
	}
	var page bytes.Buffer
	require.NoError(t, picture.WriteRanksPage(&page, ranks))
	var got struct {
		Error, Tip, Pointed                             string
		Errors, Summary, Heads, Folded, Courses, Replay []string
		Seen                                            []bool
		Zoomed                                          bool
	}
	test(t, page.String(), rankTest, &got, "1300,1000")
	require.Empty(t, got.Error)
	require.Empty(t, got.Errors)
	require.Equal(t, []bool{true, true, true, true, true, true, true, true}, got.Seen)
	require.Len(t, got.Summary, 9)
	require.Equal(t, "8 ranks", got.Summary[0])
	require.True(t, strings.HasPrefix(got.Summary[8], "rank 7: 12 nodes on "), got.Summary[8])
	require.Equal(t, []string{"measured, replay 2 of 2", "nothing"}, got.Courses)
	require.True(t, strings.HasPrefix(got.Heads[0], "rank 0: bound by"), got.Heads[0])
	require.Len(t, got.Folded, 7*len(got.Heads))
	require.Contains(t, got.Tip, got.Pointed)
	require.Contains(t, got.Tip, "rank 7")
	require.True(t, got.Zoomed)
	require.Equal(t, []string{"replay 2 of 2", "replay 1 of 2"}, got.Replay)
	screenshot(t, page.String(), "ranks", 1300, 1000)
}
