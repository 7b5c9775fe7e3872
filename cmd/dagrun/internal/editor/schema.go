// What the JSON schema says of a place in a file: its keys, its fixed words, and what they mean.

package editor

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/dagrun/dagrun"
)

// schema is the part of a JSON schema that is used here.
type schema struct {
	Ref         string             `json:"$ref"`
	Description string             `json:"description"`
	Type        any                `json:"type"`
	Enum        []any              `json:"enum"`
	Const       any                `json:"const"`
	Properties  properties         `json:"properties"`
	Additional  *optional          `json:"additionalProperties"`
	Items       *optional          `json:"items"`
	AllOf       []*schema          `json:"allOf"`
	AnyOf       []*schema          `json:"anyOf"`
	OneOf       []*schema          `json:"oneOf"`
	Then        *schema            `json:"then"`
	Else        *schema            `json:"else"`
	Definitions map[string]*schema `json:"definitions"`
}

// optional is a schema, or false, or a list that says nothing of single items.
type optional struct{ *schema }

func (o *optional) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return nil
	}
	return json.Unmarshal(data, &o.schema)
}

// properties keep their order: it is the one in which people write the keys.
type properties []property

type property struct {
	key   string
	value *schema
}

func (p *properties) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		item := property{key: key.(string)}
		if err := decoder.Decode(&item.value); err != nil {
			return err
		}
		*p = append(*p, item)
	}
	return nil
}

var fileSchema = sync.OnceValue(func() *schema {
	root := &schema{}
	if err := json.Unmarshal([]byte(dagrun.Schema()), root); err != nil {
		panic(err) // the embedded schema is not JSON: a mistake in the build
	}
	return root
})

// alternatives are a schema and all that it refers to, where each may be the one that holds.
func (s *schema) alternatives(found []*schema) []*schema {
	if s == nil {
		return found
	}
	found = append(found, s)
	if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
		found = fileSchema().Definitions[name].alternatives(found)
	}
	for _, parts := range [][]*schema{s.AllOf, s.AnyOf, s.OneOf, {s.Then, s.Else}} {
		for _, part := range parts {
			found = part.alternatives(found)
		}
	}
	return found
}

// item stands in a path for an item of a list.
const item = "[]"

// schemasAt are what may hold at a path.
func schemasAt(path []string) []*schema {
	here := fileSchema().alternatives(nil)
	for _, step := range path {
		var below []*schema
		for _, s := range here {
			if step == item {
				if s.Items != nil {
					below = s.Items.alternatives(below)
				}
				continue
			}
			known := false
			for _, p := range s.Properties {
				if p.key == step {
					known = true
					below = p.value.alternatives(below)
				}
			}
			if !known && s.Additional != nil {
				below = s.Additional.alternatives(below)
			}
		}
		here = below
	}
	return here
}

// describe is the first description at a path that does not belong to one value.
func describe(schemas []*schema) string {
	for _, s := range schemas {
		if s.Description != "" && s.Const == nil {
			return s.Description
		}
	}
	return ""
}
