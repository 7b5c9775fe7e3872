// The page of a recorded program in a browser: rows, moments and waits, keys, and names that try to be markup.

package pictures

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/picture"
	"github.com/dagrun/dagrun/planner/plan"
)

const recordedTest = `(async () => {
"use strict";
const out = {};
try {
  const $ = (id) => document.getElementById(id), canvas = $("timeline");
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const key = async (k) => { canvas.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true, cancelable: true})); await frame(); };
  await frame();
  const wide = (stream) => Math.max(0, ...canvas.drawn.filter((d) => (d.row.key[0] === "s") === stream).map((d) => d.w));
  const rows = new Set(canvas.drawn.map((d) => d.row.label));
  Object.assign(out, {first: document.querySelector("#summary").textContent, rows: [...rows], moments: wide(true), waits: wide(false), findings: $("findings").textContent, legend: $("legend").textContent,
    hidden: ["memory-section", "waits-section", "gaps-section", "choice", "replays"].filter((id) => !$(id).hidden)});
  await key("c");
  out.racy = $("node").textContent;
  out.label = canvas.getAttribute("aria-label");
  await key("ArrowDown");
  await key("ArrowUp");
  await key("ArrowRight");
  await key("End");
  out.last = $("node").textContent;
  for (let k = 0; k < 8; k++) await key("+");
  await key("Home");
  await frame();
  out.table = document.querySelectorAll("#rows > div").length;
  out.scripts = document.querySelectorAll("main script, main img, header script, header img").length;
  out.errors = window.pageErrors;
} catch (e) { out.errors = [String(e)]; }
const pre = document.createElement("pre");
pre.id = "selftest";
pre.textContent = JSON.stringify(out);
document.body.append(pre);
})();`

func recordedCalls() *picture.Calls {
	c := &picture.Calls{Title: `<script>pageErrors.push("ran")</script>`, Note: "Times of the host.", Findings: []picture.Finding{{Head: "verdict", Text: "1 race"}},
		Threads: []string{"thread 0 (python)", `thread 1 </script><img src=x onerror='pageErrors.push("ran")'>`}, Streams: []string{"the default stream", "stream 1"}}
	for k := range 3000 {
		call := picture.Call{Name: `<img src=x onerror='pageErrors.push("ran")'>`, Kind: "launch", Thread: k % 2, Stream: k / 2 % 2, BeganUS: float64(10 * k), Place: "a.py:7"}
		if k%100 == 99 {
			call = picture.Call{Name: "waits for a stream", Kind: "stream sync", Engine: plan.HostCopy, Thread: k % 2, Stream: -1, BeganUS: call.BeganUS, WaitedUS: 800}
		}
		c.Calls = append(c.Calls, call)
	}
	for k := 200; k < 2800; k += 200 {
		c.Waits = append(c.Waits, picture.CallPair{From: k, To: k + 3, Text: "the event recorded by"})
	}
	c.Races = []picture.CallPair{{From: 10, To: 12, Text: "RAW on 64 bytes"}}
	return c
}

func TestPageOfARecordedProgram(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, recordedCalls().WritePage(&page))
	var found struct {
		First, Findings, Legend, Racy, Label, Last string
		Rows, Hidden, Errors                       []string
		Moments, Waits                             float64
		Table, Scripts                             int
	}
	test(t, page.String(), recordedTest, &found, "1200,900")
	require.Empty(t, found.Errors)
	require.Zero(t, found.Scripts)
	require.Equal(t, "Times of the host.", found.First)
	require.Contains(t, found.Findings, "1 race")
	require.Len(t, found.Rows, 4)
	require.LessOrEqual(t, found.Moments, 3.0, "a stream has moments only")
	require.Greater(t, found.Waits, 10.0)
	require.Empty(t, found.Hidden, "sections for which a recording has nothing")
	require.Contains(t, found.Racy, "RAW on 64 bytes, and nothing orders it with")
	require.Contains(t, found.Racy, "a.py:7")
	require.Contains(t, found.Label, "race RAW on 64 bytes")
	require.Contains(t, found.Last, "at most 800 us")
	require.Greater(t, found.Table, 5)
	require.NotContains(t, found.Legend, "idle")
	screenshot(t, page.String(), "recorded", 1200, 900)
}
