// Reads arguments that are textures: {texture: d_img, width: w, height: h, filter: linear, address: clamp, coordinates: pixels}.

package file

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

const textureKey = "texture"

// textureKeys are the keys of such an argument.
var textureKeys = []string{textureKey, "width", "height", "channels", "filter", "address", "coordinates", "read"}

// isTexture reports whether an argument in braces is meant as a texture.
func isTexture(n *yaml.Node) bool {
	for k := 0; k+1 < len(n.Content); k += 2 {
		if n.Content[k].Value == textureKey {
			return true
		}
	}
	return false
}

// texture reads an argument that is a texture.
func (p *parser) texture(n *yaml.Node) (dag.ArgumentSpec, bool) {
	keys, values := make([]*yaml.Node, len(textureKeys)), make([]*yaml.Node, len(textureKeys))
	ok := true
	for k := 0; k+1 < len(n.Content); k += 2 {
		key, value := n.Content[k], n.Content[k+1]
		at := slices.Index(textureKeys, key.Value)
		switch {
		case !p.isKey(key):
			ok = false
		case key.Value == "depth":
			p.mistake(position(key), "pass the buffer as a pointer", "textures of three dimensions need a CUDA array, which no buffer is")
			ok = false
		case at < 0:
			hint := "it may be " + words.List(textureKeys, "or")
			if near := words.Suggest(key.Value, textureKeys); near != "" {
				hint = "did you mean " + near + "?"
			}
			p.mistake(position(key), hint, "unknown key %q of a texture", words.Shorten(key.Value))
			ok = false
		case values[at] != nil:
			p.duplicateKey(key, keys[at])
			ok = false
		default:
			keys[at], values[at] = key, value
		}
	}
	t := &dag.Texture{}
	a := dag.ArgumentSpec{IsBuffer: true, Mode: dag.Read, Texture: t}
	r, fine := p.reference(values[0], textureKey)
	a.Range, ok = r, ok && fine
	number := func(at int, least, most int64) int64 {
		if values[at] == nil {
			return 0
		}
		v, fine := p.between(values[at], textureKeys[at], least, most)
		ok = ok && fine
		return v
	}
	t.Width, t.Height, t.Channels = number(1, 1, dag.MostTexels), number(2, 1, dag.MostTextureHeight), int32(number(3, 1, 4))
	word := func(at int, names []string) int {
		if values[at] == nil {
			return 0
		}
		v, fine := p.textureWord(values[at], textureKeys[at], names)
		ok = ok && fine
		return v
	}
	t.Filter = dag.Filter(word(4, wordsFrom(dag.Nearest, dag.Linear)))
	if n := values[5]; n != nil && n.Kind == yaml.SequenceNode {
		if len(n.Content) != 2 {
			p.mistake(position(n), "", "address must be one mode, or one for x and one for y, not %d", len(n.Content))
			ok = false
		} else {
			for axis, item := range n.Content {
				v, fine := p.textureWord(item, "address", wordsFrom(dag.Clamp, dag.Border))
				t.Address[axis], ok = dag.AddressMode(v), ok && fine
			}
		}
	} else {
		mode := dag.AddressMode(word(5, wordsFrom(dag.Clamp, dag.Border)))
		t.Address = [2]dag.AddressMode{mode, mode}
	}
	t.Normalized = word(6, []string{"pixels", "normalized"}) == 1
	t.NormalizedFloat = word(7, []string{"element", "normalized_float"}) == 1
	return a, ok
}

// textureWord reads one of a few words.
func (p *parser) textureWord(n *yaml.Node, key string, names []string) (int, bool) {
	text, ok := p.expanded(n, key)
	if !ok {
		return 0, false
	}
	at := slices.Index(names, text)
	if at < 0 {
		hint := ""
		if near := words.Suggest(text, names); near != "" {
			hint = "did you mean " + near + "?"
		}
		p.mistake(position(n), hint, "%s must be %s, not %q", key, words.List(names, "or"), words.Shorten(text))
		return 0, false
	}
	return at, true
}
