// Tests of the DOT forms: golden files, names of all kinds, and syntax, checked by our own checker and, where it is installed, by
// Graphviz. Does not judge the layout.

package planner

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

func planDOT(tb require.TestingT, g *dag.Graph, p *Plan) string {
	var b bytes.Buffer
	require.NoError(tb, p.WriteDOT(&b, g))
	return b.String()
}

func fullDOT(tb require.TestingT, g *dag.Graph, p *Plan) string {
	var b bytes.Buffer
	require.NoError(tb, p.WriteDOTWithDependencies(&b, g))
	return b.String()
}

func graphDOT(tb require.TestingT, g *dag.Graph) string {
	var b bytes.Buffer
	require.NoError(tb, plan.WriteGraphDOT(&b, g))
	return b.String()
}

// saxpyPlan is the plan of the documentation.
func saxpyPlan(tb testing.TB, g *dag.Graph) *Plan {
	p := plantest.ByHand(tb, g, "0 0 1 1 1 1", "launch up_x, record 0", "launch up_y, wait 0, launch saxpy, launch down")
	p.GraphHash = g.Hash()
	p.Strategy, p.Requested, p.Machine = "list", "auto", "h200"
	fork, join := len(p.Fork()), len(p.Join())
	p.Stats = plan.Stats{Nodes: 4, Edges: len(g.Edges()), Streams: 2, Records: 1, Waits: 1, Events: 1, ForkRecords: 1 + join, ForkWaits: fork + join}
	plantest.PlaceApart(g, p)
	require.NoError(tb, model.Predict(g, p, H200(), nil, 8))
	require.NoError(tb, Verify(g, p))
	return p
}

func TestDOTGolden(t *testing.T) {
	g := saxpyGraph(t)
	golden(t, "testdata/saxpy.plan.dot", planDOT(t, g, saxpyPlan(t, g)))
	golden(t, "testdata/saxpy.full.dot", fullDOT(t, g, saxpyPlan(t, g)))
	golden(t, "testdata/saxpy.graph.dot", graphDOT(t, g))
}

// A renderer must show names unchanged.
func TestDOTShowsNamesAsTheyAre(t *testing.T) {
	names := []string{`say "hi"`, `back\slash`, `ends in \`, `\N\G\l\n`, "<b>bold</b>", "a &amp; b", "&lt;", "Tom & Jerry", "日本語", "🚀 launch", "naïve", "{a|b}", "a;b", "->", "--",
		"subgraph", "/* x */", "#define", "100%", "'", "`", "\u202e abc"}
	b := dag.New(`"<&\`)
	for _, name := range names {
		buffer := b.Device("buffer "+name, dag.U8, 8)
		b.Task(name, b.Out(buffer))
		b.Task(name+" reader", b.In(buffer))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := planned(t, g, Options{Strategy: "roundrobin", Streams: 2, Machine: Unit()})
	for _, text := range []string{fullDOT(t, g, p), graphDOT(t, g)} {
		labels, err := checkDOT(text)
		require.NoError(t, err)
		for _, name := range names {
			require.Contains(t, labels, name+"\ntask")
			require.Contains(t, labels, "RAW buffer "+name)
		}
		dot, err := exec.LookPath("dot")
		if errors.Is(err, exec.ErrNotFound) {
			t.Logf("NOT ALL TESTED: %s (without Graphviz, only the checker above reads the file)", t.Name())
			continue
		}
		require.NoError(t, err)
		command := exec.Command(dot, "-Tsvg")
		command.Stdin = strings.NewReader(text)
		var complaints bytes.Buffer
		command.Stderr = &complaints
		svg, err := command.Output()
		require.NoError(t, err, complaints.String())
		assert.NotContains(t, complaints.String(), "syntax")
		shown := svgTexts(t, svg)
		for _, name := range names {
			assert.Contains(t, shown, squeeze(name))
			assert.Contains(t, shown, squeeze("RAW buffer "+name))
		}
	}
}

func squeeze(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\u00a0", " ")), " ")
}

// svgTexts returns what each text of an SVG shows.
func svgTexts(t *testing.T, svg []byte) map[string]bool {
	texts := map[string]bool{}
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	decoder.Strict = true
	decoder.Entity = map[string]string{"nbsp": "\u00a0"}
	inside := false
	var text strings.Builder
	for {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local == "text"
			text.Reset()
		case xml.CharData:
			if inside {
				text.Write(token)
			}
		case xml.EndElement:
			if inside {
				texts[squeeze(text.String())] = true
			}
			inside = false
		}
	}
	require.NotEmpty(t, texts)
	return texts
}

func TestDOTOfRandomPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.Mixed(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 40).Draw(t, "nodes"))
		p := planned(t, g, Options{Strategy: "list", Streams: rapid.IntRange(1, 4).Draw(t, "streams"), Machine: H200()})
		text := fullDOT(t, g, p)
		require.Equal(t, text, fullDOT(t, g, p))
		_, err := checkDOT(text)
		require.NoError(t, err)
		require.Equal(t, p.Stats.Waits, strings.Count(text, "style=dashed"))
		plain := planDOT(t, g, p)
		_, err = checkDOT(plain)
		require.NoError(t, err)
		require.Equal(t, len(g.Edges()), strings.Count(text, "->")-strings.Count(plain, "->"), "without being asked, it draws no dependencies")
		require.Equal(t, p.Stats.Waits, strings.Count(plain, "style=dashed"))
		_, err = checkDOT(graphDOT(t, g))
		require.NoError(t, err)
	})
}

func TestDOTRefusesMalformedPlans(t *testing.T) {
	g := saxpyGraph(t)
	p := &Plan{Events: 1, Streams: []plan.Stream{{Ops: []plan.Op{{Kind: plan.Wait, Node: 0, Event: 0}}}}, Order: []int32{0}}
	require.EqualError(t, p.WriteDOT(&bytes.Buffer{}, g), "malformed plan: stream 0, op 0 waits for event 0 before it is recorded")
	p.Order = []int32{3}
	require.EqualError(t, p.WriteDOT(&bytes.Buffer{}, g), "malformed plan: the submission order has more ops of stream 3 than the stream has")
	failing := errors.New("disk full")
	require.ErrorIs(t, plan.WriteGraphDOT(failer{failing}, g), failing)
}

func TestDOTCheckerRefuses(t *testing.T) {
	for _, bad := range []string{"", "graph", "digraph {", `digraph { a [label="x] }`, "digraph { a -> }", "digraph { a -- b }", "digraph { a [b=] }", "digraph {} x", "digraph { a-b }",
		`digraph { "a" "b" -> ; }`, "digraph { é& }"} {
		_, err := checkDOT(bad)
		require.Error(t, err, bad)
	}
	labels, err := checkDOT(`digraph "x" { graph [a=1, b="c\"d"]; subgraph cluster_0 { n1 [label="x\\y\nz &amp; é"]; } n1 -> n2 -> n3 [label=-1.5]; k=v }`)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"x\\y\nz & é": true, "-1.5": true}, labels)
}

// checkDOT parses DOT by its published grammar (directed, no ports, no HTML strings) and returns its labels as they are shown.
func checkDOT(text string) (map[string]bool, error) {
	c := &dotChecker{rest: text, labels: map[string]bool{}}
	c.next()
	c.word("digraph")
	if c.kind == 'i' {
		c.next()
	}
	c.block()
	if c.err == nil && c.kind != 0 {
		c.fail("the end")
	}
	return c.labels, c.err
}

// dotChecker holds one token: kind is 'i' for an id, '>' for an arrow, 0 for the end, otherwise the character itself.
type dotChecker struct {
	rest   string
	kind   byte
	token  string
	labels map[string]bool
	err    error
}

func (c *dotChecker) fail(want string) {
	if c.err == nil {
		c.err = fmt.Errorf("expected %s, found %q before %.40q", want, c.token, c.rest)
	}
	c.kind, c.rest = 0, ""
}

func (c *dotChecker) next() {
	c.rest = strings.TrimLeft(c.rest, " \t\r\n")
	if c.rest == "" || c.err != nil {
		c.kind, c.token = 0, ""
		return
	}
	end := 1
	switch first := c.rest[0]; {
	case strings.HasPrefix(c.rest, "->"):
		c.kind, end = '>', 2
	case strings.IndexByte("{}[]=;,", first) >= 0:
		c.kind = first
	case first == '"':
		c.kind = 'i'
		for end < len(c.rest) && c.rest[end] != '"' {
			if c.rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(c.rest) {
			c.fail("a closing quote")
			return
		}
		end++
	case first == '-' || first == '.' || first >= '0' && first <= '9':
		c.kind = 'i'
		for end < len(c.rest) && strings.IndexByte(".0123456789", c.rest[end]) >= 0 {
			end++
		}
		if c.rest[:end] == "-" {
			c.fail("a number")
			return
		}
	default:
		c.kind = 'i'
		end = strings.IndexFunc(c.rest, func(r rune) bool { return r != '_' && r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if end < 0 {
			end = len(c.rest)
		}
		if end == 0 {
			c.fail("an id")
			return
		}
	}
	c.token, c.rest = c.rest[:end], c.rest[end:]
}

func (c *dotChecker) mark(kind byte) {
	if c.kind != kind {
		c.fail(string(kind))
		return
	}
	c.next()
}

func (c *dotChecker) word(want string) {
	if c.kind != 'i' || c.token != want {
		c.fail(want)
		return
	}
	c.next()
}

func (c *dotChecker) id() string {
	if c.kind != 'i' {
		c.fail("an id")
		return ""
	}
	token := c.token
	c.next()
	return token
}

func (c *dotChecker) block() {
	c.mark('{')
	for c.err == nil && c.kind != '}' {
		if c.kind == 'i' && c.token == "subgraph" {
			c.next()
			c.id()
			c.block()
		} else {
			c.id()
			if c.kind == '=' {
				c.next()
				c.id()
			}
			for c.kind == '>' {
				c.next()
				c.id()
			}
			if c.kind == '[' {
				c.attributes()
			}
		}
		if c.kind == ';' {
			c.next()
		} else if c.kind != '}' && c.kind != 'i' {
			c.fail("a new statement")
		}
	}
	c.mark('}')
}

func (c *dotChecker) attributes() {
	c.mark('[')
	for c.err == nil && c.kind != ']' {
		name := c.id()
		c.mark('=')
		value := c.id()
		if name == "label" && c.err == nil {
			c.labels[shownLabel(value)] = true
		}
		if c.kind == ',' {
			c.next()
		}
	}
	c.mark(']')
}

// shownLabel returns a label as it is shown: with escapes, and the one entity that we write, decoded.
func shownLabel(token string) string {
	if !strings.HasPrefix(token, `"`) {
		return token
	}
	var b strings.Builder
	inside := token[1 : len(token)-1]
	for i := 0; i < len(inside); i++ {
		if inside[i] == '\\' {
			i++
			if inside[i] == 'n' {
				b.WriteByte('\n')
				continue
			}
		}
		b.WriteByte(inside[i])
	}
	return strings.ReplaceAll(b.String(), "&amp;", "&")
}

func BenchmarkDOT(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		g := plantest.GrowthShape(n).Graph(b)
		p := planned(b, g, Options{Strategy: "list", Streams: 8})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var w bytes.Buffer
				if err := p.WriteDOT(&w, g); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}
