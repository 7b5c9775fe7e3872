// The params of a pipeline file without the rest of it: what a shell completes after -p.

package dag

// FileParams reads the params of a pipeline file and nothing else, so that it is quick on a file of any size and answers for a file
// whose other parts have mistakes. The error is a *ParseError, as Parse's is.
func FileParams(source []byte, name string) ([]Param, error) {
	p := newParser(Options{Name: name})
	p.pipeline = &Pipeline{}
	p.budget = MaxNodes
	t, bad := newText(source)
	p.text = t
	if bad == nil {
		root, unreadable := t.document()
		if bad = unreadable; bad == nil && root != nil && p.admissible(root, 1) {
			p.readParams(field{value: lookup(root, "params")})
		}
	}
	if bad != nil {
		p.problem(bad)
	}
	return p.pipeline.Params, p.err()
}
