// Checks as JSON. JSON has no NaN and no infinities, so those become strings.

package arrays

import (
	"encoding/json"
	"fmt"
	"math"
)

// number is a float64 that becomes a number in JSON, or one of the strings "NaN", "Infinity" and "-Infinity".
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	switch v := float64(n); {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	}
	return json.Marshal(float64(n))
}

func (n *number) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"NaN"`:
		*n = number(math.NaN())
	case `"Infinity"`:
		*n = number(math.Inf(1))
	case `"-Infinity"`:
		*n = number(math.Inf(-1))
	default:
		if err := json.Unmarshal(text, (*float64)(n)); err != nil {
			return fmt.Errorf("%s is not a number, \"NaN\", \"Infinity\" or \"-Infinity\"", text)
		}
	}
	return nil
}

// checkDocument is the JSON form of a Check.
type checkDocument struct {
	Buffer   string `json:"buffer"`
	OK       bool   `json:"ok"`
	Elements int64  `json:"elements"`
	Wrong    int64  `json:"wrong"`
	First    string `json:"first,omitempty"`
	Worst    number `json:"worst_error"`
	Against  string `json:"against"`
	RTol     number `json:"rtol"`
	ATol     number `json:"atol"`
	Allowed  int64  `json:"differing_allowed,omitempty"`
	Norm     string `json:"norm,omitempty"`
	Distance number `json:"distance,omitempty"`
	WantNorm number `json:"want_norm,omitempty"`
}

// MarshalJSON writes NaN and infinities as strings: "NaN", "Infinity", "-Infinity".
func (c Check) MarshalJSON() ([]byte, error) {
	return json.Marshal(checkDocument{c.Buffer, c.OK, c.Elements, c.Wrong, c.First, number(c.Worst), c.Against, number(c.RTol), number(c.ATol),
		c.Allowed, c.Norm, number(c.Distance), number(c.WantNorm)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Check) UnmarshalJSON(text []byte) error {
	var d checkDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	*c = Check{d.Buffer, d.OK, d.Elements, d.Wrong, d.First, float64(d.Worst), d.Against, float64(d.RTol), float64(d.ATol),
		d.Allowed, d.Norm, float64(d.Distance), float64(d.WantNorm), false}
	return nil
}
