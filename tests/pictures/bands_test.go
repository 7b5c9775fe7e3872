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

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/picture"
)

// spread is the pipeline of that name over several devices.
func spread(t *testing.T, devices int) *drawing {
	source, err := os.ReadFile("../../pipelines/spread.yaml")
	require.NoError(t, err)
	g, err := dag.Parse(source, dag.Options{Name: "spread.yaml", Library: kernels.Library()})
	require.NoError(t, err)
	s, err := planner.SpreadGraph(context.Background(), g, planner.Options{Devices: devices})
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
	d := spread(t, 2)
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
